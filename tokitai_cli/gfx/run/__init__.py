"""Executing machine code of gfx11: what instructions do, and their translation to C++."""

from tokitai_cli.gfx.run.operands import RefusedError
from tokitai_cli.gfx.run.semantics import approximate, table
from tokitai_cli.gfx.run.translation import reached, refused, translate
from tokitai_cli.gfx.run.unit import Code, Memory, Registers, Word, unit

__all__ = [
    "Code",
    "Memory",
    "RefusedError",
    "Registers",
    "Word",
    "approximate",
    "reached",
    "refused",
    "table",
    "translate",
    "unit",
]
