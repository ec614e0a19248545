"""A variant at a shape: buffers and launches with their numbers filled in."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from tokitai_cli import expressions
from tokitai_cli.dtypes import FORMATS
from tokitai_cli.errors import Location, SpecError
from tokitai_cli.model.case import (
    BufferArg,
    BufferPlan,
    Case,
    LaunchPlan,
    LoadedSpec,
    Role,
    ScalarValue,
    Shape,
)
from tokitai_cli.model.spec import Buffer, Launch, ScalarArg, Variant
from tokitai_cli.plan.scalars import pack

# The limits of both HIP and CUDA: "hipDeviceProp_t" (maxGridSize) in the HIP API reference; CUDA C++
# Programming Guide, table "Technical Specifications".
MAX_GRID = (2**31 - 1, 65_535, 65_535)
# What dim3 holds. How many threads a block may have is the device's to say, in its runtime's words.
MAX_BLOCK = 2**32 - 1
MAX_SHARED_BYTES = 2**31 - 1

_ROLES = {
    Role.INPUT: "inputs",
    Role.OUTPUT: "outputs",
    Role.INOUT: "inout",
    Role.WORKSPACE: "workspaces",
    Role.SYMBOL: "symbols",
}
_T = TypeVar("_T")


class Filler(msgspec.Struct, frozen=True):
    """Fills a variant's expressions with one shape; errors name key and shape."""

    loaded: LoadedSpec
    variant_name: str
    shape: Shape

    @property
    def variant(self) -> Variant:
        """The variant's part of the spec."""
        return self.loaded.spec.variants[self.variant_name]

    def buffers(self) -> tuple[BufferPlan, ...]:
        """Buffers of all roles: inputs, outputs, inout, workspaces, symbols."""
        plans = []
        for role, key in _ROLES.items():
            for name, buffer in getattr(self.variant, key).items():
                shape = []
                for index, text in enumerate(buffer.shape):
                    at = f"{key}.{name}.shape[{index}]"
                    extent = self.number(at, text)
                    if extent < 0:
                        raise self.fault(at, f"an extent of {extent}")
                    shape.append(extent)
                constant = self.constant(buffer)
                dtype, extents = buffer.dtype, tuple(shape)
                plans.append(BufferPlan(name, role, dtype, extents, buffer.init, constant))
        return tuple(plans)

    def constant(self, buffer: Buffer) -> float | None:
        """Value that the buffer is declared to hold throughout at this shape, or None."""
        said = buffer.constant
        if said is None or (said.when and not expressions.holds(said.when, self.shape)):
            return None
        return float(said.value) if isinstance(said.value, bool) else said.value

    def launches(self, *, may_be_empty: bool) -> tuple[LaunchPlan, ...]:
        """Fill the launches, in order. With `may_be_empty`, those with an empty grid are left out."""
        plans = []
        for index, launch in enumerate(self.variant.launches):
            key = f"launches[{index}]"
            grid = self.extents(f"{key}.grid", launch.grid)
            if may_be_empty and 0 in grid:
                continue
            self.check_grid(f"{key}.grid", grid)
            block = self.extents(f"{key}.block", launch.block)
            self.check_block(f"{key}.block", block)
            shared = self.number(f"{key}.shared", launch.shared)
            if not 0 <= shared <= MAX_SHARED_BYTES:
                raise self.fault(f"{key}.shared", f"{shared} bytes of shared memory")
            args = self.arguments(f"{key}.args", launch)
            plans.append(LaunchPlan(index, launch.kernel, grid, block, shared, args))
        return tuple(plans)

    def arguments(self, key: str, launch: Launch) -> tuple[BufferArg | ScalarValue, ...]:
        """Arguments of a launch, buffers by name."""
        variant = self.variant
        buffers = {*variant.inputs, *variant.outputs, *variant.inout, *variant.workspaces}
        args: list[BufferArg | ScalarValue] = []
        for index, argument in enumerate(launch.args):
            if argument in buffers:
                args.append(BufferArg(str(argument)))
            elif isinstance(argument, str) and argument in variant.scalars:
                args.append(self.scalar(argument, variant.scalars[argument]))
            else:
                value = self.number(f"{key}[{index}]", argument)
                bits = value.to_bytes(8, "little", signed=True)
                args.append(ScalarValue(str(argument), "", bits, str(value)))
        return tuple(args)

    def scalar(self, name: str, scalar: ScalarArg) -> ScalarValue:
        """Fill a scalar argument in its dtype."""
        key = f"scalars.{name}.value"
        value = scalar.value
        number: float
        if not isinstance(value, str):
            number = value
        elif scalar.dtype in FORMATS:
            number = self.located(key, lambda: expressions.evaluate_real(value, self.shape))
        else:
            number = self.number(key, value)
        bits, shown = self.located(key, lambda: pack(number, scalar.dtype))
        return ScalarValue(name, scalar.dtype, bits, shown)

    def extents(self, key: str, texts: list[int | str]) -> tuple[int, int, int]:
        """Numbers of a grid or block, filled up with 1."""
        values = [self.number(f"{key}[{index}]", text) for index, text in enumerate(texts)]
        x, y, z = (*values, 1, 1)[:3]
        return x, y, z

    def check_grid(self, key: str, grid: tuple[int, int, int]) -> None:
        """Raise SpecError for a grid without blocks. One too large is the shape's fault: `oversize`."""
        for index, extent in enumerate(grid):
            if extent < 1:
                mend = "round up with ceil_div, or exclude the shape with `requires`"
                raise self.fault(f"{key}[{index}]", f"a grid extent of {extent}", mend)

    def check_block(self, key: str, block: tuple[int, int, int]) -> None:
        """Raise SpecError for a block that cannot be written as a launch's."""
        for index, extent in enumerate(block):
            if not 1 <= extent <= MAX_BLOCK:
                at = f"{key}[{index}]"
                raise self.fault(at, f"block extent {extent} is not in 1 to {MAX_BLOCK}")

    def number(self, key: str, text: str | int) -> int:
        """Value of the expression at `key`."""
        return self.located(key, lambda: expressions.evaluate(text, self.shape))

    def located(self, key: str, compute: Callable[[], _T]) -> _T:
        """Call `compute`; its SpecError gets this variant's key and shape."""
        try:
            return compute()
        except SpecError as error:
            raise self.fault(key, error.message, error.mend) from None

    def fault(self, key: str, message: str, mend: str = "") -> SpecError:
        """Error at a key of the variant, to be raised by the caller."""
        where = Location(self.loaded.path, key=f"variants.{self.variant_name}.{key}")
        return SpecError(f"{message}, for {shown_shape(self.shape)}", where=where, mend=mend)


def shown_shape(shape: Shape) -> str:
    """Text such as m = 64, n = 1."""
    return ", ".join(f"{name} = {value}" for name, value in shape.items()) or "no params"


def oversize(case: Case) -> str:
    """The first launch of `case` whose grid no device takes, in words; empty where there is none."""
    for launch in case.launches:
        for axis, extent, limit in zip("xyz", launch.grid, MAX_GRID, strict=True):
            if extent > limit:
                return (
                    f"launch {launch.index} ({launch.kernel}) has {extent} blocks along {axis}, "
                    f"and a grid has at most {limit}"
                )
    return ""
