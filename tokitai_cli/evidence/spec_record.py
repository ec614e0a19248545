"""What a spec says of the variants that ran, as evidence records it."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence

from tokitai_cli.core.model.contract import ContractRecord, KernelRecord, LimitRecord, ReasonRecord
from tokitai_cli.core.model.evidence import CaseRecord, NonClaimRecord, SourceRecord
from tokitai_cli.core.model.guesses import Guess
from tokitai_cli.core.model.metrics import METRICS
from tokitai_cli.core.model.spec import Check, Property, Spec, Variant
from tokitai_cli.core.model.wording import shape_text
from tokitai_cli.core.python_source import function_text
from tokitai_cli.evidence.queries import GUESSED


def contract(
    spec: Spec,
    path: str,
    cases: Sequence[CaseRecord],
    sources: Mapping[str, SourceRecord],
    shipped: Mapping[str, str],
) -> ContractRecord:
    """The contract of the variants, shapes and profiles of the `cases`; of all where there are none.

    shipped: code of built-in formulas, by their names; that of others is in `sources`.
    """
    ran = {case.variant for case in cases} or set(spec.variants)
    digests = {source.path: digest for digest, source in sources.items()}
    drawn = {case.profile for case in cases}
    profiles = {name: one.help for name, one in spec.profiles.items() if name in drawn}
    return ContractRecord(
        op=spec.op,
        title=spec.title,
        summary=spec.summary.strip(),
        path=path,
        variants={
            name: _kernel(one, digests.get(one.source, ""), _code(one.oracle, sources, shipped))
            for name, one in spec.variants.items()
            if name in ran
        },
        shapes=_shapes(spec, cases),
        profiles=[ReasonRecord(subject=name, why=text) for name, text in profiles.items() if text],
    )


def unconfirmed(guess: Guess) -> NonClaimRecord:
    """What a mark in spec or formula leaves open."""
    about = f", {'.'.join(map(str, guess.key))}" if guess.key else ""
    text = f"an unconfirmed guess: {guess.words} ({guess.place}{about})"
    return NonClaimRecord(text=text, source=GUESSED)


def _code(oracle: str, sources: Mapping[str, SourceRecord], shipped: Mapping[str, str]) -> str:
    file, own, name = oracle.rpartition(":")
    if not own:
        return shipped.get(oracle, "")
    path = posixpath.normpath(file)
    texts = (one.text for one in sources.values() if posixpath.normpath(one.path) == path)
    return function_text(next(texts, None) or "", name)


def _kernel(variant: Variant, digest: str, code: str) -> KernelRecord:
    return KernelRecord(
        title=variant.title,
        formula=variant.formula,
        source=variant.source,
        source_sha256=digest,
        lowering=variant.lowering,
        backend=variant.backend,
        kernels=list(dict.fromkeys(launch.kernel for launch in variant.launches)),
        oracle=variant.oracle,
        bytes=_count(variant.work.bytes),
        flops=_count(variant.work.flops),
        code=code,
        limits=[*map(_check, variant.checks), *map(_property, variant.properties)],
    )


def _count(expression: str | int) -> str:
    return str(expression) if expression else ""


def _check(asked: Check) -> LimitRecord:
    return LimitRecord(
        name=asked.metric,
        output=asked.output,
        against=asked.against,
        limit=asked.limit if METRICS[asked.metric].limited else 0.0,
        tolerances=asked.tolerances,
        profiles=asked.profiles,
        why=asked.why,
    )


def _property(asked: Property) -> LimitRecord:
    return LimitRecord(
        name=asked.name,
        output=asked.output,
        against="",
        limit=None,
        tolerances="",
        profiles=asked.profiles,
        why=asked.why,
    )


def _shapes(spec: Spec, cases: Iterable[CaseRecord]) -> list[ReasonRecord]:
    """Why suites have those of their shapes that ran; each reason once."""
    ran = {shape_text(case.shape) for case in cases}
    plain = {name: param.default for name, param in spec.params.items()}
    found = {}
    for entry in (one for suite in spec.suites.values() for one in suite if one.why):
        shape = shape_text(plain | entry.shape)
        if shape in ran:
            found[shape, entry.why] = ReasonRecord(subject=shape, why=entry.why)
    return list(found.values())
