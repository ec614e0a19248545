"""A variant at a shape: buffers and launches with their numbers filled in."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TypeVar

import msgspec

from tokitai_cli.core import expressions
from tokitai_cli.core.dtypes import FORMATS
from tokitai_cli.core.errors import Location, SpecError
from tokitai_cli.core.model.buffers import leaves_of, passed_buffers
from tokitai_cli.core.model.case import (
    BufferArg,
    BufferPlan,
    Case,
    LaunchPlan,
    LoadedSpec,
    Role,
    ScalarValue,
    Shape,
    StructArg,
)
from tokitai_cli.core.model.device import WARP_SIZES
from tokitai_cli.core.model.harness import STRUCT_BYTES
from tokitai_cli.core.model.sizes import sizes_at
from tokitai_cli.core.model.spec import WARP_SIZE, Buffer, Expression, Launch, ScalarArg, Variant
from tokitai_cli.core.model.textures import references
from tokitai_cli.spec.plan.scalar_bytes import pack

# The limits of both HIP and CUDA: "hipDeviceProp_t" (maxGridSize) in the HIP API reference; CUDA C++
# Programming Guide, table "Technical Specifications".
MAX_GRID = (2**31 - 1, 65_535, 65_535)
# What dim3 holds. How many threads a block may have is the device's to say, in its runtime's words.
MAX_BLOCK = 2**32 - 1
MAX_SHARED_BYTES = 2**31 - 1
# Of a case: a request with them has to fit a frame of the protocol.
MAX_LAUNCHES = 4096

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
    steps: Shape = {}  # of the loops around a launch
    warp_size: int = WARP_SIZES[0]

    @property
    def sizes(self) -> Shape:
        """Params and derived sizes, by name."""
        return sizes_at(self.loaded.spec, self.shape)

    @property
    def names(self) -> Shape:
        """What expressions may refer to, with its values."""
        return {**self.sizes, WARP_SIZE: self.warp_size, **self.steps}

    @property
    def variant(self) -> Variant:
        """The variant's part of the spec."""
        return self.loaded.spec.variants[self.variant_name]

    def buffers(self) -> tuple[BufferPlan, ...]:
        """Buffers of all roles: inputs, outputs, inout, workspaces, symbols, lists, structs."""
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
                dtype, extents, symbol = buffer.dtype, tuple(shape), buffer.symbol
                init = buffer.init
                plan = BufferPlan(
                    name,
                    role,
                    dtype,
                    extents,
                    init,
                    constant,
                    symbol=symbol,
                    unset=self.unset(name),
                    kept=self.kept(name),
                )
                plans.append(plan)
        structs = (
            BufferPlan(name, Role.STRUCT, "uint8", (STRUCT_BYTES,))
            for name, fields in self.variant.structs.items()
            if fields
        )
        return (*plans, *self.lists({plan.name: plan for plan in plans}), *structs)

    def lists(self, plans: Mapping[str, BufferPlan]) -> Iterator[BufferPlan]:
        """Arrays of pointers: to arrays, or to the slices of one along its first axis."""
        for name, given in self.variant.lists.items():
            points = [(one, 0) for one in given]
            if isinstance(given, str):
                count = plans[given].shape[0]
                size = plans[given].nbytes // max(1, count)
                points = [(given, index * size) for index in range(count)]
            shape = (len(points),)
            yield BufferPlan(name, Role.LIST, "uint64", shape, points=tuple(points))

    def constant(self, buffer: Buffer) -> float | None:
        """Value that the buffer is declared to hold throughout at this shape, or None."""
        said = buffer.constant
        if said is None or (said.when and not expressions.holds(said.when, self.sizes)):
            return None
        return float(said.value) if isinstance(said.value, bool) else said.value

    def unset(self, name: str) -> bool:
        """Whether the buffer need not hold anything at this shape and these scalars."""
        text = self.variant.unset.get(name)
        if text is None:
            return False
        holds = functools.partial(expressions.holds, text, real=True)
        return self.located(f"unset.{name}", lambda: holds({**self.names, **self.values()}))

    def kept(self, name: str) -> float | None:
        """Of a mask by chance, the probability with which an element is 1."""
        random = self.variant.random
        if random is None or random.mask != name:
            return None
        names = {**self.names, **self.values()}
        p = self.located("random.p", lambda: expressions.evaluate_real(random.p, names))
        if not 0 < p < 1:
            raise self.fault("random.p", f"p is {p:g}", "must be above 0 and below 1")
        return p

    def values(self) -> dict[str, int | Fraction]:
        """Values of the scalars that are finite and that no step of a loop changes, exactly."""
        found: dict[str, int | Fraction] = {}
        for one in self.scalars():
            value = self.variant.scalars[one.name].value
            number = (
                expressions.evaluate_exactly(value, self.names) if isinstance(value, str) else value
            )
            if math.isfinite(number):
                found[one.name] = Fraction(number)
        return found

    def launches(self, *, may_be_empty: bool) -> tuple[LaunchPlan, ...]:
        """Fill the launches, in order. With `may_be_empty`, those with an empty grid are left out."""
        plans: list[LaunchPlan] = []
        for index, steps in self.ordered(list(enumerate(self.variant.launches))):
            if len(plans) == MAX_LAUNCHES:
                hint = "choose a smaller shape"
                raise self.fault(f"launches[{index}]", f"more than {MAX_LAUNCHES} launches", hint)
            filler = msgspec.structs.replace(self, steps=steps)
            if (plan := filler.launch(index, may_be_empty=may_be_empty)) is not None:
                plans.append(plan)
        return tuple(plans)

    def ordered(self, launches: Sequence[tuple[int, Launch]]) -> Iterator[tuple[int, Shape]]:
        """Numbers of launches as the host makes them, with the steps of the loops around each."""
        depth = len(self.steps)
        for loop, group in itertools.groupby(launches, lambda pair: pair[1].loops[depth:][:1]):
            inside = list(group)
            if not loop:
                yield from ((index, self.steps) for index, _ in inside)
                continue
            key = f"launches[{inside[0][0]}].loop.count"
            if (count := self.number(key, loop[0].count)) < 0:
                raise self.fault(key, f"{count} steps", "write max(0, ...) if it may be negative")
            for step in range(count):
                steps = {**self.steps, loop[0].name: step}
                yield from msgspec.structs.replace(self, steps=steps).ordered(inside)

    def launch(self, index: int, *, may_be_empty: bool) -> LaunchPlan | None:
        """Fill one launch; None where its grid is empty and may be."""
        launch, key = self.variant.launches[index], f"launches[{index}]"
        grid = self.extents(f"{key}.grid", launch.grid)
        if may_be_empty and 0 in grid:
            return None
        self.check_grid(f"{key}.grid", grid)
        block = self.extents(f"{key}.block", launch.block)
        self.check_block(f"{key}.block", block)
        shared = self.number(f"{key}.shared", launch.shared)
        if not 0 <= shared <= MAX_SHARED_BYTES:
            raise self.fault(f"{key}.shared", f"{shared} bytes of shared memory")
        args = (
            *(self.argument(f"textures.{name}", name) for name in references(self.variant)),
            *(self.argument(f"{key}.args[{at}]", one) for at, one in enumerate(launch.args)),
        )
        kernel = launch.kernel_at(self.warp_size)
        return LaunchPlan(index, kernel, grid, block, shared, args, self.steps)

    def argument(self, key: str, argument: Expression) -> BufferArg | ScalarValue | StructArg:
        """An argument, buffers by name."""
        name = str(argument)
        if name in self.variant.structs:
            found = []
            for at, one in leaves_of(self.variant.structs[name]):
                held = self.argument(f"structs.{name}{at}", one)
                assert not isinstance(held, StructArg)
                found.append((at, held))
            return StructArg(name, tuple(found))
        if name in passed_buffers(self.variant) or name in self.variant.lists:
            return BufferArg(name)
        if name in self.variant.scalars:
            return self.scalar(name, self.variant.scalars[name])
        value = self.number(key, argument)
        bits = value.to_bytes(8, "little", signed=True)
        return ScalarValue(name, "", bits, str(value))

    def scalars(self) -> tuple[ScalarValue, ...]:
        """Scalars of the spec that no step of a loop changes."""
        steps = {loop.name for launch in self.variant.launches for loop in launch.loops}
        return tuple(
            self.scalar(name, scalar)
            for name, scalar in self.variant.scalars.items()
            if not isinstance(scalar.value, str)
            or steps.isdisjoint(expressions.names_in(scalar.value, real=True))
        )

    def scalar(self, name: str, scalar: ScalarArg) -> ScalarValue:
        """Fill a scalar argument in its dtype."""
        key = f"scalars.{name}.value"
        value = scalar.value
        number: float
        if not isinstance(value, str):
            number = value
        elif scalar.dtype in FORMATS:
            number = self.located(key, lambda: expressions.evaluate_real(value, self.names))
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
                hint = "round up with ceil_div, or exclude the shape with `requires`"
                raise self.fault(f"{key}[{index}]", f"a grid extent of {extent}", hint)

    def check_block(self, key: str, block: tuple[int, int, int]) -> None:
        """Raise SpecError for a block that cannot be written as a launch's."""
        for index, extent in enumerate(block):
            if not 1 <= extent <= MAX_BLOCK:
                at = f"{key}[{index}]"
                raise self.fault(at, f"block extent {extent} is not in 1 to {MAX_BLOCK}")

    def number(self, key: str, text: str | int) -> int:
        """Value of the expression at `key`."""
        return self.located(key, lambda: expressions.evaluate(text, self.names))

    def located(self, key: str, compute: Callable[[], _T]) -> _T:
        """Call `compute`; its SpecError gets this variant's key and shape."""
        try:
            return compute()
        except SpecError as error:
            raise self.fault(key, error.message, error.hint) from None

    def fault(self, key: str, message: str, hint: str = "") -> SpecError:
        """Error at a key of the variant, to be raised by the caller."""
        where = Location(self.loaded.path, key=f"variants.{self.variant_name}.{key}")
        shown = shown_shape({**self.shape, **self.steps})
        return SpecError(f"{message}, for {shown}", where=where, hint=hint)


def at_warp_size(case: Case, warp_size: int) -> Case:
    """The case on a device with such warps."""
    if case.warp_size == warp_size:
        return case
    filler = Filler(case.loaded, case.variant_name, case.shape, warp_size=warp_size)
    launches = filler.launches(may_be_empty=case.expect_empty)
    return msgspec.structs.replace(case, launches=launches, warp_size=warp_size)


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
