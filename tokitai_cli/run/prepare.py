"""What a case needs before it meets a device: arrays, expectation, replay. Same for every device."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.deferred import pass_of
from tokitai_cli.core.errors import NotRunError, TokitaiError
from tokitai_cli.core.model.case import Case
from tokitai_cli.core.model.evidence import InputRecord
from tokitai_cli.core.model.expectation import Expectation, Replay, StatedProperty
from tokitai_cli.core.model.settings import Settings
from tokitai_cli.core.model.verdict import Stage
from tokitai_cli.oracles import references
from tokitai_cli.run import child, native_loops
from tokitai_cli.spec import inputs, plan

_T = TypeVar("_T")
# Bytes of float32 copies that the range of an input costs at a time.
_RANGE_CHUNK = 1 << 20


class Clock(msgspec.Struct):
    """Seconds spent per stage, and the stage that was timed last."""

    stage: Stage = Stage.PLAN
    seconds: dict[str, float] = msgspec.field(default_factory=dict)

    def timed(self, stage: Stage, work: Callable[[], _T]) -> _T:
        """What `work` returns; its time is added to the stage, also where it raises."""
        start = time.monotonic()
        self.stage = stage
        try:
            return work()
        finally:
            spent = time.monotonic() - start
            self.seconds[stage] = self.seconds.get(stage, 0.0) + spent


class Prepared(msgspec.Struct, frozen=True):
    """Arrays by name (inputs, in-outs, symbols), their records, and what the oracle says.

    `log` is what a user's draws and oracle printed.
    """

    arrays: Mapping[str, NDArray[Any]]
    records: list[InputRecord]
    expectations: Mapping[str, Expectation]
    replays: Mapping[str, Replay]
    log: str = ""
    properties: tuple[StatedProperty, ...] = ()

    @property
    def later(self) -> bool:
        """Whether an expectation is computed while it is judged."""
        return any(pass_of(one.reference) is not None for one in self.expectations.values())

    @property
    def of_two_runs(self) -> list[StatedProperty]:
        """Properties that compare the run with one on changed arrays."""
        return [stated for stated in self.properties if stated.changed]

    def with_change(self, stated: StatedProperty) -> Prepared:
        """What the other run of a property is given."""
        changed = stated.changed() if stated.changed else {}
        return msgspec.structs.replace(self, arrays={**self.arrays, **changed})

    def for_verdict(self) -> Prepared:
        """The same, for a verdict and no more."""
        found = {
            name: msgspec.structs.replace(one, for_verdict=True)
            for name, one in self.expectations.items()
        }
        return msgspec.structs.replace(self, expectations=found)


class Refusal(msgspec.Struct, frozen=True):
    """A case that could not be prepared: where and why."""

    stage: Stage
    error: TokitaiError
    records: list[InputRecord]


class Drawn(msgspec.Struct, frozen=True):
    """Arrays by name and their records; `log` is what a user's draws printed."""

    arrays: Mapping[str, NDArray[Any]]
    records: list[InputRecord]
    log: list[str]


class Preparation:
    """Prepares a case when it is first asked for, and keeps the result for other devices.

    later: whether a large answer may be computed while it is judged (`core.deferred`).
    """

    def __init__(self, case: Case, settings: Settings, *, later: bool = False) -> None:
        self.case = case
        self._settings = settings
        self._later = later
        self._one_at_a_time = threading.RLock()  # passes may run beside each other
        self._drawn: Drawn | Refusal | None = None
        self._result: Prepared | Refusal | None = None

    def __call__(self, clock: Clock) -> Prepared | Refusal:
        """What the case needs; drawn and computed the first time, and timed then."""
        with self._one_at_a_time:
            if self._result is None:
                drawn = self._draw(clock)
                self._result = (
                    drawn
                    if isinstance(drawn, Refusal)
                    else _expected(
                        self.case, drawn, clock, self._settings.timeout, later=self._later
                    )
                )
            return self._result

    def whole(self, clock: Clock) -> Prepared | Refusal:
        """The same with every answer as a whole, from now on."""
        with self._one_at_a_time:
            if self._later:
                self._later, self._result = False, None
            return self(clock)

    def without_oracle(self, clock: Clock) -> Prepared | Refusal:
        """The arrays alone, for who looks at no output: the oracle is not asked."""
        drawn = self._draw(clock)
        if isinstance(drawn, Refusal):
            return drawn
        return Prepared(drawn.arrays, drawn.records, {}, {})

    def _draw(self, clock: Clock) -> Drawn | Refusal:
        with self._one_at_a_time:
            if self._drawn is None:
                settings = self._settings
                self._drawn = _drawn(self.case, settings.repeat, clock, settings.timeout)
            return self._drawn


