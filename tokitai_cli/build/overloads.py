"""Which of several functions of a name a launch means, by what it passes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tokitai_cli.core.model.harness import HarnessRequest, KernelEntry
from tokitai_cli.core.model.models import Models
from tokitai_cli.cpp import kernel_names
from tokitai_cli.cpp.lexing import called_names

if TYPE_CHECKING:
    from tokitai_cli.cpp.source.signatures import Kernel
    from tokitai_cli.cpp.whole import Program


def overloads(
    request: HarnessRequest,
    several: Sequence[bool],
    folders: Sequence[Path],
    defines: Mapping[str, str],
    models: Models,
) -> list[str]:
    """The kernels of a request as a spec names them, with types behind a name that is not alone.

    several: of `named_twice`, for each kernel. Where none or more than one fits the name stays.
    """
    if not any(several):
        return [one.expr for one in request.kernels]
    from tokitai_cli.cpp.programs import Programs  # parsers that other builds do without
    from tokitai_cli.cpp.source.signatures import kernels_of

    whole = models.of(Programs).of(request.source, folders, defines)
    kernels = kernels_of(whole)
    return [
        _typed(one, whole, kernels) if more and not _alone(one.expr, whole, kernels) else one.expr
        for one, more in zip(request.kernels, several, strict=True)
    ]


def named_twice(expr: str, texts: Sequence[str]) -> bool:
    """Whether a name without types may be that of more than one function of these plain texts."""
    _, types = kernel_names.overload(expr)
    last = kernel_names.last_name(expr)
    return not types and sum(called_names(text).count(last) for text in texts) > 1


def _alone(expr: str, whole: Program, kernels: Sequence[Kernel]) -> bool:
    """Whether no other function has that name, nor the kernel a declaration beside its own."""
    last = kernel_names.last_name(expr)
    declared = sum(last in one.names for pieces in whole.pieces.values() for one in pieces)
    return declared == 1 and any(one.name == last for one in kernels)


def _typed(entry: KernelEntry, whole: Program, kernels: Sequence[Kernel]) -> str:
    """The entry's name with the types of the one kernel that takes its arguments."""
    if "<" in entry.expr:
        return entry.expr
    from tokitai_cli.cpp.source.signatures import nests_declarators, types_of

    args = entry.args[len(entry.references) :]
    wanted, given = f"::{entry.expr.removeprefix('::')}", len(args)
    fitting = {
        types_of(one.parameters)
        for one in kernels
        if f"::{one.qualified}".endswith(wanted)
        and not (one.template or one.open or len(one.parameters) < given)
        and not nests_declarators(whole, one)  # types by which none can be chosen here
        and all(rest.default for rest in one.parameters[given:])
        and all(
            known.takes(arg.kind, arg.dtype)
            for arg, known in zip(args, one.parameters, strict=False)
        )
    }
    return f"{entry.expr}({fitting.pop() or 'void'})" if len(fitting) == 1 else entry.expr
