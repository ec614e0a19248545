"""Texts of a spec and a formula for a kernel that Triton compiled."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from tokitai_cli.devices.triton_metadata import TritonArgument, TritonKernel
from tokitai_cli.drafts.render import quoted
from tokitai_cli.spec.reader.gaps import GAP, GUESS

_SIZE = 1024


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """What the author of a spec says; what is empty is drafted with marks."""

    #: Sizes by name: of integer parameters, and others that shapes and the grid name.
    sizes: Mapping[str, int] = {}
    #: Shapes of arrays by name: numbers or expressions of sizes.
    shapes: Mapping[str, Sequence[int | str]] = {}
    #: Float parameters by name.
    scalars: Mapping[str, float] = {}
    #: Programs in x, y, z: numbers or expressions of sizes.
    grid: Sequence[int | str] = ()
    #: `file.py:function` beside the spec.
    formula: str = ""
    #: Dtype in which sums are kept, as in a spec's `accumulate`.
    accumulate: str = ""
    #: Draws of inputs by name, as in a spec's `draw`.
    draws: Mapping[str, Mapping[str, object]] = {}
    #: Metric of every output.
    metric: str = "bound"


class CompiledWriter:
    """Texts of one draft."""

    def __init__(self, kernel: TritonKernel, folder: Path, given: Given) -> None:
        self.kernel, self.given = kernel, given
        self.source = os.path.relpath(kernel.source, folder)
        integers = [one.name for one in kernel.arguments if not one.pointer and "int" in one.dtype]
        self.sizes = {name: given.sizes.get(name) for name in integers} | dict(given.sizes)

    def spec(self) -> str:
        """Text of spec.yaml."""
        kernel, given = self.kernel, self.given
        name = re.sub(r"\W+|_", "-", kernel.name).strip("-").lower()
        version = f"Triton {kernel.version}" if kernel.version else "Triton"
        lines = [
            *("schema: tokitai/spec/v1", f"op: {name}", f"title: {kernel.name}"),
            f"summary: {kernel.name}, compiled by {version} for {kernel.arch}.",
            *(["params:", *self._params()] if self.sizes else ["params: {}"]),
            *("variants:", "  main:", f"    source: {quoted(self.source)}"),
        ]
        for role in ("inputs", "outputs", "inout"):
            rows = [self._array(one) for one in kernel.arguments if self._role(one) == role]
            lines += [f"    {role}:", *rows] if rows else []
        floats = [one for one in kernel.arguments if not one.pointer and one.name not in self.sizes]
        lines += ["    scalars:", *map(self._scalar, floats)] if floats else []
        lines += self._scratch()
        passed = [*(one.name for one in kernel.arguments), *self._scratch_names()]
        accumulate = f", accumulate: {given.accumulate}" if given.accumulate else ""
        lines += [
            *("    launches:", f"      - kernel: {quoted(kernel.name)}", self._grid()),
            f"        block: [{kernel.threads}]",
            f"        shared: {kernel.shared}",
            f"        args: [{', '.join(passed)}]",
            f"    oracle: {{formula: {quoted(given.formula or 'formula.py:formula')}{accumulate}}}",
            *("    checks:", f"      - {{metric: {given.metric}}}", "profiles:", "  normal: {}"),
        ]
        return "\n".join(lines) + "\n"

    def formula(self) -> str:
        """Text of formula.py, which is to be filled in."""
        outputs = {
            one.name: f'inputs["{one.name}"]' if self._role(one) == "inout" else "0.0"
            for one in self.kernel.arguments
            if self._role(one) in ("outputs", "inout")
        }
        rows = "".join(
            f'        "{name}": {value},  {GAP} what it holds\n' for name, value in outputs.items()
        )
        return (
            '"""What the kernel computes, in numpy."""\n\n\n'
            f"def formula(params, inputs, scalars):\n    return {{\n{rows}    }}\n"
        )

    def _role(self, one: TritonArgument) -> str:
        if not one.pointer:
            return ""
        if not self.kernel.has_signature:  # that the last array is the output is a guess
            last = [each.name for each in self.kernel.arguments if each.pointer][-1]
            return "outputs" if one.name == last else "inputs"
        return "inputs" if not one.written else "inout" if one.read else "outputs"

    def _params(self) -> list[str]:
        rows = []
        for name, value in self.sizes.items():
            guess = "" if value is not None else f"  {GUESS} its value"
            rows.append(
                f"  {name}: {{default: {_SIZE if value is None else value}, help: {name}}}{guess}"
            )
        return rows

    def _array(self, one: TritonArgument) -> str:
        shape = self.given.shapes.get(one.name)
        marks = [] if shape is not None else ["its shape"]
        if not self.kernel.has_signature:
            marks += ["its dtype", "whether it is read or written"]
        shape = [next(iter(self.sizes), 1)] if shape is None else shape
        shown = ", ".join(str(each) if str(each).isalnum() else quoted(str(each)) for each in shape)
        draw = self.given.draws.get(one.name)
        drawn = (
            ", draw: {" + ", ".join(f"{key}: {value}" for key, value in draw.items()) + "}"
            if draw
            else ""
        )
        guess = f"  {GUESS} {', '.join(marks)}" if marks else ""
        return (
            f"      {one.name}: {{dtype: {one.dtype or 'float32'}, shape: [{shown}]{drawn}}}{guess}"
        )

    def _scalar(self, one: TritonArgument) -> str:
        value = self.given.scalars.get(one.name)
        gap = "" if value is not None else f"  {GAP} its value"
        return f"      {one.name}: {{dtype: {one.dtype}, value: {1.0 if value is None else value}}}{gap}"

    def _scratch_names(self) -> list[str]:
        return [f"scratch{at}" for at in range(len(self.kernel.scratch))]

    def _scratch(self) -> list[str]:
        """Workspaces behind the arguments that Triton adds; where the kernel uses none, of a byte."""
        programs = " * ".join(f"({each})" for each in self.given.grid)
        rows = []
        for name, size in zip(self._scratch_names(), self.kernel.scratch, strict=True):
            extent = quoted(f"{size} * {programs}") if size and programs else str(max(size, 1))
            gap = f"  {GAP} times the programs of the launch" if size and not programs else ""
            rows.append(
                f"      {name}: {{dtype: uint8, shape: [{extent}], scratch: Triton's own}}{gap}"
            )
        return ["    workspaces:", *rows] if rows else []

    def _grid(self) -> str:
        if not self.given.grid:
            return f"        grid: [1]  {GAP} programs of the launch"
        words = [str(each) if isinstance(each, int) else quoted(each) for each in self.given.grid]
        return f"        grid: [{', '.join(words)}]"
