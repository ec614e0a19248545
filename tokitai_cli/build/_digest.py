"""Digests of files and of plain data."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import msgspec

# Order of the encoder's keys is fixed, so equal data gives equal bytes.
_ENCODER = msgspec.json.Encoder(order="sorted")
_CHUNK = 1 << 20


def file_sha256(path: str | Path) -> str:
    """sha256 of a file's bytes in hex; raises OSError."""
    digest = hashlib.sha256()
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - hundreds of files in a warm run
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def data_sha256(data: Any) -> str:
    """sha256 of plain data (dicts, lists, texts, numbers, msgspec structs) in hex."""
    return hashlib.sha256(_ENCODER.encode(data)).hexdigest()


def encode(data: Any) -> bytes:
    """JSON with sorted keys."""
    return _ENCODER.encode(data)
