"""Collects what the stages record while a run goes on, and hands it to the assembly."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable, Sequence

import msgspec

from tokitai_cli import compare, evidence, oracles
from tokitai_cli.evidence import Outcome, Parts
from tokitai_cli.model.case import Case
from tokitai_cli.model.device import Device, Fact, Probe
from tokitai_cli.model.evidence import (
    CaseRecord,
    DeviceRecord,
    Evidence,
    FactRecord,
    LeftOutRecord,
    NonClaimRecord,
    SourceRecord,
    VolatileRecord,
)
from tokitai_cli.model.spec import Spec
from tokitai_cli.pipeline.agreement import Agreements
from tokitai_cli.pipeline.case import CaseOutcome
from tokitai_cli.pipeline.commands import rerun_run
from tokitai_cli.pipeline.lane import Built
from tokitai_cli.pipeline.options import RunOptions

MAX_SOURCE_BYTES = 256 << 10
_FLUSHED = (
    "subnormal numbers: the spec lets them be flushed to zero, and what that loses is allowed"
)
_ENVIRONMENT = (
    *("CXX", "HIPCC", "ROCM_PATH", "CUDA_HOME", "TOKITAI_CACHE", "SOURCE_DATE_EPOCH"),
    *("HSA_OVERRIDE_GFX_VERSION", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"),
    "CUDA_VISIBLE_DEVICES",
)


class Recorder:
    """Everything that goes into the evidence of one run."""

    def __init__(self, options: RunOptions) -> None:
        self._options = options
        self._started = evidence.timestamp(os.environ)
        self._clock = time.monotonic()
        self.cases: list[CaseRecord] = []
        self.notes: list[str] = []
        self._devices: dict[str, DeviceRecord] = {}
        self._sources: dict[str, SourceRecord] = {}
        self._oracles: dict[str, str] = {}
        self._times: dict[str, list[int]] = {}
        self._logs: dict[str, str] = {}
        self._oracle_logs: dict[str, str] = {}
        self._stages: dict[str, dict[str, float]] = {}
        self.agreements = Agreements()

    def device(self, device: Device, probe: Probe) -> None:
        """Record a device as it was found."""
        self._devices[device.name] = DeviceRecord(
            name=device.name,
            device_class=probe.device_class,
            available=probe.available,
            arch=probe.arch,
            facts=[FactRecord(name=f.name, value=f.value, source=f.source) for f in probe.facts],
            missing=probe.missing,
            mend=probe.mend,
            non_claims=list(device.non_claims),
        )

    def told(self, device: str, facts: Iterable[Fact]) -> None:
        """Add what a device's runtime told to what was found of it before."""
        record = self._devices[device]
        known = {(fact.name, fact.source) for fact in record.facts}
        more = [
            FactRecord(name=fact.name, value=fact.value, source=fact.source)
            for fact in facts
            if (fact.name, fact.source) not in known
        ]
        if more:
            self._devices[device] = msgspec.structs.replace(record, facts=[*record.facts, *more])

    def case(self, outcome: CaseOutcome) -> None:
        """Record a case that came to its end."""
        record = outcome.record
        self.cases.append(record)
        self._stages[record.key] = dict(outcome.seconds)
        if outcome.times_ns:
            self._times[record.key] = list(outcome.times_ns)
        if outcome.log:
            self._logs[record.key] = outcome.log
        if outcome.oracle_log:
            self._oracle_logs[record.key] = outcome.oracle_log

    def selected(self, cases: Iterable[Case]) -> None:
        """Record the sources and oracles of the selected variants."""
        for case in {case.variant_name: case for case in cases}.values():
            variant = case.variant
            oracles.require_properties(case)
            self._oracles[variant.oracle] = oracles.identity(variant, case.loaded.folder)
            path = case.loaded.folder / variant.source
            if path.is_file():
                data = path.read_bytes()
                text = data.decode("utf-8", "replace") if len(data) <= MAX_SOURCE_BYTES else None
                digest = hashlib.sha256(data).hexdigest()
                self._sources[digest] = SourceRecord(
                    path=variant.source, bytes=len(data), text=text
                )

    def finish(
        self,
        builds: Sequence[Built],
        left_out: Sequence[LeftOutRecord],
        outcome: Outcome | None,
    ) -> Evidence:
        """Evidence of the run: groups are judged for vacuity, then everything is assembled."""
        groups = compare.groups(self.cases)
        self.cases = compare.settle(self.cases, groups)
        loaded = self._options.loaded
        spec = loaded.spec
        variants = {case.variant for case in self.cases} or set(spec.variants)
        non_claims = [NonClaimRecord(text=text, source="spec") for text in spec.non_claims]
        non_claims += [
            NonClaimRecord(text=text, source=f"variant {name}")
            for name, variant in spec.variants.items()
            if name in variants
            for text in variant.non_claims
        ]
        non_claims += [
            NonClaimRecord(text=_FLUSHED, source=f"variant {name}")
            for name, variant in spec.variants.items()
            if name in variants and variant.flush_to_zero
        ]
        non_claims += _unjudged_properties(spec, self.cases)
        return evidence.assemble(
            Parts(
                name=self._options.name,
                rerun=rerun_run(self._options),
                tool=evidence.tool_record(),
                volatile=self._volatile(builds),
                cases=self.cases,
                specs={
                    loaded.digest: SourceRecord(
                        path=str(loaded.path.name),
                        bytes=len(loaded.text.encode()),
                        text=loaded.text,
                    )
                },
                sources=self._sources,
                oracles=self._oracles,
                builds={built.key: built.record for built in builds},
                devices=self._devices,
                groups=groups,
                left_out=left_out,
                non_claims=non_claims,
                outcome=outcome,
                agreement=self.agreements.records(deterministic=True),
            )
        )

    def _volatile(self, builds: Sequence[Built]) -> VolatileRecord:
        artifacts = {built.key: built.artifact for built in builds if built.artifact is not None}
        logs = {key: str(artifact.log_path) for key, artifact in artifacts.items()}
        logs |= {
            built.key: str(built.error.log_path)
            for built in builds
            if built.error is not None and built.error.log_path is not None
        }
        notes = [artifact.note for artifact in artifacts.values() if artifact.note]
        return VolatileRecord(
            started=self._started,
            finished=evidence.timestamp(os.environ),
            seconds=time.monotonic() - self._clock,
            case_times_ns=self._times,
            stage_seconds=self._stages,
            build_seconds={key: artifact.seconds for key, artifact in artifacts.items()},
            build_cached={key: artifact.cached for key, artifact in artifacts.items()},
            build_logs=logs,
            kernel_logs=self._logs,
            oracle_logs=self._oracle_logs,
            agreement=self.agreements.records(deterministic=False),
            environment={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
            notes=[*self.notes, *notes],
        )


def _unjudged_properties(spec: Spec, cases: Sequence[CaseRecord]) -> list[NonClaimRecord]:
    """Properties that the spec asks for and that no case of the run had a place for."""
    judged = {(case.variant, one.name) for case in cases for one in case.properties}
    ran = {case.variant for case in cases if case.outputs}
    return [
        NonClaimRecord(
            text=f"property {asked.name}: no case of this run judged it", source=f"variant {name}"
        )
        for name, variant in spec.variants.items()
        if name in ran
        for asked in variant.properties
        if (name, asked.name) not in judged
    ]
