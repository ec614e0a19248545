"""What the shapes of a spec's suites never are: unequal, other, with a tail, of several blocks."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

import msgspec

from tokitai_cli.adequacy.advice.edit import Advice, Edit
from tokitai_cli.adequacy.advice.launched_kernels import kernels_in, said_at
from tokitai_cli.core.errors import TokitaiError
from tokitai_cli.core.expressions import MAX_LENGTH, caps_of, holds, names_in
from tokitai_cli.core.model.case import LoadedSpec, Shape
from tokitai_cli.core.model.sizes import params_behind, sizes_at
from tokitai_cli.core.model.spec import Spec
from tokitai_cli.spec import plan

SUITE = "quick"
# What is added to a size until a shape shows what is asked for.
_STEPS = (
    *(1, 3, 7, 16, 19, 32, 33, 64, 100, 128, 256, 257, 300, 512, 1025),
    *(3 * 2**at + 7 for at in range(9, 17)),
)
# Bytes of a case that is proposed at most.
_LARGEST = 1 << 24
_CEILING = re.compile(r"ceil_div\(\s*([^(),]+?)\s*,\s*([^(),]+?)\s*\)")
_WRITTEN_OUT = re.compile(r"\(\s*([^()]+?)\s*\+\s*(\d+)(\s*-\s*1)?\s*\)\s*//\s*(\d+)")


class Goal(msgspec.Struct, frozen=True):
    """A comparison that some shape should meet, and the params that decide it."""

    names: tuple[str, ...]
    comparison: str
    spec: Spec
    #: Of a variant without such a shape.
    said: str
    #: Of a shape that is one.
    why: str

    def met(self, shape: Shape) -> bool:
        """Whether the shape is such a one."""
        return holds(self.comparison, sizes_at(self.spec, shape))


def suite_of(loaded: LoadedSpec) -> str:
    """Suite that shapes are added to."""
    suites = loaded.spec.suites
    return SUITE if SUITE in suites or not suites else next(iter(suites))


def of_shapes(loaded: LoadedSpec) -> Iterator[Advice]:
    """A shape for each goal that no shape of any suite meets; one shape may meet the goals after it."""
    spec = loaded.spec
    proposed: list[Shape] = []
    for name in spec.variants:
        seen = _shapes(loaded, name)
        if not seen:
            continue
        for goal in _goals(loaded, name, seen):
            every = [*seen, *proposed]
            if any(goal.met(shape) for shape in every):
                continue
            found = _search(loaded, name, goal, every)
            said = f"{name}: {goal.said}"
            if found is None:
                yield Advice(f"{said}; no shape that the spec permits changes that")
                continue
            proposed.append(found)
            default = {key: param.default for key, param in spec.params.items()}
            given = {key: size for key, size in found.items() if size != default[key]}
            value = {"shape": given, "why": goal.why}
            yield Advice(said, (Edit(("suites", suite_of(loaded)), value, appended=True),))


def _shapes(loaded: LoadedSpec, variant: str) -> list[Shape]:
    """Shapes of all suites that the variant takes; its default where there is none."""
    found: dict[tuple[int, ...], Shape] = {}
    for suite in loaded.spec.suites:
        try:
            cases = plan.plan(loaded, plan.Selection(variants=(variant,), suite=suite)).cases
        except TokitaiError:
            continue
        found |= {tuple(one.shape.values()): one.shape for one in cases if not one.expect_empty}
    if not found and (example := plan.example(loaded, variant)):
        return [example.shape]
    return list(found.values())


def _goals(loaded: LoadedSpec, name: str, seen: list[Shape]) -> Iterator[Goal]:
    spec, variant = loaded.spec, loaded.spec.variants[name]
    words = set(re.findall(r"\w+", str(msgspec.to_builtins(variant))))
    roles = (variant.inputs, variant.outputs, variant.inout, variant.workspaces)
    extents = (extent for role in roles for one in role.values() for extent in one.shape)
    sizes = {word for extent in extents for word in names_in(str(extent))}
    sizes, words = ({*params_behind(spec.sizes, names)} for names in (sizes, words))
    used = [one for one in spec.params if one in words]
    for a, b in itertools.combinations([one for one in used if one in sizes], 2):
        said = f"{a} and {b} are equal in every shape: a kernel that mixes them up would pass"
        yield Goal((a, b), f"{a} != {b}", spec, said, f"{a} and {b} differ")
    for a in used:
        values = {shape[a] for shape in seen}
        if len(values) == 1 and spec.params[a].min != spec.params[a].max:
            (value,) = values
            said = f"{a} is {value} in every shape"
            yield Goal((a,), f"{a} != {value}", spec, said, f"another {a}")
    for extent in dict.fromkeys(str(one) for launch in variant.launches for one in launch.grid):
        yield from _of_grid(_written_out(extent, spec), spec)
    every = (tiles for one in kernels_in(loaded, name).read for tiles in one.tiles)
    for tiles in dict.fromkeys(every):
        names = params_behind(spec.sizes, names_in(tiles.several))
        grown = {*names_in(tiles.step)} & {*names_in(tiles.size)}  # a grid that covers it at once
        known = names and spec.params.keys() >= {*names}
        if known and not (grown and not caps_of(tiles.step)):
            said = f"no shape has three passes and a tail of the loop over {tiles.size} by {tiles.step}"
            said += f", {said_at(loaded, tiles.at)}" if tiles.at is not None else ""
            yield Goal(names, tiles.several, spec, said, f"three passes and a tail of {tiles.size}")


def _written_out(extent: str, spec: Spec) -> str:
    """An extent with derived sizes as the spec has them, where the language of sizes holds that."""
    for size in reversed(spec.sizes):
        own = str(spec.sizes[size])
        told = f"({own})" if re.search(r"\W", own) and extent.strip() != size else own
        longer = re.sub(rf"\b{size}\b", told, extent)
        extent = longer if len(longer) <= MAX_LENGTH else extent
    return extent


def _of_grid(extent: str, spec: Spec) -> Iterator[Goal]:
    """Blocks, and tails of them, of one extent of a grid."""
    names = params_behind(spec.sizes, names_in(extent))
    if not names or not spec.params.keys() >= {*names}:
        return  # a constant, or of a loop's step
    said = f"the grid's {extent} is 1 in every shape: a second block never runs"
    yield Goal(names, f"{extent} > 1", spec, said, "more than one block")
    written_out = _WRITTEN_OUT.findall(extent)
    same = [
        (size, part) for size, n, less, part in written_out if int(n) - bool(less) + 1 == int(part)
    ]
    for size, part in [*_CEILING.findall(extent), *same]:
        if inner := params_behind(spec.sizes, names_in(size)):
            said = (
                f"{part} divides {size} in every shape with several blocks: the guard for the "
                "tail never runs"
            )
            tail = f"({size}) % ({part}) != 0 and ({size}) > ({part})"
            yield Goal(inner, tail, spec, said, f"a tail of {size}")
    for one, cap in caps_of(extent):
        said = (
            f"{one} is at most {cap}, the grid's cap, in every shape: no thread processes a "
            "second element"
        )
        yield Goal(names, f"{one} > {cap}", spec, said, "more than the grid's cap")


def _search(loaded: LoadedSpec, variant: str, goal: Goal, seen: list[Shape]) -> Shape | None:
    """The smallest of some shapes near those of the suites that meets the goal and can be planned."""
    found: list[tuple[int, Shape]] = []
    for base, name, step in itertools.product(seen, goal.names, _STEPS):
        shape = {**base, name: base[name] + step}
        if not goal.met(shape):
            continue
        chosen = {key: (size,) for key, size in shape.items()}
        try:
            cases = plan.plan(loaded, plan.Selection(shapes=chosen, variants=(variant,))).cases
        except TokitaiError:
            continue
        size = max(plan.memory_bytes(one, 1) for one in cases)
        if size <= _LARGEST:
            found.append((size, shape))
            if len(found) >= 4 * len(_STEPS):
                break
    return min(found, key=lambda pair: pair[0])[1] if found else None
