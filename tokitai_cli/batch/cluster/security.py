"""Who may speak with whom: loopback without TLS, everything else with it.

Messages of Dask are pickles. Whoever can connect to a scheduler or a worker can have it run any code,
and a scheduler that is not the one meant can do the same to the client.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import dask
import msgspec
from distributed.security import Security

from tokitai_cli.core.errors import UsageError

_WHY = "Dask's messages are pickles: whoever can connect can run code"
_HINT = (
    "give --tls-ca, --tls-cert and --tls-key, or set distributed.comm.tls.* in Dask's configuration"
)
# distributed.comm.tls.*, in the order of the fields of TlsFiles.
_CONFIGURED = ("ca-file", "client.cert", "client.key")


class TlsFiles(msgspec.Struct, frozen=True):
    """PEM files: the certificate authority, and the certificate and key that it issued to the user."""

    ca: Path
    cert: Path
    key: Path


class Address(msgspec.Struct, frozen=True):
    """A scheduler's address as the client connects to it, and the credentials for that."""

    url: str
    security: Security


def checked(address: str, tls: TlsFiles | None) -> Address:
    """The scheduler's address, where it may be connected to; nothing is sent to find that out.

    Raises UsageError for one that is no address, and for one beyond loopback without TLS.
    """
    scheme, host, port = _parts(address)
    if scheme == "tls":
        return Address(address, encrypted(tls))
    if tls is not None:
        raise UsageError(
            f"--scheduler {address}: a tcp:// connection would not use the TLS files",
            hint=f"write tls://{_joined(host, port)}",
        )
    literal = _loopback(host)
    if not literal:
        raise UsageError(
            f"--scheduler {address}: refused, since it is not on loopback and not encrypted. {_WHY}",
            hint=f"start scheduler and workers with TLS and write tls://{_joined(host, port)}; {_HINT}",
        )
    # The literal address, since a name could mean another machine the next time it is looked up.
    return Address(f"tcp://{_joined(literal, port)}", _security(require_encryption=False))


def encrypted(tls: TlsFiles | None) -> Security:
    """Credentials from the files, or from Dask's configuration; raises UsageError without any."""
    names = {"--tls-ca": tls.ca, "--tls-cert": tls.cert, "--tls-key": tls.key} if tls else _found()
    for name, path in names.items():
        if not os.access(path, os.R_OK) or not path.is_file():
            raise UsageError(f"{name} {path}: not a readable file")
    ca, cert, key = (str(path) for path in names.values())
    roles = {f"tls_{role}_cert": cert for role in ("client", "scheduler", "worker")}
    roles |= {f"tls_{role}_key": key for role in ("client", "scheduler", "worker")}
    return _security(require_encryption=True, tls_ca_file=ca, **roles)


def configured() -> bool:
    """Whether Dask's own configuration names credentials."""
    return all(dask.config.get(f"distributed.comm.tls.{name}", None) for name in _CONFIGURED)


def _security(**fields: Any) -> Security:
    kind: Any = Security
    made: Security = kind(**fields)
    return made


def _found() -> dict[str, Path]:
    if not configured():
        raise UsageError(f"TLS needs an authority, a certificate and a key. {_WHY}", hint=_HINT)
    keys = [f"distributed.comm.tls.{name}" for name in _CONFIGURED]
    return {key: Path(str(dask.config.get(key))).expanduser() for key in keys}


def _parts(address: str) -> tuple[str, str, int]:
    """Scheme, host and port of tcp://HOST:PORT or tls://HOST:PORT."""
    try:
        split = urlsplit(address)
        host, port = split.hostname or "", split.port
    except ValueError:
        split, host, port = urlsplit(""), "", None
    plain = host and port and split.path in {"", "/"} and not (split.query or split.fragment)
    if split.scheme not in {"tcp", "tls"} or not plain or "@" in split.netloc:
        raise UsageError(
            f"--scheduler {address}: not the address of a scheduler",
            hint="write tcp://127.0.0.1:8786 or tls://HOST:8786, as the scheduler prints it",
        )
    assert port is not None
    return split.scheme, host, port


def _joined(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _loopback(host: str) -> str:
    """The loopback address that `host` is, or empty.

    Of names only `localhost` counts, and only where all that it stands for is loopback.
    """
    try:
        return host if ipaddress.ip_address(host.partition("%")[0]).is_loopback else ""
    except ValueError:
        pass
    if host != "localhost":
        return ""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return ""
    addresses = sorted({str(entry[4][0]) for entry in found}, key=lambda text: ":" in text)
    if not all(ipaddress.ip_address(text).is_loopback for text in addresses):
        return ""
    return addresses[0] if addresses else ""
