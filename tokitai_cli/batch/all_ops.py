"""Every built-in op: a run of its own each, one after the other; their cases run on all cores.

The run loop is that of `run`. Where several cases can run at a time without harm to what is recorded,
the workers of a batch answer them, in the order in which the runs ask.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from tokitai_cli import devices, spec
from tokitai_cli.batch.select.collected import task_of
from tokitai_cli.batch.work.local import LocalExecutor
from tokitai_cli.batch.work.queue import TaskQueue, lot_of
from tokitai_cli.core.model.batch_record import BuildInfo, CaseResult, Reply, Setup, SpecPlace, Task
from tokitai_cli.core.model.case import Case
from tokitai_cli.core.model.device import Device, Probe
from tokitai_cli.core.model.events import AllPlanned, BuildFinished, Listener, Note, silent
from tokitai_cli.core.model.evidence import DeviceRecord
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.run.case_outcome import CaseOutcome
from tokitai_cli.run.commands import called
from tokitai_cli.run.device_passes import DevicePasses
from tokitai_cli.run.device_session import device_record
from tokitai_cli.run.evidence_builder import choose
from tokitai_cli.run.inventory import builtin_specs
from tokitai_cli.run.loop import Run, RunOutcome, verify
from tokitai_cli.run.prepare import Preparation
from tokitai_cli.run.run_options import RunOptions, run_options
from tokitai_cli.spec import plan

# Suite where none is named.
SUITE = "quick"
_WAIT_SECONDS = 1.0
# Of a lot's tasks, beside that of the lot before it: runs ask for their cases in order.
_LATER = 1e-4


def verify_all(listener: Listener = silent, **options: Any) -> tuple[RunOutcome, ...]:
    """Verify the built-in ops one after the other, by name; `options` as those of `run_options`.

    Each runs the suite `quick`, if no other is named. Raises UsageError where an op cannot take the
    options, before anything runs. A run that was ended before its end is the last.
    """
    if options.get("suite") is None:
        options["suite"] = SUITE
    options["watch"] = "off"  # nothing runs beside what takes all cores
    every = [run_options(loaded, **options) for loaded in builtin_specs()]
    cases = [plan.plan(one.loaded, one.selection).cases for one in every]
    chosen = devices.choose(every[0].device, every[0].settings)
    listener(AllPlanned(sum(map(len, cases)) * len(chosen), len(every)))
    jobs = min(len(os.sched_getaffinity(0)), sum(map(len, cases)))
    if jobs < 2 or not _shareable(every[0], chosen):
        return tuple(_until_ended(verify(one, listener) for one in every))
    # One core for each worker, as that many have work.
    settings = msgspec.structs.replace(every[0].settings, threads=1)
    every = [msgspec.structs.replace(one, settings=settings) for one in every]
    with _Workers(every, cases, chosen[0][0], jobs) as workers:
        return tuple(_until_ended(_shared(one, chosen[0], workers, listener) for one in every))


def _shareable(options: RunOptions, chosen: Sequence[tuple[Device, Probe]]) -> bool:
    """Whether cases may run beside each other: on one device that is no machine's only one."""
    alone = options.build_only or options.settings.sanitize
    kept = options.save_arrays or options.save_all_arrays
    return len(chosen) == 1 and not (chosen[0][0].traits.exclusive or alone or kept)


def _until_ended(outcomes: Iterator[RunOutcome]) -> Iterator[RunOutcome]:
    for outcome in outcomes:
        yield outcome
        if outcome.ended_by is not None:
            return


def _shared(
    options: RunOptions, chosen: tuple[Device, Probe], workers: _Workers, listener: Listener
) -> RunOutcome:
    run = Run(options, [chosen], listener)
    run.record(
        f"up to {workers.count} cases ran at a time, of this op and of others, each with one core: "
        "times are of a machine that was shared"
    )
    one = _SharedPass(workers, *chosen, listener)
    return run.over([DevicePasses(one.name, (one,))], [(case,) for case in run.cases])


class _Workers:
    """The cases of all ops, and workers that answer them. Used from one thread."""

    def __init__(
        self,
        every: Sequence[RunOptions],
        cases: Sequence[Sequence[Case]],
        device: Device,
        jobs: int,
    ) -> None:
        flat = [case for several in cases for case in several]
        self.count = jobs
        self._tasks = {case.id: task_of(at, case, device.name) for at, case in enumerate(flat)}
        lots: dict[object, int] = {}
        self._queue = TaskQueue(
            (task, _LATER ** lots.setdefault(lot_of(task), len(lots)))
            for task in self._tasks.values()
        )
        specs = [_place(*pair) for pair in zip(every, cases, strict=True)]
        setup = Setup(settings=every[0].settings, specs=specs, tool="")
        self._executor = LocalExecutor(setup, workers=jobs)
        self._replies: dict[int, Reply] = {}

    def __enter__(self) -> _Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self._executor.__exit__(None, None, None)

    def reply(self, case: Case) -> Reply:
        """The answer to the case; one that found no room beside others is run again alone."""
        task = self._tasks[case.id]
        reply = self._answer(task, self._queue)
        if reply.verdict is not Verdict.NOT_RUN:
            return reply
        while self._executor.running:
            self._collect()
        return self._answer(task, TaskQueue([(task, 1.0)]))

    def _answer(self, task: Task, queue: TaskQueue) -> Reply:
        while task.number not in self._replies:
            self._executor.feed(queue)
            self._collect()
        return self._replies.pop(task.number)

    def _collect(self) -> None:
        for reply in self._executor.collect(_WAIT_SECONDS):
            self._replies[reply.number] = reply


class _SharedPass:
    """Cases on one device, as workers answer them."""

    def __init__(self, workers: _Workers, device: Device, probe: Probe, listener: Listener) -> None:
        self.name = device.name
        self._workers = workers
        self._listener = listener
        self._builds: dict[str, BuildInfo] = {}
        self.record: DeviceRecord = device_record(device, probe)

    @property
    def builds(self) -> Sequence[BuildInfo]:
        """Everything that was built so far."""
        return tuple(self._builds.values())

    def outcomes(self, lot: Sequence[Preparation]) -> list[CaseOutcome]:
        """Outcome of each case."""
        return [self._outcome(self._workers.reply(one.case)) for one in lot]

    def _outcome(self, reply: Reply) -> CaseOutcome:
        result = msgspec.json.decode(reply.result, type=CaseResult)
        self._take(reply.builds)
        self.record = reply.devices[result.device]
        for text in reply.notes:
            self._listener(Note(text))
        return CaseOutcome(
            result.record,
            tuple(result.times_ns),
            result.log,
            result.seconds,
            oracle_log=result.oracle_log,
        )

    def _take(self, builds: Mapping[str, BuildInfo]) -> None:
        """Keep what is new; the worker that built it tells more than one that found it in the cache."""
        for key, built in builds.items():
            known = self._builds.get(key)
            if known is None or (known.cached and not built.cached):
                self._builds[key] = built
                if built.seconds is not None and known is None:
                    made = (self.name, built.record.source, built.cached, built.seconds, built.note)
                    self._listener(BuildFinished(*made))


def _place(options: RunOptions, cases: Sequence[Case]) -> SpecPlace:
    made = choose(cases)
    return SpecPlace(
        digest=options.loaded.digest,
        path=str(options.loaded.path),
        called=called(options.loaded),
        data=spec.file_bytes(options.loaded),
        sources={digest: source.path for digest, source in made.sources.items()},
        oracles=made.oracles,
    )
