"""Executing machine code of gfx11: what instructions do, and their translation to C++."""

from tokitai_cli.devices.amdgpu.translate.operands import RefusedError
from tokitai_cli.devices.amdgpu.translate.semantics import approximate, table
from tokitai_cli.devices.amdgpu.translate.translation import refused, translate
from tokitai_cli.devices.amdgpu.translate.unit import Code, Memory, Registers, Word, unit

__all__ = [
    "Code",
    "Memory",
    "RefusedError",
    "Registers",
    "Word",
    "approximate",
    "refused",
    "table",
    "translate",
    "unit",
]
