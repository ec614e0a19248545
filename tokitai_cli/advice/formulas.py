"""Changes of a formula that survive checks and profiles, and limits that its bound makes needless."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from tokitai_cli import compare
from tokitai_cli.advice.edit import Advice, Edit
from tokitai_cli.advice.score import cases_of, judged
from tokitai_cli.evidence.changes import left_of
from tokitai_cli.model.case import LoadedSpec
from tokitai_cli.model.judged import ChangesRecord
from tokitai_cli.model.spec import Check, Draw, Profile, Variant

# Profiles that are tried for changes that no profile of the spec tells.
_CANDIDATES: Mapping[str, tuple[Draw, str]] = {
    "normal": (Draw(kind="normal"), "N(0,1)"),
    "exact-int": (Draw(kind="exact-int"), "small integers, whose sums are exact"),
    "log-uniform": (Draw(kind="log-uniform"), "magnitudes over many binades"),
    "uniform": (Draw(kind="uniform", lo=0, hi=1), "one sign"),
    "tiny": (Draw(kind="normal", scale=2.0**-10), "small values, beside which constants show"),
    "wide": (Draw(kind="normal", scale=8), "large values, at which functions saturate"),
    "one-large": (Draw(kind="one-large", scale=1), "one large value in each row"),
    "cancelling": (Draw(kind="cancelling"), "large terms that nearly cancel"),
}
_SECONDS = 20.0
_SHOWN = 3


def of_formulas(loaded: LoadedSpec) -> Iterator[Advice]:
    """For each output that a formula is the oracle of: checks and profiles that would tell more."""
    for name, variant in loaded.spec.variants.items():
        if not variant.by_formula:
            continue
        found: dict[str, list[ChangesRecord]] = {}
        wider: dict[int, list[bool]] = {}
        for case, ready, judgement in judged(cases_of(loaded, name), {}):
            for one in _wrong(judgement):
                found.setdefault(one.output, []).append(one)
            for index, check in enumerate(variant.checks):
                told = compare.covered(case, check, ready.expectations)
                if told is not None:
                    wider.setdefault(index, []).append(told)
        yield from _of_checks(name, variant, found)
        untold = {output: set(left_of(records).untold) for output, records in found.items()}
        yield from _of_profiles(loaded, name, untold)
        for index, said in wider.items():
            if all(said):
                yield _needless(name, index, variant.checks[index])


def _wrong(judgement: compare.Judgement) -> Iterator[ChangesRecord]:
    """What became of changes of the formula, and of the wrong outputs that any output is tried with."""
    yield from judgement.changes
    kept = [one for one in judgement.mutants if not one.told]
    for output in dict.fromkeys(one.output for one in kept):
        every = [
            (one.status, f"the wrong output {one.kind}") for one in kept if one.output == output
        ]
        ends = ("accepted", "not-eligible", "rejected")
        accepted, untold, rejected = ([words for end, words in every if end == one] for one in ends)
        yield ChangesRecord(
            output=output,
            tried=len(accepted) + len(untold) + len(rejected),
            accepted=accepted,
            untold=untold,
            rejected=rejected,
            rows=0,
        )


def _of_checks(
    name: str, variant: Variant, found: Mapping[str, Sequence[ChangesRecord]]
) -> Iterator[Advice]:
    for output, records in found.items():
        accepted = left_of(records).accepted
        if not accepted:
            continue
        bounded = any(
            one.metric == "bound" and one.output in ("", output) for one in variant.checks
        )
        said = f"{name}: the checks of {output} let pass {_shown(accepted)}"
        if bounded:
            yield Advice(f"{said}, on profiles that its bound is not for")
            continue
        check = {"metric": "bound", "output": output, "why": "every rounding of the formula"}
        yield Advice(said, (Edit(("variants", name, "checks"), check, appended=True),))


def _of_profiles(loaded: LoadedSpec, name: str, untold: Mapping[str, set[str]]) -> Iterator[Advice]:
    """The profiles that tell most of what none of the spec's does, until none tells more."""
    left = {(output, words) for output, every in untold.items() for words in every}
    if not left:
        return
    told = _told_by_candidates(loaded, name, left)
    while told:
        best = max(told, key=lambda one: len(told[one] & left))
        seen = told.pop(best) & left
        if not seen:
            break
        left -= seen
        yield _profile(loaded, name, best, [words for _, words in sorted(seen)])
    if left:
        words = [words for _, words in sorted(left)]
        yield Advice(f"{name}: no profile that was tried tells {_shown(words)}, which may be none")


def _told_by_candidates(
    loaded: LoadedSpec, name: str, wanted: set[tuple[str, str]]
) -> dict[str, set[tuple[str, str]]]:
    """What each candidate tells, with the spec's own checks."""
    start = time.monotonic()
    found: dict[str, set[tuple[str, str]]] = {}
    own = loaded.spec.variants[name].profiles
    for key, (draw, told) in _CANDIDATES.items():
        if time.monotonic() - start > _SECONDS:
            break
        known = loaded.spec.profiles.get(key)
        if known is not None and (not own or key in own):
            continue
        if known is None:
            profile = Profile(draw=draw, help=told)
        spec = _with_profile(loaded, name, key, profile if known is None else known)
        for _, _, judgement in judged(cases_of(spec, name, (key,)), {}):
            found[key] = {
                (one.output, words) for one in _wrong(judgement) for words in one.rejected
            } & wanted
    return found


def _with_profile(loaded: LoadedSpec, name: str, key: str, profile: Profile) -> LoadedSpec:
    spec, variant = loaded.spec, loaded.spec.variants[name]
    if variant.profiles:
        variant = msgspec.structs.replace(variant, profiles=[*variant.profiles, key])
    spec = msgspec.structs.replace(
        spec,
        profiles={**spec.profiles, key: profile},
        variants={**spec.variants, name: variant},
    )
    return msgspec.structs.replace(loaded, spec=spec)


def _profile(loaded: LoadedSpec, name: str, key: str, words: Sequence[str]) -> Advice:
    edits = []
    if key not in loaded.spec.profiles:
        draw, told = _CANDIDATES[key]
        given: Any = {k: v for k, v in msgspec.to_builtins(draw).items() if v is not None}
        edits.append(Edit(("profiles", key), {"draw": given, "help": told}))
    if loaded.spec.variants[name].profiles:
        edits.append(Edit(("variants", name, "profiles"), key, appended=True))
    said = f"{name}: no profile tells {_shown(words)}; on {key} the checks reject "
    return Advice(said + ("it" if len(words) == 1 else "them"), tuple(edits))


def _needless(name: str, index: int, check: Check) -> Advice:
    limit = check.tolerances or f"{check.limit:g}"
    at = f"variants.{name}.checks[{index}]"
    of = f" of {check.output}" if check.output else ""
    said = f"{name}: the flat limit {check.metric} {limit}{of} is wider than the bound everywhere"
    return Advice(
        f"{said} that was looked at: it rejects nothing that the bound lets pass", needless=at
    )


def _shown(words: Sequence[str]) -> str:
    more = f"; and {len(words) - _SHOWN} more" if len(words) > _SHOWN else ""
    return "; ".join(words[:_SHOWN]) + more
