"""What keeps a kernel from being executed: the one answer, for `isa` and for runs."""

from __future__ import annotations

from tokitai_cli.devices.amdgpu.binary.objects import CodeObject, Kernel
from tokitai_cli.devices.amdgpu.isa import opcode_table, reach
from tokitai_cli.devices.amdgpu.translate import refused
from tokitai_cli.devices.amdgpu.translate.mode import Mode
from tokitai_cli.devices.amdgpu.translate.unit import HIDDEN


class Lacks:
    """Of the kernels of one code object; each function of it is looked at once for each float mode."""

    def __init__(self, code: CodeObject) -> None:
        self._arch = code.arch
        self.code = reach.Code(code)
        self._known: dict[tuple[int, Mode], tuple[str, ...]] = {}

    def of(self, kernel: Kernel) -> tuple[str, ...]:
        """Instructions, hidden arguments and sizes of waves that are not executed, by name."""
        mode = Mode.of(kernel.descriptor.mode())
        names: set[str] = set()
        for entry, function in self.code.functions(kernel.address):
            key = entry, mode
            if key not in self._known:
                self._known[key] = refused(function.instructions, [entry], mode)
            names.update(self._known[key])
        kinds = [one.value_kind for one in kernel.args if one.hidden]
        wave, lanes = kernel.descriptor.wave, opcode_table.family(self._arch).lanes
        return (
            *sorted(names),
            *(f"the argument {kind}" for kind in kinds if kind not in HIDDEN),
            *((f"waves of {wave} lanes",) if wave != lanes else ()),
        )
