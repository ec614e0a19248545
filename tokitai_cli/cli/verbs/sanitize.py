"""`sanitize OP`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tokitai_cli.cli import typer_options
from tokitai_cli.cli.verbs.verify import run_op

if TYPE_CHECKING:
    from tokitai_cli.core.model.case import LoadedSpec


def verb(words: Sequence[str]) -> typer_options.Verb:
    """The verb, with the parameters of the op that the command line names as options."""
    return typer_options.with_op(_sanitize, "sanitize", words)


def _sanitize(op: str | LoadedSpec, shapes: Mapping[str, Any], **given: Any) -> int:
    """Look for memory errors, races and misused barriers.

    Runs the kernels under the sanitizer of the device.

    Example: tokitai sanitize softmax
    """
    from tokitai_cli.run.sanitizing import sanitize
    from tokitai_cli.run.specs import load_op

    loaded = load_op(op) if isinstance(op, str) else op
    # Beside the evidence of `verify`, not over it.
    given["name"] = f"{loaded.spec.op}-sanitize" if given["name"] is None else given["name"]
    if given["suite"] is None and not shapes and "quick" in loaded.spec.suites:
        given["suite"] = "quick"
    return run_op("sanitize", sanitize, loaded, shapes, given)
