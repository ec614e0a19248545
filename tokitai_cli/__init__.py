"""tokitai verifies GPU kernels against a reference and writes evidence of what was checked."""

from __future__ import annotations

from tokitai_cli.core.version import __version__

TYPE_CHECKING = False  # as that of `typing`, which every start of the tool would wait for
if TYPE_CHECKING:
    from typing import Unpack

    from tokitai_cli.core.errors import SpecError, TokitaiError, UsageError
    from tokitai_cli.core.model.case import LoadedSpec
    from tokitai_cli.core.model.events import Listener
    from tokitai_cli.core.model.keywords import VerifyOptions
    from tokitai_cli.run.loop import RunOutcome

__all__ = ["SpecError", "TokitaiError", "UsageError", "__version__", "verify"]


def __getattr__(name: str) -> type[TokitaiError]:
    """The errors of the interface: they are loaded where they are asked for."""
    if name not in {"SpecError", "TokitaiError", "UsageError"}:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tokitai_cli.core import errors

    error: type[TokitaiError] = getattr(errors, name)
    return error


def verify(
    op: str | LoadedSpec, *, listener: Listener | None = None, **options: Unpack[VerifyOptions]
) -> RunOutcome:
    """Verify the kernels of `op` (a built-in name, the path of a spec file, or a loaded spec).

    `options` are those of the command line with underscores, plus `shapes`, which maps the op's
    parameters to a value or a list: `verify("gemm-bw", shapes={"m": [16, 64]}, profile=["normal"])`.
    `listener` is called with the events of `tokitai_cli.core.model.events`.

    Returns the evidence and the files that hold it. Raises UsageError and SpecError for
    what cannot be run at all; every other failure is a verdict.
    """
    from tokitai_cli.run import loop
    from tokitai_cli.run.run_options import run_options

    resolved = run_options(op, **options)
    return loop.verify(resolved) if listener is None else loop.verify(resolved, listener)
