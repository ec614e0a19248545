"""From a selection to cases: crossing, requirements, and what is left out."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from tokitai_cli.core import expressions
from tokitai_cli.core.errors import Location, SpecError, UsageError, near
from tokitai_cli.core.model.case import Case, LoadedSpec, Shape
from tokitai_cli.core.model.evidence import LeftOutRecord
from tokitai_cli.core.model.sizes import params_behind, sizes_at
from tokitai_cli.core.model.spec import Param, Spec
from tokitai_cli.spec.plan.cases import Filler, shown_shape

MAX_CASES = 100_000


class Selection(msgspec.Struct, frozen=True):
    """What the user asked for; empty fields mean the spec's own choice."""

    #: Values per param, crossed with each other; params that are missing have their default.
    shapes: Mapping[str, tuple[int, ...]] = msgspec.field(default_factory=dict)
    #: Names, empty for all.
    variants: tuple[str, ...] = ()
    profiles: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (0,)
    #: Shapes of that suite instead of `shapes`.
    suite: str | None = None


class Plan(msgspec.Struct, frozen=True):
    """Cases in the order of a run, and combinations that a variant cannot take."""

    cases: tuple[Case, ...]
    left_out: tuple[LeftOutRecord, ...]


class _Point(msgspec.Struct, frozen=True):
    """One shape, with the variants and profiles that the suite gives to it."""

    shape: Shape
    variants: tuple[str, ...]
    profiles: tuple[str, ...]
    empty: bool = False


def plan(loaded: LoadedSpec, selection: Selection) -> Plan:
    """Expand a selection to cases: variant by variant, then shape, profile, seed.

    A combination that a variant cannot take (`requires`, `multiple_of`, `profiles`) is left out
    where a suite or a list brought it up and the variant has another one; a single shape given by
    hand that a selected variant cannot take is a UsageError, as are unknown names and values
    outside a param's min and max. A variant that cannot take the defaults of params that were not
    given is left out too. Raises SpecError with a key where a spec's expressions give numbers that
    no launch can have.
    """
    spec = loaded.spec
    variants = _chosen("variant", selection.variants, spec.variants)
    _chosen("profile", selection.profiles, spec.profiles)
    points = _suite_points(spec, selection) if selection.suite else _points(spec, selection)
    planner = _Planner(loaded, selection)
    profiles = len(selection.profiles) or len(spec.profiles)
    _check_size(len(points) * len(variants) * profiles * len(selection.seeds))
    for variant in variants:
        planner.add_variant(variant, points)
    if not planner.cases:
        raise _nothing(loaded, selection, planner.left_out)
    return Plan(tuple(planner.cases.values()), tuple(planner.left_out))


def case_of(
    loaded: LoadedSpec, variant: str, shape: Shape, profile: str, seed: int, *, empty: bool = False
) -> Case:
    """One case of a plan again, from what names it; `empty` as its suite says. Raises SpecError."""
    filler = Filler(loaded, variant, shape)
    return Case(
        loaded=loaded,
        variant_name=variant,
        shape=shape,
        profile=profile,
        seed=seed,
        buffers=filler.buffers(),
        launches=filler.launches(may_be_empty=empty),
        scalars=filler.scalars(),
        expect_empty=empty,
    )


def example(loaded: LoadedSpec, variant: str) -> Case | None:
    """Case of the first shape that the variant takes: the defaults, else one of a suite; None without.

    It stands for the variant where something is to be known of it that no shape decides.
    """
    planner = _Planner(loaded, Selection())
    suites = (_suite_points(loaded.spec, Selection(suite=name)) for name in loaded.spec.suites)
    for point in itertools.chain(_points(loaded.spec, Selection()), *suites):
        try:
            if not planner.refusal(variant, point) and (
                not point.variants or variant in point.variants
            ):
                profile = next(iter(loaded.spec.profiles))
                return case_of(loaded, variant, point.shape, profile, 0, empty=point.empty)
        except SpecError:
            continue
    return None


