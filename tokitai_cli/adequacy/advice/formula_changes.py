"""Changes of a formula that survive checks and profiles, and limits that its bound makes needless."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np

from tokitai_cli import judge
from tokitai_cli.adequacy.advice.candidates import HALFWAY, candidates_of
from tokitai_cli.adequacy.advice.drawn_values import unreached
from tokitai_cli.adequacy.advice.edit import Advice, Edit
from tokitai_cli.adequacy.advice.index_draws import kept_draws, profile_name, with_profile
from tokitai_cli.adequacy.advice.kernel_kinds import Asked, met_by, missing_in
from tokitai_cli.adequacy.advice.kinds import KINDS, kinds_of, shown_by
from tokitai_cli.adequacy.advice.score import cases_of, judged
from tokitai_cli.core.dtypes import FORMATS
from tokitai_cli.core.model.case import Case, LoadedSpec
from tokitai_cli.core.model.expectation import Expectation
from tokitai_cli.core.model.judged import ChangesRecord
from tokitai_cli.core.model.spec import Check, Profile, Variant
from tokitai_cli.core.numerics import round_to
from tokitai_cli.evidence.not_covered import NON_FINITE
from tokitai_cli.evidence.survivors import survivors_of
from tokitai_cli.run.prepare import Prepared

_SECONDS = 20.0
_SHOWN = 3


def of_formulas(loaded: LoadedSpec) -> Iterator[Advice]:
    """For each output that a formula is the oracle of: checks and profiles that would tell more."""
    for name, variant in loaded.spec.variants.items():
        asked = missing_in(loaded, name)
        if not variant.by_formula:
            yield from _of_kinds(loaded, name, {*asked}, asked)
            continue
        found: dict[str, list[ChangesRecord]] = {}
        seen, changed = dict[str, None](), set[str]()
        wider: dict[int, list[bool]] = {}
        missing, halves = kinds_of(loaded, name) | asked.keys(), dict[str, bool]()
        for case, ready, judgement in judged(cases_of(loaded, name), {}):
            yield from _not_finite(case, ready)
            missing -= shown_by(case, ready) - asked.keys()
            _add_halves(halves, judgement)
            seen |= dict.fromkeys({**case.variant.outputs, **case.variant.inout})
            changed |= {one.output for one in judgement.changes}
            for one in _wrong(judgement):
                found.setdefault(one.output, []).append(one)
            for index, check in enumerate(variant.checks):
                told = judge.covered(case, check, ready.expectations)
                if told is not None:
                    wider.setdefault(index, []).append(told)
        for output in (one for one in seen if one not in changed):
            yield Advice(
                f"{name}: no change of the formula alters {output}: its checks cannot be scored"
            )
        yield from _of_checks(name, variant, found)
        undetected = {
            output: set(survivors_of(records).undetected) for output, records in found.items()
        }
        proposed = list(_of_profiles(loaded, name, undetected, missing, asked))
        yield from proposed
        missing -= {str(edit.path[-1]) for one in proposed for edit in one.edits}
        yield from _of_kinds(loaded, name, missing, asked)
        yield from _of_halves(loaded, name, halves)
        for index, said in wider.items():
            if all(said):
                yield _needless(name, index, variant.checks[index])


def _not_finite(case: Case, ready: Prepared) -> Iterator[Advice]:
    """Outputs that are mostly no numbers, of a profile without NaN and infinities of its own."""
    if any(one.nonfinite for one in ready.records):
        return
    for name, share in _open_shares(case, ready):
        if share > NON_FINITE:
            said = f"{case.variant_name}: {share:.0%} of {name} is NaN or infinite, or may be,"
            where = f"on the profile {case.profile}, whose inputs are finite"
            yield Advice(f"{said} {where}: use another draw")


def _open_shares(case: Case, ready: Prepared) -> Iterator[tuple[str, float]]:
    """Of each output, how much of it is no number in its dtype, or has no bound that says what it is."""
    written = {**case.variant.outputs, **case.variant.inout}
    for name, told in ready.expectations.items():
        if told.reference.size and not written[name].non_finite:
            yield name, 1 - _numbers(told, written[name].dtype) / told.reference.size


def _overflows(case: Case, ready: Prepared) -> bool:
    """Whether finite inputs give an output that is not: such a profile is never proposed."""
    drawn = any(one.nonfinite for one in ready.records)
    return not drawn and any(share for _, share in _open_shares(case, ready))


def _numbers(told: Expectation, dtype: str) -> int:
    """Elements of an output that are numbers in its dtype, and whose bound says what they are."""
    values = told.reference
    with np.errstate(over="ignore", invalid="ignore"):
        finite = np.isfinite(round_to(values, dtype) if dtype in FORMATS else values)
    for mask in (told.may_be_nan, told.unbounded):
        finite = finite if mask is None else finite & ~mask
    return int(np.count_nonzero(finite))


def _wrong(judgement: judge.Judgement) -> Iterator[ChangesRecord]:
    """What became of changes of the formula, and of the wrong outputs that any output is tried with."""
    yield from judgement.changes
    kept = [one for one in judgement.mutants if not one.shown_only]
    for output in dict.fromkeys(one.output for one in kept):
        every = [
            (one.status, f"the wrong output {one.kind}") for one in kept if one.output == output
        ]
        ends = ("accepted", "not-eligible", "rejected")
        accepted, undetected, rejected = (
            [words for end, words in every if end == one] for one in ends
        )
        yield ChangesRecord(
            output=output,
            tried=len(accepted) + len(undetected) + len(rejected),
            accepted=accepted,
            undetected=undetected,
            rejected=rejected,
            rows=0,
        )


def _of_checks(
    name: str, variant: Variant, found: Mapping[str, Sequence[ChangesRecord]]
) -> Iterator[Advice]:
    for output, records in found.items():
        accepted = survivors_of(records).accepted
        if not accepted:
            continue
        bounded = any(
            one.metric == "bound" and one.output in ("", output) for one in variant.checks
        )
        said = f"{name}: the checks of {output} let pass {_shown(accepted)}"
        if bounded:
            yield Advice(f"{said}, on profiles for which its bound does not apply")
            continue
        check = {"metric": "bound", "output": output, "why": "every rounding of the formula"}
        yield Advice(said, (Edit(("variants", name, "checks"), check, appended=True),))


def _of_profiles(
    loaded: LoadedSpec,
    name: str,
    undetected: Mapping[str, set[str]],
    missing: set[str],
    asked: Mapping[str, Asked],
) -> Iterator[Advice]:
    """The profiles that tell most of what none of the spec's does, until none tells more.

    missing: of several that tell as much, these go first. asked: those that kernels ask for.
    """
    left = {(output, words) for output, every in undetected.items() for words in every}
    if not left:
        return
    told = _told_by_candidates(loaded, name, left)
    while told:
        best = max(told, key=lambda one: (len(told[one] & left), one in missing))
        seen = told.pop(best) & left
        if not seen:
            break
        left -= seen
        yield _profile(loaded, name, best, [words for _, words in sorted(seen)], asked.get(best))
    if left:
        words = [words for _, words in sorted(left)]
        yield Advice(
            f"{name}: no profile that was tried detects {_shown(words)}; these may not be faults"
        )


def _of_kinds(
    loaded: LoadedSpec, name: str, missing: set[str], asked: Mapping[str, Asked]
) -> Iterator[Advice]:
    """Profiles at which kernels of a kind often fail, where the oracle gives numbers there.

    asked: by the variant's kernels; the others are by its formula.
    """
    wider = False
    for kind in sorted(missing):
        if kind == "steep" and wider:
            continue  # they are steep too
        own = asked.get("steep" if kind == "overflowing" else kind)
        if own is None and kind in loaded.spec.profiles:
            continue
        key, profile = kind, _candidate(loaded, name, kind)
        if own is not None:
            known = kind in loaded.spec.profiles
            key = profile_name(own.buffers[0], kind) if known else kind
            profile = _reaching(loaded, name, own, profile)
        said = (
            f"{own.said}, and no case has such values" if own else f"the formula {KINDS[kind][0]}"
        )
        told = with_profile(loaded, name, key, profile)
        skipped = dict[str, str]()
        every = list(judged(cases_of(told, name, (key,)), skipped))
        if every and not any(_overflows(case, ready) for case, ready, _ in every):
            wider |= kind == "overflowing"
            yield Advice(f"{name}: {said}", _added(loaded, name, key, profile))
        elif own is not None and own.kind == kind:
            why = next(iter(skipped.values()), "outputs there are no numbers")
            yield Advice(f"{name}: {said}; on those of {kind}: {why}")


def _reaching(loaded: LoadedSpec, name: str, asked: Asked, profile: Profile) -> Profile:
    """The profile, with draws of their own for arrays that others keep from such values."""
    told = with_profile(loaded, name, asked.kind, profile)
    if not unreached(cases_of(told, name, (asked.kind,)), {asked: met_by(asked)})[0]:
        return profile
    draw = profile.draw or asked.kind
    return msgspec.structs.replace(
        profile, inputs={**profile.inputs, **dict.fromkeys(asked.buffers, draw)}
    )


def _add_halves(found: dict[str, bool], judgement: judge.Judgement) -> None:
    """Take in, of each narrow output, whether halves that go away from 0 are rejected."""
    for one in judgement.mutants:
        if one.kind == judge.HALF_UP:
            found[one.output] = found.get(one.output, False) or one.status == "rejected"


def _of_halves(loaded: LoadedSpec, name: str, halves: Mapping[str, bool]) -> Iterator[Advice]:
    """A profile of ties, where it tells halves that go away from 0 and no other does."""
    untold = {output for output, told in halves.items() if not told}
    if not untold or HALFWAY in loaded.spec.profiles or HALFWAY not in candidates_of(loaded, name):
        return
    spec = with_profile(loaded, name, HALFWAY, _candidate(loaded, name, HALFWAY))
    found = dict[str, bool]()
    for _, _, judgement in judged(cases_of(spec, name, (HALFWAY,)), {}):
        _add_halves(found, judgement)
    if told := [output for output in sorted(untold) if found.get(output)]:
        said = (
            f"{name}: no profile has rounding ties of {', '.join(told)}, so rounding half up "
            "would pass"
        )
        yield Advice(said, _added(loaded, name, HALFWAY))


def _told_by_candidates(
    loaded: LoadedSpec, name: str, wanted: set[tuple[str, str]]
) -> dict[str, set[tuple[str, str]]]:
    """What each candidate tells, with the spec's own checks."""
    start = time.monotonic()
    found: dict[str, set[tuple[str, str]]] = {}
    own = loaded.spec.variants[name].profiles
    for key in candidates_of(loaded, name):
        if time.monotonic() - start > _SECONDS:
            break
        known = loaded.spec.profiles.get(key)
        if known is not None and (not own or key in own):
            continue
        profile = _candidate(loaded, name, key) if known is None else known
        spec = with_profile(loaded, name, key, profile)
        for case, ready, judgement in judged(cases_of(spec, name, (key,)), {}):
            if known is None and _overflows(case, ready):
                continue
            found[key] = {
                (one.output, words) for one in _wrong(judgement) for words in one.rejected
            } & wanted
    return found