def _drawn(case: Case, repetitions: int, clock: Clock, timeout: float) -> Drawn | Refusal:
    """Draw the arrays; memory is checked before anything is allocated.

    Users' draws have `timeout` seconds.
    """
    try:
        _check_size(case, repetitions)
    except NotRunError as error:
        return Refusal(Stage.PLAN, error, [])
    native_loops.provide(case)  # inputs are drawn by them too
    printed = list[str]()
    try:
        draw = functools.partial(inputs.draw, case, timeout=timeout, log=printed.append)
        drawn = clock.timed(Stage.INPUTS, draw)
        records = clock.timed(
            Stage.INPUTS, lambda: [_record(name, one) for name, one in drawn.items()]
        )
    except TokitaiError as error:
        return Refusal(Stage.INPUTS, error, [])
    return Drawn({name: one.array for name, one in drawn.items()}, records, printed)


def _expected(
    case: Case, drawn: Drawn, clock: Clock, timeout: float, *, later: bool
) -> Prepared | Refusal:
    """Ask the oracle, a user's own for `timeout` seconds at most."""
    arrays, printed = drawn.arrays, list(drawn.log)
    try:
        expectations = clock.timed(
            Stage.ORACLE,
            lambda: references.expect(
                case, arrays, timeout=timeout, log=printed.append, later=later
            ),
        )
        replays = clock.timed(
            Stage.ORACLE, lambda: references.replay(case, arrays, None, expectations)
        )
        properties = clock.timed(
            Stage.ORACLE, lambda: references.stated_properties(case, arrays, expectations)
        )
    except TokitaiError as error:
        return Refusal(Stage.ORACLE, error, drawn.records)
    return Prepared(arrays, drawn.records, expectations, replays, "\n".join(printed), properties)


def _check_size(case: Case, repetitions: int) -> None:
    needed = plan.memory_bytes(case, repetitions)
    available = child.available_bytes()
    if available is not None and needed > available:
        raise NotRunError(
            f"the case needs about {child.size_text(needed)} of memory, "
            f"and {child.size_text(available)} are free",
            hint="choose a smaller shape, or a machine with more memory",
        )
    if fault := plan.oversize(case):
        size = child.size_text(needed)
        raise NotRunError(f"{fault}; the case would need about {size}", hint="use a smaller shape")


def _record(name: str, drawn: inputs.Drawn) -> InputRecord:
    smallest, largest, nonfinite = _range(drawn.array)
    return InputRecord(
        name=name,
        dtype=drawn.array.dtype.name,
        shape=list(drawn.array.shape),
        sha256=drawn.sha256,
        smallest=smallest,
        largest=largest,
        nonfinite=nonfinite,
        generator=drawn.generator,
    )


def _range(array: NDArray[Any]) -> tuple[float, float, int]:
    """Smallest and largest finite element (NaN without one) and the count of the others."""
    if array.dtype.kind in "iub":
        if not array.size:
            return float("nan"), float("nan"), 0
        return int(array.min()), int(array.max()), 0
    wide = np.float64 if array.dtype.itemsize == 8 else np.float32
    low, high, nonfinite = np.inf, -np.inf, 0
    flat = array.reshape(-1)
    for start in range(0, flat.size, _RANGE_CHUNK):
        part = flat[start : start + _RANGE_CHUNK].astype(wide)
        finite = np.isfinite(part)
        if not finite.all():
            nonfinite += int(part.size - np.count_nonzero(finite))
            part = part[finite]
        if part.size:
            low, high = min(low, float(part.min())), max(high, float(part.max()))
    return (low, high, nonfinite) if low <= high else (float("nan"), float("nan"), nonfinite)
