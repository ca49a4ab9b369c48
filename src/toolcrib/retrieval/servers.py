"""Evidence for a server: how near a request is to all that the server's permitted tools do.

A request for a tool of GitHub is near to GitHub's other tools, too. The evidence is soft: it is added to a tool's own
score and never shuts a server out, since hard routing was measured to lose. Where fewer than three servers are
permitted there is nothing to choose between, and it is 0.

Stands on `dense`; added to fused scores by `search`.

Invariant: the sum of a server's vectors is one of whole numbers over permitted tools, hence exact (I1).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from toolcrib.retrieval.dense import Asked, DenseView
from toolcrib.retrieval.vectors import Float64Array, norms, over, products
from toolcrib.types import IntArray

SERVER_WEIGHT = 0.4
"""What a server's evidence adds to `cosine + 0.4 * bm25 / max`. Chosen on requests over 15 to 2,120 servers."""
MIN_SERVERS = 3
_MANY_SERVERS = 1_024
"""Above so many servers their leading dimensions must do."""


class ServerEvidence:
    """One permitted set's servers. `servers`: the server id of each permitted tool, in their order."""

    def __init__(self, servers: Sequence[str], dense: DenseView | None) -> None:
        number: dict[str, int] = {}
        self._server_of: IntArray = np.array([number.setdefault(s, len(number)) for s in servers], dtype=np.int64)
        self._n_tools = len(servers)
        self._dense = dense if len(number) >= MIN_SERVERS else None
        if self._dense is not None:
            sums = self._dense.sums(self._server_of, len(number))
            sums = sums[:, : self._dense.scan_dim] if len(number) > _MANY_SERVERS else sums
            self._matrix, self._lengths = sums.astype(np.float32), norms(sums)
            self._along = self._dense.mean.of(sums, self._lengths) if self._dense.mean is not None else None

    def scores(self, asked: Asked | None) -> Float64Array:
        """Evidence for each permitted tool's server: float64, shape (n_permitted,), a cosine; 0 without vectors."""
        if asked is None or self._dense is None or not asked.adapted.any():
            return np.zeros(self._n_tools)
        vector = asked.adapted[: self._matrix.shape[1]]
        cosines = over(products(self._matrix, vector), self._lengths, vector)
        if self._along is not None and self._dense.mean is not None:
            cosines = self._dense.mean.centred(cosines, self._dense.mean.of_query(asked.adapted), self._along)
        found: Float64Array = cosines[self._server_of]
        return found