def _candidate(loaded: LoadedSpec, name: str, key: str) -> Profile:
    draw, told = candidates_of(loaded, name)[key]
    return Profile(draw=draw, help=told, inputs=kept_draws(loaded, name))


def _added(
    loaded: LoadedSpec, name: str, key: str, profile: Profile | None = None
) -> tuple[Edit, ...]:
    """Edits by which a variant runs a candidate, or a profile of the spec's that it does not run yet."""
    edits = []
    if key not in loaded.spec.profiles:
        new = _candidate(loaded, name, key) if profile is None else profile
        edits.append(Edit(("profiles", key), msgspec.to_builtins(new)))
    if loaded.spec.variants[name].profiles:
        edits.append(Edit(("variants", name, "profiles"), key, appended=True))
    return tuple(edits)


def _profile(
    loaded: LoadedSpec, name: str, key: str, words: Sequence[str], asked: Asked | None
) -> Advice:
    said = f"{name}: no profile detects {_shown(words)}; on {key} the checks reject "
    said += "it" if len(words) == 1 else "them"
    said += f"; {asked.said}" if asked is not None else ""
    return Advice(said, _added(loaded, name, key))


def _needless(name: str, index: int, check: Check) -> Advice:
    limit = check.tolerances or f"{check.limit:g}"
    at = f"variants.{name}.checks[{index}]"
    of = f" of {check.output}" if check.output else ""
    said = f"{name}: the flat limit {check.metric} {limit}{of} is wider than the bound everywhere"
    return Advice(f"{said} that was tried: it rejects nothing that the bound accepts", needless=at)


def _shown(words: Sequence[str]) -> str:
    more = f"; and {len(words) - _SHOWN} more" if len(words) > _SHOWN else ""
    return "; ".join(words[:_SHOWN]) + more
