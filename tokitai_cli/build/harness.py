"""The harness text. Its identity is known without rendering, so that a warm run needs no jinja2."""

from __future__ import annotations

import hashlib
from typing import Any

from tokitai_cli import resources
from tokitai_cli.build.shared import dynamic_shared_names
from tokitai_cli.model.harness import HarnessRequest

_TEMPLATE = "harness.cpp.j2"


def harness_context(request: HarnessRequest) -> dict[str, Any]:
    """Return what the template is rendered with; plain data."""
    return {
        "source": str(request.source),
        "kernels": [
            {
                "expr": kernel.expr,
                "args": [
                    {"kind": arg.kind, "dtype": arg.dtype} if arg.dtype else {"kind": arg.kind}
                    for arg in kernel.args
                ],
            }
            for kernel in request.kernels
        ],
        "dynamic_shared": dynamic_shared_names(request.source),
        "symbols": [{"name": name, "dtype": dtype} for name, dtype in request.symbols],
    }


def template_digest() -> str:
    """sha256 over every template of the harness folder."""
    digest = hashlib.sha256()
    for path in sorted((resources.kernels_dir() / "harness").glob("*.j2")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def harness_text(request: HarnessRequest) -> str:
    """C++ source of the harness: includes the kernel source and serves its kernels."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(resources.kernels_dir() / "harness"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - C++ text; every name was matched by a strict pattern
    )
    return environment.get_template(_TEMPLATE).render(harness_context(request))
