"""How many threads a block of a kernel may have by its `__launch_bounds__`.

A GPU refuses a larger block; the host's compiler knows no such bound.
"""

from __future__ import annotations

from collections.abc import Sequence

from tokitai_cli.cpp import kernel_names
from tokitai_cli.cpp.arithmetic import constant
from tokitai_cli.cpp.declarations import parameters_of
from tokitai_cli.cpp.source.constants import constants_of
from tokitai_cli.cpp.source.signatures import Kernel, bound_types, declaration_of, kernels_of
from tokitai_cli.cpp.tree import named, text_of
from tokitai_cli.cpp.whole import Program


def most_threads(program: Program, kernel: Kernel, arguments: Sequence[str]) -> int:
    """Most threads of a block; 0 where nothing says so, or not in numbers that are known.

    arguments: of the kernel's template.
    """
    known = declaration_of(program, kernel)
    if known is None:
        return 0
    tree, own = known
    count = len(own.parameters)
    before = (one for one in tree.by_name[own.name]
              if one.kind == "prototype" and len(parameters_of(one.node)) == count)  # fmt: skip
    bounds = (part for one in (own, *before) for part in one.node.children
              if part.type == "launch_bounds")  # fmt: skip
    told = next((part for one in bounds for part in named(one)[:1]), None)
    if told is None:
        return 0
    names = constants_of(program) | bound_types(kernel, list(arguments))
    return max(0, constant(text_of(told), names, program.macros, tree) or 0)


def bound_of(program: Program, expr: str) -> int:
    """Most threads of a block of a kernel as a spec names it; 0 as in `most_threads`."""
    name = kernel_names.instance(expr)
    bounds = (most_threads(program, one, name.arguments or ())
              for one in kernels_of(program) if one.name == name.last)  # fmt: skip
    return next(filter(None, bounds), 0)
