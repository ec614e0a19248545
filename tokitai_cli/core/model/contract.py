"""What the spec says of a run's kernels, for reports: title, formula, limits and why."""

from __future__ import annotations

import msgspec

from tokitai_cli.core.model.judged import Number, Record


class LimitRecord(Record, frozen=True, kw_only=True):
    """A check or a property that the spec asks for, and why.

    output: empty for every output. limit: None for a property, whose limit the oracle derives.
    tolerances: of a check with an absolute and a relative one, in words. profiles: empty for all.
    """

    name: str
    output: str
    against: str
    limit: Number | None
    tolerances: str
    profiles: list[str]
    why: str


class KernelRecord(Record, frozen=True, kw_only=True):
    """A variant that ran. source: relative to the spec, with the sha256 of its text.

    lowering, backend: ids under which a compiler or library knows it, empty where it has none.
    kernels: names, in the order of their launches. oracle: what knows the right answer.
    bytes, flops: expressions of the parameters for what a launch sequence moves and does; empty where
    the spec does not say. code: the function that gave the reference, as it was executed, with what of
    its file it leads to; empty where it is not known, and in older evidence.
    """

    title: str
    formula: str
    source: str
    source_sha256: str
    lowering: str
    backend: str
    kernels: list[str]
    oracle: str
    limits: list[LimitRecord]
    bytes: str = ""
    flops: str = ""
    code: str = ""


class ReasonRecord(Record, frozen=True, kw_only=True):
    """Why the spec has a shape or a profile: `subject` names it."""

    subject: str
    why: str


class ContractRecord(Record, frozen=True, kw_only=True):
    """The spec's own words for what was judged; `path` as a command line names the spec."""

    op: str
    title: str
    summary: str
    path: str
    variants: dict[str, KernelRecord]
    shapes: list[ReasonRecord] = msgspec.field(default_factory=list)
    profiles: list[ReasonRecord] = msgspec.field(default_factory=list)
