"""Ed25519 keys: in PEM, or as minisign writes them; none with a password."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokitai_cli.core import storage
from tokitai_cli.core.errors import Location, UsageError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

_MOST_BYTES = 1 << 16
_HINT = (
    "make one: openssl genpkey -algorithm ed25519 -out key.pem; "
    "openssl pkey -in key.pem -pubout -out key.pub.pem; or minisign -G -W"
)
# What minisign's files begin with, and where in their second line, decoded, a key lies (minisign(1)).
_MINISIGN = b"untrusted comment:"
_PUBLIC, _SEED = slice(10, 42), slice(62, 94)


def public(path: Path) -> Ed25519PublicKey:
    """The public key in a file, which may hold the private one. Raises UsageError."""
    data = _bytes(path)
    serialization, ed25519 = _library()
    if data.startswith(_MINISIGN):
        return _minisign_public(path, data)
    try:
        loaded: Any = (
            serialization.load_pem_private_key(data, None).public_key()
            if b"PRIVATE KEY" in data
            else serialization.load_pem_public_key(data)
        )
    except (ValueError, TypeError) as error:
        raise _no_key(path, error) from error
    if not isinstance(loaded, ed25519.Ed25519PublicKey):
        raise _no_key(path, "it is of a different kind")
    key: Ed25519PublicKey = loaded
    return key


def private(path: Path) -> Ed25519PrivateKey:
    """The private key in a file. Raises UsageError."""
    data = _bytes(path)
    serialization, ed25519 = _library()
    if data.startswith(_MINISIGN):
        return _minisign_private(path, data)
    try:
        loaded: Any = serialization.load_pem_private_key(data, None)
    except (ValueError, TypeError) as error:
        raise _no_key(path, error) from error
    if not isinstance(loaded, ed25519.Ed25519PrivateKey):
        raise _no_key(path, "it is of a different kind")
    key: Ed25519PrivateKey = loaded
    return key


def _minisign_public(path: Path, data: bytes) -> Ed25519PublicKey:
    minisign, (_, ed25519) = _minisign(), _library()
    try:
        read = minisign.PublicKey.from_bytes(data)
    except (minisign.Error, ValueError):
        return _minisign_private(path, data).public_key()
    raw = base64.b64decode(read.to_base64())[_PUBLIC]
    key: Ed25519PublicKey = ed25519.Ed25519PublicKey.from_public_bytes(raw)
    return key


def _minisign_private(path: Path, data: bytes) -> Ed25519PrivateKey:
    minisign, (_, ed25519) = _minisign(), _library()
    try:
        read = minisign.SecretKey.from_bytes(data)
    except (minisign.Error, ValueError) as error:
        raise _no_key(path, error) from error
    if read.is_encrypted():
        raise _no_key(path, "it has a password; minisign -C -W removes it")
    raw = base64.b64decode(read.to_base64())[_SEED]
    key: Ed25519PrivateKey = ed25519.Ed25519PrivateKey.from_private_bytes(raw)
    return key


def _bytes(path: Path) -> bytes:
    try:
        return storage.read_plain(path, _MOST_BYTES)
    except OSError as error:
        raise _no_key(path, error.strerror or error) from error


def _no_key(path: Path, why: object) -> UsageError:
    message = f"is not an ed25519 key in PEM or minisign format without a password: {why}"
    return UsageError(message, where=Location(path), hint=_HINT)


def _library() -> tuple[Any, Any]:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise _missing("cryptography") from error
    return serialization, ed25519


def _minisign() -> Any:
    try:
        import minisign
    except ImportError as error:
        raise _missing("py-minisign") from error
    return minisign


def _missing(library: str) -> UsageError:
    hint = "pip install 'tokitai[attest]'"
    return UsageError(f"signatures need the library {library}", hint=hint)
