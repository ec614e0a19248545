"""What the checks of a run let pass, in numbers: the non-claims that stand on a report's first page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tokitai_cli.core.model.evidence import CaseRecord, NonClaimRecord
from tokitai_cli.core.model.expectation import SLICE_ZEROED
from tokitai_cli.core.model.judged import FindingRecord, OutputRecord
from tokitai_cli.core.model.metrics import named
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.core.model.wording import number, plural
from tokitai_cli.evidence.queries import NOT_COVERED, magnitude
from tokitai_cli.evidence.survivors import survivors_of
from tokitai_cli.evidence.vacuity import few_judged

_Place = tuple[str, str, str]
_SHOWN = 6
NON_FINITE = 0.1  # share of an output beyond which NaN and infinities are told
_Pairs = list[tuple[CaseRecord, OutputRecord]]


def not_covered(cases: Sequence[CaseRecord]) -> list[NonClaimRecord]:
    """Say what passes in cases that passed, by op, variant and output.

    What every derived bound leaves stands behind what a reader does not expect.
    """
    passed = [case for case in cases if case.verdict is Verdict.VERIFIED]
    outputs: dict[_Place, _Pairs] = {}
    for case in passed:
        for output in case.outputs:
            place = (case.op, case.variant, output.name)
            outputs.setdefault(place, []).append((case, output))
    texts = [*_warnings(passed), *_ignored(passed), *_workspaces(passed)]
    for of in (_of_output, _of_formula, _of_changes):
        for (op, variant, name), pairs in outputs.items():
            texts += [f"{op} {variant}, output {name}: {text}" for text in of(pairs, name)]
    return [NonClaimRecord(text=text, source=NOT_COVERED) for text in texts]


def _warnings(passed: Sequence[CaseRecord]) -> Iterator[str]:
    """Findings that refute nothing, each kind of a variant once."""
    found: dict[tuple[str, str, str], list[tuple[CaseRecord, FindingRecord]]] = {}
    for case in passed:
        for one in {one.kind: one for one in reversed(case.findings)}.values():
            found.setdefault((case.op, case.variant, one.kind), []).append((case, one))
    for (op, variant, kind), places in found.items():
        case, first = places[0]
        yield (
            f"{op} {variant}, {kind} in {plural(len(places), 'case')}: {first.words} "
            f"({case.id}); with `--strict` it refutes"
        )


def _of_output(pairs: _Pairs, _: str) -> Iterator[str]:
    yield from _widest(pairs, "reference and bound are stated by the oracle; the bound", own=True)
    yield from _limits(pairs)
    yield from _slices(pairs)
    yield from _sampled(pairs)
    yield from _elements(
        pairs,
        lambda one: one.metrics.undecided_elements if one.metrics else 0,
        "every value passes at {}, since the oracle's error is infinite there",
    )
    yield from _elements(pairs, lambda one: one.may_be_nan, "NaN passes too at {}")
    yield from _not_finite(pairs)
    yield from _few(pairs)
    yield from _leaning(pairs)
    yield from _masks(pairs)
    yield from _elements(pairs, lambda one: one.choices, "several values pass at {}")
    yield from _elements(
        pairs, lambda one: one.unwritten, "{} stayed unwritten, as the oracle permits"
    )


def _of_formula(pairs: _Pairs, _: str) -> Iterator[str]:
    yield from _widest(pairs, "the error bound of the formula", own=False)


def _of_changes(pairs: _Pairs, output: str) -> Iterator[str]:
    """Changes of the formula that nothing in any case tells from the right output."""
    records = [one for case, _ in pairs for one in case.changes if one.output == output]
    if not records:
        return
    left = survivors_of(records)
    if unseen := [*left.accepted, *left.undetected]:
        shown = "; ".join(unseen[:_SHOWN]) + ("; ..." if len(unseen) > _SHOWN else "")
        yield (
            f"no case that passed would detect {len(unseen)} of {left.tried} changes of the formula: "
            f"{shown}"
        )


def _elements(pairs: _Pairs, count: Callable[[OutputRecord], int], text: str) -> Iterator[str]:
    """Elements that nothing judges: their sum over the cases, and the largest share in one."""
    found = [(count(one), one.elements) for _, one in pairs if count(one)]
    if found:
        most, of = max(found, key=lambda pair: pair[0] / pair[1])
        yield (
            f"{text.format(plural(sum(one for one, _ in found), 'element'))}, in {len(found)} of "
            f"{plural(len(pairs), 'case')}, at most {most} of {of} in one"
        )


def _not_finite(pairs: _Pairs) -> Iterator[str]:
    """Outputs that are NaN or infinite at more than a tenth of their elements, of finite inputs."""
    found = []
    for case, one in pairs:
        asked = bool(one.non_finite) or any(given.nonfinite for given in case.inputs)
        if one.metrics is not None and one.sample is None and not asked:
            finite = sum(one.metrics.ulp_histogram.values())
            found.append((one.elements - finite - one.unwritten, one.elements, case.id))
    many = [one for one in found if one[0] > one[1] * NON_FINITE]
    if many:
        most, of, case_id = max(many, key=lambda one: one[0] / one[1])
        yield (
            f"NaN or infinity is right at more than a tenth of the elements in "
            f"{plural(len(many), 'case')} of finite inputs, at most {most} of {of} ({case_id}): "
            "only the other elements are judged as numbers"
        )


def _few(pairs: _Pairs) -> Iterator[str]:
    """Cases in which less than half of the output is judged."""
    found = [(few, case) for case, one in pairs if (few := few_judged(one)) is not None]
    if found:
        (judged, size), case = min(found, key=lambda one: one[0][0] / one[0][1])
        yield (
            f"less than half of the elements is judged in {plural(len(found), 'case')}, at "
            f"worst {judged} of "
            f"{size} ({case.id}): they support no numerical agreement"
        )


def _leaning(pairs: _Pairs) -> Iterator[str]:
    """Errors of narrow outputs that lean one way, which a bound lets pass."""
    found = [(one.lean, case) for case, one in pairs if one.lean is not None]
    if found:
        most, case = max(found, key=lambda pair: pair[0].mean)
        yield (
            f"errors lean {most.towards} by {number(most.mean, 3)} ulp on average in "
            f"{plural(len(found), 'case')}, most in {case.id}: rounding to nearest does not "
            "lean, truncation leans by 0.5 (`rounding: nearest-even` refutes it)"
        )


def _masks(pairs: _Pairs) -> Iterator[str]:
    """What of masks by chance is judged, and which wrong ones no case is large enough to tell."""
    found = [(case, one) for case, one in pairs if one.mask is not None and not case.vacuous]
    if not found:
        return
    name = found[0][1].name
    least = max(one.mask.significance for _, one in found if one.mask is not None)
    yield (
        "a random mask is judged by its share of ones and by the correlation of elements "
        f"some distance apart, each case with a significance of {least:g}: this does not "
        "show that its elements are independent"
    )
    if not any(record.name == "other-seed" for case, _ in found for record in case.properties):
        yield f"no other seed was tried: whether {name} depends on it is not known"
    kinds: dict[str, bool] = {}
    for case, _ in found:
        for mutant in case.mutants:
            if mutant.output == name:
                told = kinds.get(mutant.kind, False) or mutant.status == "rejected"
                kinds[mutant.kind] = told
    if left := [kind for kind, told in kinds.items() if not told]:
        yield f"no case has enough elements to detect these wrong masks: {', '.join(left)}"


def _widest(pairs: _Pairs, said: str, *, own: bool) -> Iterator[str]:
    """The largest bounds, of oracles of the user's `own` or derived here."""
    bounds = [
        (case, one.own_bound)
        for case, one in pairs
        if one.own_bound is not None and one.own_bound.derived != own and not case.vacuous
    ]
    if bounds:
        case, bound = max(bounds, key=lambda pair: magnitude(pair[1].ulp_median))
        sizes = [
            f"at most {number(largest, 3)}{unit} (median {number(median, 3)})"
            for largest, median, unit in (
                (bound.ulp_largest, bound.ulp_median, " ulp"),
                # 0 where no value is a normal number.
                (bound.relative_largest, bound.relative_median, " of the value"),
            )
            if magnitude(largest)
        ]
        if sizes:
            yield f"{said} is widest in {case.id}: {', '.join(sizes)}"