def _chosen(what: str, names: Sequence[str], known: Iterable[str]) -> tuple[str, ...]:
    known = tuple(known)
    for name in names:
        if name not in known:
            raise UsageError(f"--{what} {name}: unknown {what}", hint=near(name, known))
    return tuple(dict.fromkeys(names)) or known


def _suite_points(spec: Spec, selection: Selection) -> list[_Point]:
    suite = selection.suite or ""
    if suite not in spec.suites:
        hint = near(suite, spec.suites) or "the spec has no suites; give params instead"
        raise UsageError(f"--suite {suite}: unknown suite", hint=hint)
    if selection.shapes:
        options = ", ".join(f"--{_option(name)}" for name in selection.shapes)
        hint = "give one of the two"
        raise UsageError(f"--suite {suite} already gives the shapes of {options}", hint=hint)
    defaults = {name: param.default for name, param in spec.params.items()}
    return [
        _Point(
            defaults | shape.shape,
            tuple(shape.variants),
            tuple(shape.profiles),
            shape.expect == "empty",
        )
        for shape in spec.suites[suite]
    ]


def _points(spec: Spec, selection: Selection) -> list[_Point]:
    for name, values in selection.shapes.items():
        if name not in spec.params:
            hint = near(name, spec.params)
            raise UsageError(f"--{_option(name)}: {spec.op} has no param {name}", hint=hint)
        if not values:
            raise UsageError(f"--{_option(name)}: no value given")
        for value in values:
            _check_limits(name, spec.params[name], value)
    axes = [selection.shapes.get(name) or (param.default,) for name, param in spec.params.items()]
    _check_size(math.prod(map(len, axes)))
    return [
        _Point(dict(zip(spec.params, values, strict=True)), (), ())
        for values in itertools.product(*axes)
    ]


def _check_limits(name: str, param: Param, value: int) -> None:
    low, high = param.min, param.max
    step = param.multiple_of
    if value < low:
        hint = f"the smallest is {-(-low // step) * step}"
        raise UsageError(f"--{_option(name)} {value}: below the min {low} of {name}", hint=hint)
    if high is not None and value > high:
        hint = f"the largest is {high // step * step}"
        raise UsageError(f"--{_option(name)} {value}: above the max {high} of {name}", hint=hint)
    if value > expressions.MAX_VALUE:
        raise UsageError(f"--{_option(name)} {value}: 2^63 or more", hint="use a smaller value")


def _check_size(count: int) -> None:
    if count > MAX_CASES:
        hint = "use fewer values, or narrow with --variant and --profile"
        raise UsageError(f"{count} combinations, a run has at most {MAX_CASES}", hint=hint)


def _option(name: str) -> str:
    return name.replace("_", "-")


