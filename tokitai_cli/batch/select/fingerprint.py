"""What a result depends on that is known without a build, as one digest."""

from __future__ import annotations

import functools
import hashlib
import platform
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np

from tokitai_cli.core import resources
from tokitai_cli.core.model.case import Case
from tokitai_cli.core.model.device import TRAITS
from tokitai_cli.core.model.settings import Settings

_PACKAGE = Path(resources.__file__).resolve().parents[1]
# Folders of kernels_dir() that belong to the tool; the shipped kernels are sources like a user's.
_HARNESS = ("harness", "native", *filter(None, (traits.headers for traits in TRAITS.values())))


def fingerprint(
    case: Case, devices: Sequence[str], settings: Settings, spec: str, tool: str, oracle: str
) -> str:
    """Sha256 in hex over canonical JSON of what the case's result on the first of `devices` depends on.

    devices: it, and those beside it. spec: digest of the spec file. tool: `tool_digest()`. oracle: its
    identity, empty where it cannot be read. Where files lie, which GPU and how many threads work has no
    part in it, and neither have kernel and compiler: the build key speaks of those.
    """
    content = (
        spec,
        case.variant_name,
        case.shape,
        case.profile,
        case.seed,
        case.expect_empty,
        devices,
        settings.anywhere,
        tool,
        oracle,
        np.__version__,
        platform.python_version(),
    )
    return hashlib.sha256(msgspec.json.encode(content, order="deterministic")).hexdigest()


@functools.cache
def tool_digest() -> str:
    """Sha256 in hex over the tool's Python sources, its harness and its headers.

    The same for a checkout and for a wheel that was made of it.
    """
    digest = hashlib.sha256()
    for name, path in sorted(_sources()):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{name}\0{content}\n".encode())
    return digest.hexdigest()


def _sources() -> Iterator[tuple[str, Path]]:
    """Files with their names in a checkout."""
    for path in _PACKAGE.rglob("*.py"):
        name = path.relative_to(_PACKAGE)
        if name.parts[0] != "_data":
            yield f"tokitai_cli/{name.as_posix()}", path
    kernels = resources.kernels_dir()
    for folder in _HARNESS:
        for path in (kernels / folder).rglob("*"):
            if path.is_file() and not path.name.startswith("."):
                yield f"kernels/{path.relative_to(kernels).as_posix()}", path
