"""An index on disk: one file, no pickle, arrays memory-mapped.

    magic | length of the head | head (JSON: format, key, what lies where, checksum) | arrays, each aligned to 64 bytes

Invariants
1. A file is written beside its place and moved there whole; a reader sees the old one or the new one.
2. A damaged or foreign file is an `IndexFormatError`, never wrong scores.
"""

from __future__ import annotations

import json
import os
import tempfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from toolcrib.errors import IndexFormatError, RetrievalError

FORMAT_VERSION = 1
_MAGIC = b"TCRIBIDX"
_ALIGN = 64
_DTYPES = frozenset({"int8", "uint8", "int32", "int64"})


def write_arrays(path: Path, arrays: Mapping[str, npt.NDArray[Any]], *, key: str) -> None:
    """Write named integer arrays under a key, atomically."""
    entries: list[dict[str, Any]] = []
    blobs: list[memoryview | bytes] = []
    offset = checksum = 0
    for name, array in arrays.items():
        blob = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        padding = b"\0" * (-len(blob) % _ALIGN)
        entries.append({"name": name, "dtype": str(array.dtype), "shape": list(array.shape), "offset": offset})
        blobs += [blob, padding]
        offset += len(blob) + len(padding)
        checksum = zlib.crc32(padding, zlib.crc32(blob, checksum))
    head = {"format": FORMAT_VERSION, "key": key, "arrays": entries, "n_bytes": offset, "crc32": checksum}
    encoded = json.dumps(head).encode()
    start = len(_MAGIC) + 8 + len(encoded)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
        with os.fdopen(handle, "wb") as file:
            file.write(_MAGIC + len(encoded).to_bytes(8, "little") + encoded + b"\0" * (-start % _ALIGN))
            file.writelines(blobs)
        Path(name).replace(path)
    except OSError as fault:
        raise RetrievalError(f"the index cannot be written: {fault}", where=str(path)) from fault


def read_arrays(path: Path) -> tuple[str, dict[str, npt.NDArray[Any]]]:
    """(key, arrays) of an index file; the arrays are read-only and memory-mapped.

    Raises:
        IndexFormatError: not an index, another format, cut short or altered.
    """
    try:
        # A plain array over the mapped memory: each look into a `memmap` costs a microsecond more.
        raw = np.memmap(path, dtype=np.uint8, mode="r").view(np.ndarray)
    except (OSError, ValueError) as fault:
        raise _damaged(path, str(fault)) from fault
    try:
        return _parsed(path, raw)
    except (ValueError, KeyError, TypeError, AttributeError, UnicodeDecodeError) as fault:
        raise _damaged(path, "its head cannot be read") from fault


def _parsed(path: Path, raw: npt.NDArray[np.uint8]) -> tuple[str, dict[str, npt.NDArray[Any]]]:
    if bytes(raw[:8]) != _MAGIC:
        raise _damaged(path, "it is not an index")
    length = int.from_bytes(bytes(raw[8:16]), "little")
    head = json.loads(bytes(raw[16 : 16 + length]))
    if head["format"] != FORMAT_VERSION:
        raise _damaged(path, f"it is of format {head['format']}, this version reads {FORMAT_VERSION}")
    start = 16 + length
    body = raw[start + (-start % _ALIGN) :]
    if len(body) != head["n_bytes"] or zlib.crc32(body.data) != head["crc32"]:
        raise _damaged(path, "its content does not match its checksum")
    return str(head["key"]), {entry["name"]: _array(path, body, entry) for entry in head["arrays"]}


def _array(path: Path, body: npt.NDArray[np.uint8], entry: Mapping[str, Any]) -> npt.NDArray[Any]:
    if entry["dtype"] not in _DTYPES:
        raise _damaged(path, f"unknown array type {entry['dtype']}")
    dtype = np.dtype(entry["dtype"])
    n_bytes = int(np.prod(entry["shape"], dtype=np.int64)) * dtype.itemsize
    array: npt.NDArray[Any] = body[entry["offset"] : entry["offset"] + n_bytes].view(dtype).reshape(entry["shape"])
    return array


def _damaged(path: Path, why: str) -> IndexFormatError:
    return IndexFormatError(f"the index cannot be used: {why}", where=str(path), hint="delete it; it is built anew")