class _Planner:
    """Collects cases and left-out combinations."""

    def __init__(self, loaded: LoadedSpec, selection: Selection) -> None:
        self.loaded = loaded
        self.spec = loaded.spec
        self.selection = selection
        # By id: a suite may name a combination twice.
        self.cases: dict[str, Case] = {}
        self.left_out: list[LeftOutRecord] = []

    def add_variant(self, name: str, points: Sequence[_Point]) -> None:
        """Add all cases of a variant; raise UsageError where it cannot take what was asked for."""
        refusals: list[tuple[_Point, str]] = []
        taken = 0
        for point in points:
            if point.variants and name not in point.variants:
                continue
            requirement = self.refusal(name, point)
            if requirement:
                refusals.append((point, requirement))
                continue
            taken += 1
            self.add_point(name, point)
        by_hand = self.selection.suite is None
        if refusals and not taken and by_hand:
            self.refuse(name, *refusals[0])
        self.left_out += [
            LeftOutRecord(variant=name, shape=dict(point.shape), requirement=requirement)
            for point, requirement in refusals
        ]

    def refusal(self, name: str, point: _Point) -> str:
        """First requirement that the variant does not meet at this shape, or an empty text."""
        for key, param in self.spec.params.items():
            if point.shape[key] % param.multiple_of:
                return f"{key} % {param.multiple_of} == 0"
        for index, requirement in enumerate(self.spec.variants[name].requires):
            try:
                if not expressions.holds(requirement, sizes_at(self.spec, point.shape)):
                    return requirement
            except SpecError as error:
                key = f"variants.{name}.requires[{index}]"
                where = Location(self.loaded.path, key=key)
                message = f"{error.message}, for {shown_shape(point.shape)}"
                raise SpecError(message, where=where, hint=error.hint) from None
        return ""

    def refuse(self, name: str, point: _Point, requirement: str) -> None:
        """Raise UsageError, unless only params that were not given are to blame."""
        names = params_behind(self.spec.sizes, expressions.names_in(requirement))
        given = [key for key in names if key in self.selection.shapes]
        if not given and name not in self.selection.variants:
            return
        options = " ".join(f"--{_option(key)} {point.shape[key]}" for key in given or names)
        mends = [_nearest(self.spec, name, point.shape, given or names)]
        others = [
            other
            for other in self.selection.variants or self.spec.variants
            if other != name and not self.refusal(other, point)
        ]
        if others:
            narrow = " ".join(f"--variant {other}" for other in others)
            mends.append(f"{narrow} limits the run to variants that take this shape")
        message = f"{options}: {name} requires {requirement}"
        raise UsageError(message, hint="; ".join(hint for hint in mends if hint))

    def add_point(self, name: str, point: _Point) -> None:
        profiles = self.profiles(name, point)
        if not profiles:
            return
        first = case_of(self.loaded, name, point.shape, profiles[0], 0, empty=point.empty)
        for profile, seed in itertools.product(profiles, self.selection.seeds):
            case = msgspec.structs.replace(first, profile=profile, seed=seed)
            self.cases.setdefault(case.id, case)

    def profiles(self, name: str, point: _Point) -> list[str]:
        """Profiles of the spec that selection, suite shape and variant all admit."""
        own = self.spec.variants[name].profiles
        wanted = self.selection.profiles
        kept = [
            profile
            for profile in self.spec.profiles
            if (not wanted or profile in wanted)
            and (not point.profiles or profile in point.profiles)
        ]
        missing = [profile for profile in kept if own and profile not in own]
        if wanted and missing:
            requirement = f"profile in {', '.join(own)}"
            shape = dict(point.shape)
            self.left_out.append(LeftOutRecord(variant=name, shape=shape, requirement=requirement))
        return [profile for profile in kept if profile not in missing]


def _nearest(spec: Spec, variant: str, shape: Shape, names: Sequence[str]) -> str:
    """Mend that names the nearest values of one param that its requirements allow."""
    for name in names:
        param = spec.params[name]
        found = []
        for step in (-1, 1):
            for distance in range(1, 1025):
                value = shape[name] + step * distance
                if value < param.min or (param.max is not None and value > param.max):
                    break
                if _takes(spec, variant, {**shape, name: value}, name):
                    found.append(value)
                    break
        if found:
            return f"nearest {name}: " + " or ".join(map(str, found))
    return ""


def _takes(spec: Spec, variant: str, shape: Shape, name: str) -> bool:
    """Whether the shape meets every requirement that `name` has a part in."""
    requires = spec.variants[variant].requires
    try:
        return shape[name] % spec.params[name].multiple_of == 0 and all(
            expressions.holds(text, sizes_at(spec, shape))
            for text in requires
            if name in params_behind(spec.sizes, expressions.names_in(text))
        )
    except SpecError:
        return False


def _nothing(
    loaded: LoadedSpec, selection: Selection, left_out: Sequence[LeftOutRecord]
) -> UsageError:
    if not left_out:
        what = f"suite {selection.suite}" if selection.suite else loaded.spec.op
        return UsageError(f"{what}: nothing is selected", hint="name other variants or profiles")
    first = left_out[0]
    message = f"nothing to run: {first.variant} requires {first.requirement}"
    return UsageError(f"{message}, not met by {shown_shape(first.shape)}", hint="choose others")