def _limits(pairs: _Pairs) -> Iterator[str]:
    limits = {
        (check.metric, float(check.limit))
        for _, one in pairs
        for check in one.checks
        if check.judges and check.metric in named(against_bound=True) and magnitude(check.limit) > 1
    }
    for metric, limit in sorted(limits):
        yield f"errors of up to {limit:g} times the bound pass ({metric})"


def _slices(pairs: _Pairs) -> Iterator[str]:
    """Zeroed slices that every check accepts."""
    found = [
        (case, mutant)
        for case, output in pairs
        for mutant in case.mutants
        if mutant.kind == SLICE_ZEROED
        and mutant.status == "accepted"
        and mutant.output == output.name
    ]
    if found:
        case, mutant = found[0]
        yield (
            f"the checks accept {plural(len(found), 'output')} of inputs with a slice zeroed, such as "
            f"{mutant.detail} ({case.id})"
        )


def _sampled(pairs: _Pairs) -> Iterator[str]:
    """Elements of large products that no check looked at."""
    for case, output in pairs:
        sample = output.sample
        if sample is not None and sample.proof is None:
            judged = sample.rows * sample.columns
            yield (
                f"{judged} of {output.elements} elements were judged in {case.id}, at {sample.rows} "
                f"rows and {sample.columns} columns: nothing is known about the others on these inputs"
            )


def _ignored(cases: Sequence[CaseRecord]) -> Iterator[str]:
    """Inputs and scalars that no reference of a variant depends on, in any case that was asked."""
    for (op, variant), names in ignored(cases).items():
        if names:
            yield (
                f"{op} {variant}: the reference does not depend on {', '.join(names)}, so a "
                "kernel that uses another value for it, or none, passes"
            )


def ignored(cases: Sequence[CaseRecord]) -> dict[tuple[str, str], list[str]]:
    """By op and variant, what none of its outputs depends on in any case; none that was not asked."""
    found: dict[tuple[str, str], list[str]] = {}
    for case in cases:
        for output in case.outputs:
            if output.independent is not None:
                place = (case.op, case.variant)
                known = found.get(place, output.independent)
                found[place] = [name for name in known if name in output.independent]
    return found


def _workspaces(cases: Sequence[CaseRecord]) -> Iterator[str]:
    found: dict[tuple[str, str, str], list[tuple[int, int]]] = {}
    for case in cases:
        judged = sum(output.elements for output in case.outputs)
        for name, size in case.workspaces.items():
            found.setdefault((case.op, case.variant, name), []).append((size, judged))
    for (op, variant, name), sizes in found.items():
        size, judged = max(sizes, key=lambda pair: pair[0] / max(pair[1], 1))
        yield (
            f"{op} {variant}, workspace {name}: not judged; at most {plural(size, 'element')} "
            f"beside {judged} of outputs"
        )
