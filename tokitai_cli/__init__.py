"""tokitai verifies GPU kernels against a reference and writes evidence of what was checked."""

from __future__ import annotations

TYPE_CHECKING = False  # as that of `typing`, which every start of the tool would wait for
if TYPE_CHECKING:
    from typing import Any

    from tokitai_cli.model.case import LoadedSpec
    from tokitai_cli.model.events import Listener
    from tokitai_cli.pipeline.run import RunOutcome

__version__ = "0.1.0"
__all__ = ["__version__", "verify"]


def verify(op: str | LoadedSpec, *, listener: Listener | None = None, **options: Any) -> RunOutcome:
    """Verify the kernels of `op` (a built-in name, the path of a spec file, or a loaded spec).

    `options` are those of the command line with underscores, plus `shapes`, which maps the op's
    parameters to a value or a list: `verify("gemm-bw", shapes={"m": [16, 64]}, profile=["normal"])`.
    `listener` is called with the events of `tokitai_cli.model.events`.

    Returns the evidence and the files that hold it. Raises UsageError and SpecError (see
    `tokitai_cli.errors`) for what cannot be run at all; every other failure is a verdict.
    """
    from tokitai_cli.pipeline import run
    from tokitai_cli.pipeline.options import run_options

    resolved = run_options(op, **options)
    return run.verify(resolved) if listener is None else run.verify(resolved, listener)
