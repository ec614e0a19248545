"""Texts of a spec and a formula for a kernel that Triton compiled."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from tokitai_cli.devices.triton_metadata import TritonArgument, TritonKernel
from tokitai_cli.drafts.model import (
    ArrayDraft,
    Guess,
    LaunchDraft,
    ParamDraft,
    ProfileDraft,
    ScalarDraft,
    SpecDraft,
)
from tokitai_cli.drafts.render import spec_text
from tokitai_cli.spec.reader.gaps import GAP

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
        known = kernel.has_metadata
        origin = f"compiled by Triton {kernel.version}".rstrip() if known else "machine code"
        scratch = dict(self._scratch())
        arrays = {one.name: self._array(one) for one in kernel.arguments if one.pointer}
        launch = LaunchDraft(
            kernel=Guess(kernel.name),
            grid=Guess(given.grid or [1], "" if given.grid else f"{GAP} programs of the launch"),
            block=Guess([kernel.threads], "" if known else "threads of a block"),
            args=[*(one.name for one in kernel.arguments), *scratch],
            shared=Guess(str(kernel.shared), "" if known else "bytes that the launch adds"),
        )
        draft = SpecDraft(
            op=re.sub(r"\W+|_", "-", kernel.name).strip("-").lower(),
            title=Guess(kernel.name),
            summary=f"{kernel.name}, {origin} for {kernel.arch}.",
            params={name: _param(name, value) for name, value in self.sizes.items()},
            source=self.source,
            oracle=given.formula or "formula.py:formula",
            accumulate=given.accumulate,
            arrays=arrays | scratch,
            scalars={
                one.name: _scalar(one, given.scalars.get(one.name))
                for one in kernel.arguments
                if not one.pointer and one.name not in self.sizes
            },
            launch=launch,
            checks=[{"metric": given.metric}],
            profiles=Guess({"normal": ProfileDraft(None, "")}),
            suites=Guess({}),
        )
        return spec_text(draft)

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

    def _array(self, one: TritonArgument) -> ArrayDraft:
        shape, draw = self.given.shapes.get(one.name), self.given.draws.get(one.name)
        marks = [] if shape is not None else ["its shape"]
        if not self.kernel.has_signature:
            marks += ["its dtype", "whether it is read or written"]
        return ArrayDraft(
            role=self._role(one),
            dtype=one.dtype or "float32",
            extents=tuple([next(iter(self.sizes), 1)] if shape is None else shape),
            why=", ".join(marks),
            settings={"draw": draw} if draw else {},
        )

    def _scratch(self) -> Iterator[tuple[str, ArrayDraft]]:
        """Workspaces behind the arguments that Triton adds; where the kernel uses none, of a byte."""
        programs = " * ".join(f"({each})" for each in self.given.grid)
        for at, size in enumerate(self.kernel.scratch):
            extent = f"{size} * {programs}" if size and programs else max(size, 1)
            gap = f"{GAP} times the programs of the launch" if size and not programs else ""
            settings = {"scratch": "Triton's own"}
            yield (
                f"scratch{at}",
                ArrayDraft(
                    role="workspaces", dtype="uint8", extents=(extent,), why=gap, settings=settings
                ),
            )


def _param(name: str, value: int | None) -> ParamDraft:
    return ParamDraft(_SIZE, name, "its value") if value is None else ParamDraft(value, name, "")


def _scalar(one: TritonArgument, value: float | None) -> ScalarDraft:
    if value is None:
        return ScalarDraft(one.dtype, 1.0, f"{GAP} its value")
    return ScalarDraft(one.dtype, value, "")
