"""Arguments by value that a kernel branches on, and values of them that no case has."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tokitai_cli.adequacy.advice.drawn_values import cases_of_suites, fits, number_at
from tokitai_cli.adequacy.advice.edit import Advice, Edit
from tokitai_cli.adequacy.advice.launched_kernels import LaunchedKernel, Passed, kernels_in, said_at
from tokitai_cli.adequacy.advice.made_params import free_name, of_whole
from tokitai_cli.adequacy.advice.suite_shapes import suite_of
from tokitai_cli.core import expressions
from tokitai_cli.core.errors import SpecError
from tokitai_cli.core.model.case import Case, LoadedSpec
from tokitai_cli.core.model.sizes import params_behind, sizes_at
from tokitai_cli.cpp.value_branches import Way, ways_of

_NEAR = 12  # values of a param on both sides of its own that are tried


class Untested(NamedTuple):
    """A way that no case's argument takes, and the line that has the comparison."""

    passed: Passed
    way: Way
    at: str

    @property
    def shown(self) -> str:
        """What the argument is called: by the spec, where it is a scalar or a param there."""
        text = self.passed.text
        return text if text.isidentifier() else self.passed.name.rpartition(".")[2]

    @property
    def said(self) -> str:
        """What no case has."""
        return f"{self.shown} is {self.way.words} in no case, and {self.at} tests that"


def untested(loaded: LoadedSpec, name: str) -> list[Untested]:
    """Values of a variant's arguments that its kernels tell from others and that no case passes."""
    cases = cases_of_suites(loaded, name)
    found: dict[tuple[str, float], Untested] = {}
    for kernel in kernels_in(loaded, name).read if cases else ():
        for path, passed in kernel.numbers.items():
            values = [number_at(case, passed.text) for case in cases]
            key = passed.text if passed.text.isidentifier() else path
            for way in () if passed.is_size or None in values else _ways(kernel, path):
                taken = any(value is not None and way.takes(value) for value in values)
                if not taken and _fits(loaded, name, passed, way.value):
                    one = Untested(passed, way, said_at(loaded, way.at))
                    found.setdefault((key, way.value), one)
    return list(found.values())


def _ways(kernel: LaunchedKernel, path: str) -> list[Way]:
    """Ways at comparisons of an argument with numbers, those that one value alone takes in front."""
    branches = kernel.values.branches_on(path)
    numbers = ((one, kernel.values.number(one.operand)) for one in branches)
    every = [way for one, number in numbers if number is not None for way in ways_of(one, number)]
    return sorted(every, key=lambda way: way.sign != "==")


def _fits(loaded: LoadedSpec, name: str, passed: Passed, value: float) -> bool:
    """Whether the argument's type has a value."""
    scalar = loaded.spec.variants[name].scalars.get(passed.text)
    return fits(value, "int64" if scalar is None else scalar.dtype)


def of_expressions(loaded: LoadedSpec) -> Iterator[Advice]:
    """Advice for such arguments that are no scalars with one number: a shape at which they are so."""
    taken = {*loaded.spec.names}
    for name, variant in loaded.spec.variants.items():
        cases, seen = cases_of_suites(loaded, name), dict[str, list[Untested]]()
        for one in untested(loaded, name):
            scalar = variant.scalars.get(one.passed.text)
            if scalar is None and one.passed.text.lstrip("-").isdigit():
                seen.setdefault(one.passed.name, []).append(one)
            elif scalar is None or isinstance(scalar.value, str):
                text = str(one.passed.text if scalar is None else scalar.value)
                yield _by_shape(loaded, name, cases, text, one)
        for every in seen.values():
            yield _by_param(loaded, name, every, taken)


def _by_shape(
    loaded: LoadedSpec, name: str, cases: Sequence[Case], text: str, one: Untested
) -> Advice:
    """A shape at which an expression goes the way."""
    found = _solved(loaded, cases, text, one)
    if found is None:
        said = f"{name}: {one.said}; no value of a param near those of the suites changes that"
        return Advice(said)
    param, value = found
    edits = []
    if value < loaded.spec.params[param].min:
        edits.append(Edit(("params", param, "min"), value, instead=True))
    edits.append(_shape(loaded, name, {param: value}, f"{one.shown} is {one.way.words}"))
    return Advice(f"{name}: {one.said}", tuple(edits))


def _by_param(loaded: LoadedSpec, name: str, every: Sequence[Untested], taken: set[str]) -> Advice:
    """A number of the launch made to follow from a param."""
    own = re.sub(r"\W+", "_", every[0].shown).strip("_")
    passed, values = every[0].passed, [one.way.value for one in every]
    said = f"{name}: {'; '.join(dict.fromkeys(one.said for one in every))}"
    made = of_whole(own, int(passed.text), values)
    if made is None:
        return Advice(f"{said}; let its value follow from a param")
    free = free_name(made.name, taken)
    taken.add(free)
    edits = [
        Edit(("params", free), made.param),
        Edit(passed.place, made.expression.replace(made.name, free), instead=True),
    ]
    edits += [_shape(loaded, name, {free: value}, why) for value, why in made.others]
    return Advice(said, tuple(edits))


def _shape(loaded: LoadedSpec, name: str, sizes: dict[str, int], why: str) -> Edit:
    shape: dict[str, object] = {"shape": sizes, "why": why}
    shape |= {"variants": [name]} if len(loaded.spec.variants) > 1 else {}
    return Edit(("suites", suite_of(loaded)), shape, appended=True)


def _solved(
    loaded: LoadedSpec, cases: Sequence[Case], text: str, one: Untested
) -> tuple[str, int] | None:
    """A param and its value, near those of the suites and 0, at which the argument goes that way."""
    spec = loaded.spec
    default = {key: param.default for key, param in spec.params.items()}
    for param in params_behind(spec.sizes, expressions.names_in(text, real=True)):
        known = {default[param], *(case.shape[param] for case in cases)}
        near = (range(value - _NEAR, value + _NEAR + 1) for value in sorted({0, *known}))
        for value in sorted({one for one in itertools.chain(*near) if one >= 0}):
            try:
                sizes = sizes_at(spec, {**default, param: value})
                met = one.way.takes(expressions.evaluate_real(text, sizes))
            except SpecError:
                continue
            most = spec.params[param].max
            if met and (most is None or value <= most):
                return param, value
    return None
