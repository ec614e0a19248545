"""Folders of batches as a conductor leaves them, with made-up results."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from tests import evidence_samples as samples
from tokitai_cli.batch.store.database import Store
from tokitai_cli.core.model.batch_record import (
    BatchEnded,
    Begun,
    BuildInfo,
    CaseResult,
    Done,
    Reply,
    SpecEntry,
)
from tokitai_cli.core.model.evidence import BuildRecord, CaseRecord, DeviceRecord, ToolRecord
from tokitai_cli.core.model.settings import Settings
from tokitai_cli.core.model.wording import shape_text
from tokitai_cli.evidence import encoding

SPEC_TEXT = """\
schema: tokitai/spec/v1
op: gemm-bw
title: Backward of a product
summary: grad_a out of grad_c and b.
params:
  m: {default: 64, help: rows}
  n: {default: 64, help: columns}
  k: {default: 64, help: inner}
variants:
  grad-a:
    title: Gradient with respect to A
    lowering: hip.gemm_bw.grad_a
    backend: rocm_hip
    formula: "grad_A = grad_C B^T"
    source: gemm_bw.hip
    inputs:
      grad_c: {dtype: float16, shape: [m, n]}
      b: {dtype: float16, shape: [k, n]}
    outputs:
      grad_a: {dtype: float16, shape: [m, k]}
    launches:
      - {kernel: grad_a, grid: [1], block: [16], args: [grad_c, b, grad_a]}
    oracle: gemm-bw.grad-a
    checks:
      - {metric: bound, why: worst case over every rounding}
profiles:
  normal: {draw: normal, help: "N(0,1)"}
"""
TOOL = ToolRecord(
    name="tokitai",
    version="0.1.0",
    commit="0123456789abcdef0123456789abcdef01234567",
    python="cpython 3.11.2",
    numpy="2.0.0",
    platform="Linux 6.1.0 x86_64",
)
SOURCE = samples.SOURCE_TEXT.encode()


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def entry(name: str = "gemm-bw", text: str = SPEC_TEXT, **changes: Any) -> SpecEntry:
    fields: dict[str, Any] = {
        "name": name,
        "op": "gemm-bw",
        "digest": digest_of(text),
        "path": f"specs/{name}.yaml",
        "called": name,
        "sources": {samples.SOURCE: "gemm_bw.hip"},
        "oracles": {"gemm-bw.grad-a": "a" * 64},
        "cases": 1,
    }
    return SpecEntry(**(fields | changes))


def begun(specs: Sequence[SpecEntry], total: int, **changes: Any) -> Begun:
    fields: dict[str, Any] = {
        "tool": TOOL,
        "tool_digest": "9" * 64,
        "settings": Settings(),
        "devices": ["cpu"],
        "selection": ["--seed", "0", "--device", "cpu"],
        "rerun": "tokitai batch specs --seed 0 --device cpu",
        "specs": list(specs),
        "shard": "",
        "total": total,
        "left_out": 0,
        "started": "2023-11-14T22:13:20Z",
        "resumed": False,
    }
    return Begun(**(fields | changes))


def ended(how: str = "whole", **changes: Any) -> BatchEnded:
    fields: dict[str, Any] = {
        "how": how,
        "finished": "2023-11-14T22:13:29Z",
        "seconds": 9.0,
        "notes": [],
    }
    return BatchEnded(**(fields | changes))


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """A case of a batch with all that comes along with it."""

    record: CaseRecord
    name: str = "gemm-bw"
    device: DeviceRecord = msgspec.field(default_factory=samples.device)
    build: BuildRecord | None = msgspec.field(default_factory=samples.build)
    build_key: str = samples.BUILD
    log: str = ""
    oracle_log: str = ""
    host: str = "node-1"
    kept: bool = False

    @property
    def id(self) -> str:
        record = self.record
        return f"{self.name}{record.key.removeprefix(record.op)}"

    def finished(self, number: int) -> tuple[Done, Reply]:
        """What a conductor commits."""
        device = hashlib.sha256(msgspec.json.encode(self.device)).hexdigest()
        key = self.build_key if self.build is not None else ""
        record = msgspec.structs.replace(self.record, build=key)
        result = CaseResult(
            record=record,
            device=device,
            seconds={"run": 0.25},
            times_ns=[1000, 1100],
            log=self.log,
            oracle_log=self.oracle_log,
            host=self.host,
            finished="2023-11-14T22:13:25Z",
        )
        builds = {}
        if self.build is not None:
            info = BuildInfo(key=key, record=self.build, log="", seconds=0.5, cached=False, note="")
            builds = {key: info}
        reply = Reply(
            number=number,
            result=encoding.line(result),
            verdict=record.verdict,
            reason=record.reason,
            seconds=0.25,
            build=key,
            device=device,
            device_identity="identity",
            builds=builds,
            devices={device: self.device},
        )
        shape = shape_text(record.shape)
        done = Done(
            id=self.id,
            number=number,
            name=self.name,
            spec=record.spec,
            variant=record.variant,
            shape=record.shape,
            profile=record.profile,
            seed=record.seed,
            device=record.device,
            group=f"{self.name}/{record.variant}/{shape}@{record.device}",
            fingerprint="f" * 64,
            verdict=record.verdict,
            seconds=reply.seconds,
            build=key,
            device_record=device,
            device_identity=reply.device_identity,
        )
        return done, reply


def case(profile: str = "normal", text: str = SPEC_TEXT, **changes: Any) -> CaseRecord:
    """A verified case of the spec."""
    return samples.case(profile, spec=digest_of(text), **changes)


def write(
    path: Path,
    cases: Sequence[Sample],
    start: Begun,
    end: BatchEnded | None,
    texts: Sequence[str] = (SPEC_TEXT,),
) -> Path:
    """Make the folder of a batch; returns its path."""
    with Store.open(path) as store:
        specs = {digest_of(text): text.encode() for text in texts}
        store.begin(start, specs, {samples.SOURCE: SOURCE})
        store.commit(one.finished(number) for number, one in enumerate(cases))
        kept = {one.id for one in cases if one.kept}
        store.keep([done for done in store.done() if done.id in kept])
        if end is not None:
            store.end(end)
    return path
