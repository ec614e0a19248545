"""Answers tasks in a worker process: one case at a time, from build to verdict.

The same code serves a local worker and a worker of a cluster.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import socket
from pathlib import Path
from typing import Self

import msgspec

from tokitai_cli import devices
from tokitai_cli.core.errors import SpecError, TokitaiError
from tokitai_cli.core.model.batch_record import BuildInfo, CaseResult, Reply, Setup, SpecPlace, Task
from tokitai_cli.core.model.case import Case, LoadedSpec
from tokitai_cli.core.model.device import TRAITS, Probe
from tokitai_cli.core.model.events import Event, Listener, Note
from tokitai_cli.core.model.evidence import AgreementRecord, DeviceRecord
from tokitai_cli.core.model.verdict import Stage, Verdict
from tokitai_cli.evidence import encoding, timestamp
from tokitai_cli.run.agreement import agreement
from tokitai_cli.run.case_outcome import CaseOutcome, merged
from tokitai_cli.run.case_record import ended, new_record
from tokitai_cli.run.case_run import RunContext, outputs_of
from tokitai_cli.run.device_session import DeviceSession, device_record
from tokitai_cli.run.prepare import Preparation
from tokitai_cli.run.run_options import RunOptions
from tokitai_cli.run.sanitizing import WatchedPass, tools, watches
from tokitai_cli.run.session import Session
from tokitai_cli.run.specs import load
from tokitai_cli.spec import plan

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
        self._subjects: dict[str, RunContext] = {}
        self._notes: list[str] = []
        self._watched: dict[tuple[str, str], tuple[WatchedPass, ...]] = {}
        settings = msgspec.structs.replace(setup.settings, gpu=gpu)
        self._session = Session(settings, notes_into(self._notes))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()

    def serve(self, task: Task) -> Reply:
        """Verdict of the task's case, or that the result on disk is still fresh.

        Raises SpecError where the spec itself is not there, and OSError where the worker cannot go on.
        """
        subject = self._subject(task.spec)
        case = case_of(task, subject.options.loaded)
        device = self._session.device(devices.get(task.device))
        identity = device_identity(device.probe)
        if task.have_build and device.probe.available and identity == task.have_device:
            with contextlib.suppress(TokitaiError):  # told by the run
                if device.built(case).key == task.have_build:
                    return Reply(
                        number=task.number,
                        fresh=True,
                        build=task.have_build,
                        device_identity=identity,
                    )
        prepared = Preparation(case, self._setup.settings, later=not subject.all_arrays)
        asked = msgspec.structs.replace(subject, with_outputs=bool(task.beside))
        watched = self._watches(task, subject, device) if self._setup.settings.sanitize else ()
        if watched:
            found = (one.outcomes([prepared])[0] for one in watched)
            outcome = functools.reduce(merged, found)
        else:
            outcome = self._session.run(asked, case, device, prepared)
        met = {task.device: outcome.outputs}
        if outcome.outputs is not None:
            for name in task.beside:
                other = self._session.device(devices.get(name))
                met[name] = outputs_of(case, other, prepared)
        apart = agreement(case, {name: met[name] for name in devices.names() if name in met})
        record = watched[0].record if watched else device.record
        builds = [built.info for built in device.builds]
        builds += [built for one in watched for built in one.builds]
        return self._reply(task, outcome, record, builds, identity, apart)

    def _watches(
        self, task: Task, subject: RunContext, device: DeviceSession
    ) -> tuple[WatchedPass, ...]:
        """Passes of the sanitizer over cases of a spec on a device; none where nothing watches it."""
        key = task.spec, device.name
        if key not in self._watched:
            kit = tools(device.device, device.probe, case_by_case=True)
            settings, listener = device.settings, notes_into(self._notes)
            self._watched[key] = watches(kit, subject, device.device, settings, listener)
        return self._watched[key]

    def _reply(
        self,
        task: Task,
        outcome: CaseOutcome,
        device: DeviceRecord,
        built: list[BuildInfo],
        identity: str,
        apart: list[AgreementRecord],
    ) -> Reply:
        record = outcome.record
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
            agreement=apart,
        )
        builds = {}
        if record.build and record.build not in task.known:
            builds = {one.key: one for one in built if one.key == record.build}
        notes = list(self._notes)
        self._notes.clear()
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

    def _subject(self, digest: str) -> RunContext:
        if digest not in self._subjects:
            for known in self._subjects.values():
                known.options.loaded.models.forget()
            place = self._places[digest]
            self._subjects[digest] = subject_of(self._setup, place, load_place(place), self._gpu)
        return self._subjects[digest]


def notes_into(notes: list[str]) -> Listener:
    """A listener that adds what a user should know to `notes`."""

    def listen(event: Event) -> None:
        if isinstance(event, Note):
            notes.append(event.text)

    return listen


def case_of(task: Task, loaded: LoadedSpec) -> Case:
    """The case that a task names."""
    return plan.case_of(loaded, task.variant, task.shape, task.profile, task.seed, empty=task.empty)


def load_place(place: SpecPlace) -> LoadedSpec:
    """Read the spec at a place. Raises SpecError where the file is not the one that was meant."""
    loaded = load(Path(place.path), place.data or None)
    if loaded.digest != place.digest:
        raise SpecError(f"{place.called}: the file is not the one that was sent")
    return loaded


def subject_of(setup: Setup, place: SpecPlace, loaded: LoadedSpec, gpu: int = 0) -> RunContext:
    """What the cases of one spec run with."""
    options = RunOptions(
        loaded=loaded,
        selection=plan.Selection(),
        settings=msgspec.structs.replace(setup.settings, gpu=gpu),
        name=loaded.spec.op,
        called=place.called,
    )
    arrays = Path(setup.arrays) / options.name
    return RunContext(
        options,
        place.sources,
        place.oracles,
        (lambda: arrays) if setup.arrays else None,
        setup.all_arrays,
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
    options = subject_of(setup, place, load_place(place)).options
    case = case_of(task, options.loaded)
    drafted = new_record(case, task.device, options)
    record = ended(drafted, Verdict.INTERNAL_ERROR, Stage.RUN, reason)
    device = devices.get(task.device)
    probe = Probe(
        device=device.name,
        device_class=device.traits.device_class,
        available=False,
        buildable=False,
        arch="",
        missing="the worker was lost",
    )
    unknown = device_record(device, probe)
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
