"""Collects what the stages record while a run goes on, and hands it to the assembly."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from tokitai_cli import evidence
from tokitai_cli.core import flags, native, parallel, resources, storage
from tokitai_cli.core.model.batch_record import BuildInfo
from tokitai_cli.core.model.case import Case, LoadedSpec
from tokitai_cli.core.model.device import TRAITS
from tokitai_cli.core.model.evidence import (
    CaseRecord,
    DeviceRecord,
    Evidence,
    GroupRecord,
    LeftOutRecord,
    MemoryRecord,
    NonClaimRecord,
    SourceRecord,
    ToolRecord,
    VolatileRecord,
)
from tokitai_cli.core.model.options import WATCH_VARIABLE
from tokitai_cli.core.model.spec import Spec
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.core.peak_memory import peak_resident
from tokitai_cli.evidence import Outcome, Parts
from tokitai_cli.evidence.spec_record import contract, unconfirmed
from tokitai_cli.oracles import references
from tokitai_cli.run import native_loops
from tokitai_cli.run.agreement import Agreements
from tokitai_cli.run.case_outcome import CaseOutcome
from tokitai_cli.run.commands import called, rerun_run
from tokitai_cli.run.run_options import RunOptions
from tokitai_cli.run.untried import untried

_FLUSHED = (
    "subnormal numbers: the spec permits flushing them to zero, and the resulting error is allowed"
)
_ENVIRONMENT = (
    *("TOKITAI_CACHE", "SOURCE_DATE_EPOCH", WATCH_VARIABLE, native.SWITCH),
    *(name for traits in TRAITS.values() for name in (*traits.found_by, *traits.obeyed)),
)
# What stands for the folder of the shipped kernels.
_SHIPPED = "{tokitai}/kernels"
_ELSEWHERE = "{elsewhere}"
# Folders of paths that say nothing of a person's machine.
_SYSTEM = frozenset({"usr", "opt", "lib", "lib64"})
# Variables that say where the build cache lies.
_CACHES = ("XDG_CACHE_HOME", "TOKITAI_CACHE")
_NO_REDUCTION = "the spec states that no output is a reduction: no dropped term was tried"


class Chosen(msgspec.Struct, frozen=True):
    """What the selected variants are made of.

    sources by sha256 of their bytes.
    """

    sources: dict[str, SourceRecord] = msgspec.field(default_factory=dict)
    #: Name -> sha256 of the text that decides what it says.
    oracles: dict[str, str] = msgspec.field(default_factory=dict)


class Past(msgspec.Struct, frozen=True):
    """A run whose cases came to their ends before the recorder saw them, maybe on other machines.

    When it started and finished (ISO 8601), the wall time between in seconds, and the tool that ran.
    """

    started: str
    finished: str
    seconds: float
    tool: ToolRecord
    #: What the reason of a case in a vacuous group says besides, empty where the run is whole.
    missing: str = ""


class Watched(msgspec.Struct, frozen=True):
    """What was watched beside a run: a record of each case, builds, and the device where it ran."""

    records: Sequence[CaseRecord] = ()
    builds: Sequence[BuildInfo] = ()
    device: DeviceRecord | None = None


class EvidenceBuilder:
    """Everything that goes into the evidence of one run.

    `rerun` are the shell words that repeat it, where those of `options` do not.
    """

    def __init__(self, options: RunOptions, *, rerun: str = "") -> None:
        self._options = options
        self._rerun = rerun or rerun_run(options)
        self._started = evidence.timestamp(os.environ)
        self._clock = time.monotonic()
        self.cases: list[CaseRecord] = []
        self.notes: list[str] = []
        self.non_claims: list[NonClaimRecord] = []
        self.chosen = Chosen()
        self.devices: dict[str, DeviceRecord] = {}
        self._times: dict[str, list[int]] = {}
        self._logs: dict[str, str] = {}
        self._oracle_logs: dict[str, str] = {}
        self._stages: dict[str, dict[str, float]] = {}
        self._arrays_bytes = 0
        self.agreements = Agreements()
        self.watched = Watched()
        self.tool: Callable[[], ToolRecord] = evidence.tool_record

    def device(self, record: DeviceRecord) -> None:
        """Record a device, or what became known of it since."""
        known = self.devices.get(record.name, record)
        told = {(fact.name, fact.source) for fact in known.facts}
        new = [fact for fact in record.facts if (fact.name, fact.source) not in told]
        self.devices[record.name] = msgspec.structs.replace(record, facts=[*known.facts, *new])

    def case(self, outcome: CaseOutcome) -> None:
        """Record a case that came to its end."""
        record = outcome.record
        self.cases.append(record)
        self._stages[record.key] = dict(outcome.seconds)
        self._arrays_bytes = max(self._arrays_bytes, outcome.arrays_bytes)
        if outcome.times_ns:
            self._times[record.key] = list(outcome.times_ns)
        if outcome.log:
            self._logs[record.key] = outcome.log
        if outcome.oracle_log:
            self._oracle_logs[record.key] = outcome.oracle_log

    def finish(
        self,
        builds: Sequence[BuildInfo],
        left_out: Sequence[LeftOutRecord],
        outcome: Outcome | None,
        past: Past | None = None,
    ) -> Evidence:
        """Evidence of the run: groups are judged for vacuity, then everything is assembled.

        `past` is given for a run that is over; else it was from the recorder's making to now, here.
        """
        if self.watched.device is not None:
            self.device(self.watched.device)
        groups = evidence.groups(self.cases)
        self.cases = _settled(self.cases, groups, past.missing if past is not None else "")
        loaded = self._options.loaded
        return evidence.assemble(
            Parts(
                name=self._options.name,
                rerun=self._rerun,
                settings=self._options.settings,
                tool=self.tool() if past is None else past.tool,
                volatile=self._volatile(builds, past),
                cases=self.cases,
                specs={
                    loaded.digest: evidence.source_record(loaded.path.name, loaded.text.encode())
                },
                sources=self.chosen.sources,
                oracles=self.chosen.oracles,
                builds={built.key: built.record for built in builds},
                devices=self.devices,
                groups=groups,
                left_out=left_out,
                non_claims=[
                    *_non_claims(loaded.spec, self.cases),
                    *map(unconfirmed, loaded.guesses),
                    *_unbuilt_lines(builds),
                    *self.non_claims,
                ],
                outcome=outcome,
                agreement=self.agreements.records(deterministic=True),
                watched=self.watched.records,
                contract=contract(
                    loaded.spec,
                    self._options.called or called(loaded),
                    self.cases,
                    self.chosen.sources,
                    shipped_code(loaded.spec),
                ),
                folders={
                    **_caches(),
                    **_elsewhere(loaded),
                    str(loaded.folder.resolve()): ".",
                    str(loaded.folder): ".",
                    str(resources.kernels_dir()): _SHIPPED,
                },
                read_back=past is not None,
            )
        )

    def _volatile(self, builds: Sequence[BuildInfo], past: Past | None) -> VolatileRecord:
        # What is set here says nothing of a run that is over.
        set_here = {} if past is not None else os.environ
        made = [built for built in builds if built.seconds is not None]
        notes = [built.note for built in made if built.note]
        if past is None and (missing := native_loops.missing()):
            notes.append(f"large cases were computed by numpy alone: {missing}")
        return VolatileRecord(
            started=self._started if past is None else past.started,
            finished=evidence.timestamp(os.environ) if past is None else past.finished,
            seconds=time.monotonic() - self._clock if past is None else past.seconds,
            case_times_ns=self._times,
            stage_seconds=self._stages,
            build_seconds={built.key: built.seconds for built in made if built.seconds is not None},
            build_cached={built.key: built.cached for built in made},
            build_logs={built.key: built.log for built in builds if built.log},
            kernel_logs=self._logs,
            oracle_logs=self._oracle_logs,
            agreement=self.agreements.records(deterministic=False),
            environment={name: set_here[name] for name in _ENVIRONMENT if name in set_here},
            notes=[*self.notes, *notes],
            native="" if past is not None else native_loops.digest(),
            memory=None if past is not None else self._memory(),
        )

    def _memory(self) -> MemoryRecord | None:
        peak = peak_resident()
        if not peak or not self._arrays_bytes:
            return None
        count = self._options.settings.threads or parallel.threads()
        return MemoryRecord(peak_bytes=peak, arrays_bytes=self._arrays_bytes, threads=count)


def choose(cases: Iterable[Case]) -> Chosen:
    """Look up the sources and oracles of the selected variants, users' own oracles as sources too.

    Raises SpecError for what a variant's oracle does not fit, or does not state.
    """
    chosen = Chosen()
    for case in {case.variant_name: case for case in cases}.values():
        variant = case.variant
        if not case.loaded.is_shipped:  # those fit, and start faster
            references.require_fit(case)
        spec, folder = case.loaded.spec, case.loaded.folder
        chosen.oracles.update(references.identities(spec, variant, folder))
        for name in (variant.source, *references.own_files(spec, variant, folder)):
            path = resources.file_of(folder, name)
            if path.is_file():
                data = path.read_bytes()
                chosen.sources[storage.sha256(data)] = evidence.source_record(name, data)
    return chosen


def shipped_code(spec: Spec) -> dict[str, str]:
    """Code of the built-in formulas that a spec names."""
    return references.shipped_code({one.oracle for one in spec.variants.values()})


def _settled(
    cases: Sequence[CaseRecord], groups: Sequence[GroupRecord], missing: str
) -> list[CaseRecord]:
    """`cases` after their groups were judged; `missing` is added to what is said of vacuous ones."""
    settled = evidence.mark_vacuous(cases, groups)
    if not missing:
        return settled
    return [
        msgspec.structs.replace(new, reason=f"{new.reason}; {missing}")
        if new.verdict is Verdict.INCONCLUSIVE and old.verdict is Verdict.VERIFIED
        else new
        for old, new in zip(cases, settled, strict=True)
    ]


def _non_claims(spec: Spec, cases: Sequence[CaseRecord]) -> Iterator[NonClaimRecord]:
    """What the spec and the variants that ran do not claim."""
    ran = {case.variant for case in cases} or set(spec.variants)
    for text in spec.non_claims:
        yield NonClaimRecord(text=text, source="spec")
    for name, variant in spec.variants.items():
        if name in ran:
            own = ((_FLUSHED, variant.flush_to_zero), (_NO_REDUCTION, variant.reduction == "none"))
            scratch = (
                f"workspace {one}, {buffer.scratch}: not judged"
                for one, buffer in variant.workspaces.items()
                if buffer.scratch
            )
            unguarded = (
                f"writes beyond the variable {one.symbol}, which has no guards"
                for one in (*variant.outputs.values(), *variant.inout.values())
                if one.symbol
            )
            said = (text for text, said in own if said)
            for text in (*variant.non_claims, *said, *scratch, *unguarded):
                yield NonClaimRecord(text=text, source=f"variant {name}")
    yield from _unjudged_properties(spec, cases)
    yield from untried(spec, cases)


def _unbuilt_lines(builds: Sequence[BuildInfo]) -> list[NonClaimRecord]:
    """Lines that a build left out, each text once."""
    notes = dict.fromkeys(note for built in builds for note in built.record.notes)
    return [NonClaimRecord(text=note, source="build") for note in notes]


def _elsewhere(loaded: LoadedSpec) -> dict[str, str]:
    """Words for paths that a spec leads to: absolute ones say where things lie on the author's machine.

    Where the spec says them from its own folder, so does the evidence, and `unpack` puts them there.
    """
    found: dict[str, str] = {}
    for variant in loaded.spec.variants.values():
        named = (variant.source, *variant.include, *flags.paths(variant.flags))
        found |= {key: word for name in named for key, word in _behind_link(loaded, name).items()}
        for path in map(Path, named):
            if not path.is_absolute():
                place, word = (os.path.normpath(one) for one in (loaded.folder / path, path))
                if word.startswith(".."):
                    found[place] = word
            elif path.parts[1] not in _SYSTEM:
                found[str(path)] = f"{_ELSEWHERE}/{path.name}"
                found.setdefault(str(path.parent), _ELSEWHERE)
    return found


def _behind_link(loaded: LoadedSpec, name: str) -> dict[str, str]:
    """What `name` links to, or names in a package, with the word by which the spec names it.

    Headers are found beside the file that a link leads to, so that they stand beside the link too.
    """
    given = resources.file_of(loaded.folder, name)
    real = given.resolve()
    if os.path.normpath(loaded.folder / name) == str(real) or real.parts[1] in _SYSTEM:
        return {}
    path = Path(name)
    word = f"{_ELSEWHERE}/{path.name}" if path.is_absolute() else os.path.normpath(path)
    found = {str(real): word}
    if real.is_file() and not real.is_relative_to(loaded.folder.resolve()):
        found[str(real.parent)] = os.path.dirname(word) or "."  # noqa: PTH120
    return found


def _caches() -> dict[str, str]:
    """Words for where the build cache lies: a shell that has the variable finds it again."""
    given = {name: os.environ.get(name, "") for name in _CACHES}
    return {os.path.abspath(path): f"${name}" for name, path in given.items() if path}  # noqa: PTH100


def _unjudged_properties(spec: Spec, cases: Sequence[CaseRecord]) -> list[NonClaimRecord]:
    """Properties that the spec asks for and that no case of the run had a place for."""
    judged = {(case.variant, one.name) for case in cases for one in case.properties}
    ran = {case.variant for case in cases if case.outputs}
    return [
        NonClaimRecord(
            text=f"property {asked.name}: no case of this run could judge it",
            source=f"variant {name}",
        )
        for name, variant in spec.variants.items()
        if name in ran
        for asked in variant.properties
        if (name, asked.name) not in judged
    ]
