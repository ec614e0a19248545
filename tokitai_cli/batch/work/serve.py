"""Answers tasks in a worker process: one case at a time, from build to verdict.

The same code serves a local worker, a worker of a cluster and the pytest plugin.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
from pathlib import Path
from typing import Self

import msgspec

from tokitai_cli import devices, oracles, plan
from tokitai_cli.errors import SpecError, TokitaiError
from tokitai_cli.evidence import timestamp
from tokitai_cli.model import encoding
from tokitai_cli.model.batch import CaseResult, Reply, Setup, SpecPlace, Task
from tokitai_cli.model.case import Case, LoadedSpec
from tokitai_cli.model.device import TRAITS, Probe
from tokitai_cli.model.events import Event, Listener, Note
from tokitai_cli.model.evidence import DeviceRecord
from tokitai_cli.model.verdict import Stage, Verdict
from tokitai_cli.pipeline.case import CaseOutcome, CaseRunner, draft
from tokitai_cli.pipeline.composer import Preparation
from tokitai_cli.pipeline.lane import Lane
from tokitai_cli.pipeline.options import RunOptions
from tokitai_cli.pipeline.recorder import device_record, with_told
from tokitai_cli.pipeline.specs import load

# A GPU's place among those of its machine says nothing of its kind.
_INDEX = re.compile(r"^[0-9]+: ")


class CaseServer:
    """Context manager that answers tasks; holds one child a device, so use it from one thread.

    `gpu` is the index of the GPU that it may use.
    """

    def __init__(self, setup: Setup, *, gpu: int = 0) -> None:
        self._setup = setup
        self._places = {place.digest: place for place in setup.specs}
        self._gpu = gpu
        self._host = socket.gethostname()
        self._runners: dict[str, CaseRunner] = {}
        self._lanes: dict[str, Lane] = {}
        self._notes: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for lane in self._lanes.values():
            lane.replace()

    def serve(self, task: Task) -> Reply:
        """Verdict of the task's case, or that the result on disk is still fresh.

        A spec that does not fit its oracle ends as `not-run` in the stage `spec`. Raises SpecError
        where the spec itself is not there, and OSError where the worker cannot go on.
        """
        runner = self._runner(task.spec)
        options = runner.options
        case = plan.case_of(
            options.loaded, task.variant, task.shape, task.profile, task.seed, empty=task.empty
        )
        lane = self._lane(task.device, options)
        identity = device_identity(lane.probe)
        if task.have_build and lane.probe.available and identity == task.have_device:
            built = lane.built(case)
            if built.key == task.have_build:
                return Reply(
                    number=task.number, fresh=True, build=built.key, device_identity=identity
                )
        place = self._places[task.spec]
        try:
            outcome = runner.run(case, lane, Preparation(case, options))
            # Looked at afterwards too: an oracle is read by the process that runs it.
            _check_unchanged(place, case, lane)
        except TokitaiError as error:
            outcome = _not_run(case, task.device, options, error)
        return self._reply(task, outcome, lane, identity)

    def _reply(self, task: Task, outcome: CaseOutcome, lane: Lane, identity: str) -> Reply:
        record = outcome.record
        device = with_told(device_record(lane.device, lane.probe), lane.told)
        device_digest = hashlib.sha256(msgspec.json.encode(device)).hexdigest()
        result = CaseResult(
            record=record,
            device=device_digest,
            seconds=outcome.seconds,
            times_ns=list(outcome.times_ns),
            log=outcome.log,
            oracle_log=outcome.oracle_log,
            host=self._host,
            finished=timestamp(os.environ),
        )
        builds = {}
        if record.build and record.build not in task.known:
            builds = {b.key: b.info for b in lane.builds if b.key == record.build}
        notes, self._notes = self._notes, []
        return Reply(
            number=task.number,
            result=encoding.line(result),
            verdict=record.verdict,
            reason=record.reason,
            seconds=sum(outcome.seconds.values()),
            build=record.build,
            device=device_digest,
            device_identity=identity,
            builds=builds,
            devices={} if device_digest in task.known else {device_digest: device},
            notes=notes,
        )

    def _runner(self, digest: str) -> CaseRunner:
        if digest not in self._runners:
            place = self._places[digest]
            options = run_options(self._setup, place, load_place(place), gpu=self._gpu)
            arrays = Path(self._setup.arrays or ".") / options.name
            self._runners[digest] = CaseRunner(options, arrays)
        return self._runners[digest]

    def _lane(self, name: str, options: RunOptions) -> Lane:
        if name not in self._lanes:
            device = devices.get(name)
            probe = device.probe(options.settings)
            self._lanes[name] = Lane(device, probe, options, self._listener())
        return self._lanes[name]

    def _listener(self) -> Listener:
        def listen(event: Event) -> None:
            if isinstance(event, Note):
                self._notes.append(event.text)

        return listen


def _check_unchanged(place: SpecPlace, case: Case, lane: Lane) -> None:
    """Raise SpecError where oracle or source are not those that the batch was put together from.

    Its results would be kept as those of another text.
    """
    variant = case.variant
    oracle = place.oracles.get(variant.oracle, "")
    if oracle and oracles.identity(variant, case.loaded.folder) != oracle:
        raise _changed(place, variant.oracle)
    expected = [digest for digest, path in place.sources.items() if path == variant.source]
    if not expected or not lane.probe.available:
        return
    built = lane.built(case).record
    if built.source_sha256 and built.source_sha256 not in expected:
        raise _changed(place, variant.source)


def _changed(place: SpecPlace, what: str) -> SpecError:
    return SpecError(
        f"{place.called}: {what} was changed while the batch ran",
        mend="run the batch again; --resume keeps what is still fresh",
    )


def load_place(place: SpecPlace) -> LoadedSpec:
    """Read the spec at a place. Raises SpecError where the file is not the one that was meant."""
    loaded = load(Path(place.path), place.data or None)
    if loaded.digest != place.digest:
        raise SpecError(f"{place.called}: the file is not the one that was sent")
    return loaded


def run_options(setup: Setup, place: SpecPlace, loaded: LoadedSpec, *, gpu: int = 0) -> RunOptions:
    """Options of the cases of one spec."""
    return RunOptions(
        loaded=loaded,
        selection=plan.Selection(),
        settings=msgspec.structs.replace(setup.settings, gpu=gpu),
        name=loaded.spec.op,
        save_arrays=bool(setup.arrays),
        called=place.called,
    )


def device_identity(probe: Probe) -> str:
    """Digest of what must be alike for a result to stay fresh: class, architecture, model, driver."""
    facts = sorted(
        {
            (fact.name, _INDEX.sub("", fact.value))
            for fact in probe.facts
            if fact.name in TRAITS[probe.device].identifying
        }
    )
    content = msgspec.json.encode([probe.device, probe.device_class, probe.arch, facts])
    return hashlib.sha256(content).hexdigest()


def lost(task: Task, setup: Setup, reason: str) -> Reply:
    """Reply to a task that took its worker down each time: a fault that no kernel has a part in."""
    place = next(place for place in setup.specs if place.digest == task.spec)
    options = run_options(setup, place, load_place(place))
    case = plan.case_of(
        options.loaded, task.variant, task.shape, task.profile, task.seed, empty=task.empty
    )
    record = msgspec.structs.replace(
        draft(case, task.device, options),
        verdict=Verdict.INTERNAL_ERROR,
        stage=Stage.RUN,
        reason=reason,
    )
    device = devices.get(task.device)
    unknown = DeviceRecord(
        name=device.name,
        device_class=device.traits.device_class,
        available=False,
        arch="",
        facts=[],
        missing="the worker was lost",
        mend="",
        non_claims=list(device.non_claims),
    )
    digest = hashlib.sha256(msgspec.json.encode(unknown)).hexdigest()
    result = CaseResult(
        record=record,
        device=digest,
        seconds={},
        times_ns=[],
        log="",
        oracle_log="",
        host="",
        finished=timestamp(os.environ),
    )
    return Reply(
        number=task.number,
        result=encoding.line(result),
        verdict=record.verdict,
        reason=reason,
        device=digest,
        devices={digest: unknown},
    )


def _not_run(case: Case, device: str, options: RunOptions, error: TokitaiError) -> CaseOutcome:
    record = msgspec.structs.replace(
        draft(case, device, options),
        verdict=Verdict.NOT_RUN,
        stage=Stage.SPEC,
        reason=str(error),
    )
    return CaseOutcome(record)
