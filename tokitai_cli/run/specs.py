"""Specs with everything that is known of them without a run."""

from __future__ import annotations

from pathlib import Path

from tokitai_cli import spec
from tokitai_cli.core.errors import NotRunError, SpecError
from tokitai_cli.core.model.case import LoadedSpec
from tokitai_cli.spec import plan


def load(path: Path, data: bytes | None = None, *, judged: bool = True) -> LoadedSpec:
    """Read a spec as `spec.load` does, and see that every variant's oracle fits it.

    judged: as there; where nothing is, an oracle may be as it is.

    Raises SpecError with file, line, key and mend.
    """
    loaded = spec.load(path, data, judged=judged)
    if judged:
        check_oracles(loaded)
    return loaded


def load_op(op: str, *, judged: bool = True) -> LoadedSpec:
    """Spec of a built-in op, or of the file `op` is the path of. Raises UsageError, SpecError.

    judged: see `load`.
    """
    path = spec.find(op)
    # The oracles of built-in specs fit; looking would cost `show` and `--help` an import of numpy.
    return spec.load(path) if (path.stem, path) in spec.builtin() else load(path, judged=judged)


def check_oracles(loaded: LoadedSpec) -> None:
    """Raise SpecError at the first variant whose oracle, replay or properties do not fit it."""
    from tokitai_cli.oracles import references

    for name in loaded.spec.variants:
        case = plan.example(loaded, name)
        try:
            if case is not None:
                references.require_fit(case)
        except SpecError as error:
            raise spec.placed(loaded, error) from None
        except NotRunError:
            continue  # of this shape alone
