"""One open `subscriptions/listen` stream (2026-07-28), for as long as its session lasts.

Above: `mcp.py`. Below: the SDK's client side of the stream. What the stream brings also comes to the session's message
handler, where the older revision's announcements come, so it is heard there; here it is only kept open and emptied.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from mcp import ClientSession, MCPError
from mcp.client.subscriptions import SubscriptionLost, listen
from mcp_types import INVALID_PARAMS, METHOD_NOT_FOUND

_NOT_SERVED = (METHOD_NOT_FOUND, INVALID_PARAMS)


class Announcements:
    """The stream, in a task of its own: the SDK wants it left where it was entered.

    Args:
        on_lost: called when the stream ended, for whatever reason but `close`.
    """

    def __init__(self, client: ClientSession, *, on_lost: Callable[[], None]) -> None:
        self._client = client
        self._on_lost = on_lost
        self._answered: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run(), name="toolcrib announcements")

    async def begun(self) -> bool:
        """Whether the server took the subscription, once it answered.

        Raises:
            MCPError, SubscriptionLost: it could not answer.
        """
        return await asyncio.shield(self._answered)

    def close(self) -> None:
        self._on_lost = lambda: None
        self._task.cancel()

    async def _run(self) -> None:
        try:
            async with listen(self._client, tools_list_changed=True) as stream:
                self._answered.set_result(bool(stream.honored.tools_list_changed))
                async for _ in stream:
                    pass
        except MCPError as fault:
            self._answer(False if fault.error.code in _NOT_SERVED else fault)
        except SubscriptionLost as fault:
            self._answer(fault)
        finally:
            self._answer(SubscriptionLost("the session ended"))
            self._on_lost()

    def _answer(self, answer: bool | Exception) -> None:
        if self._answered.done():
            return
        if isinstance(answer, Exception):
            self._answered.set_exception(answer)
            self._answered.exception()  # seen, also where nobody waits for it any more
        else:
            self._answered.set_result(answer)
