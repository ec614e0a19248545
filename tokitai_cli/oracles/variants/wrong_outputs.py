"""Wrong outputs of a case: what its formula gives with one operation changed, on all rows or on some."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.deferred import pass_of
from tokitai_cli.core.numerics import round_to
from tokitai_cli.oracles.formula.known import ReductionError
from tokitai_cli.oracles.formula.parts import SHARED
from tokitai_cli.oracles.output_parts import ArrayParts
from tokitai_cli.oracles.variants import changeable
from tokitai_cli.oracles.variants import row_blocks as rows_of
from tokitai_cli.oracles.variants.request import FormulaCall, Request
from tokitai_cli.oracles.variants.row_layout import recorded_on_rows
from tokitai_cli.oracles.variants.steps import Steps
from tokitai_cli.oracles.variants.wrong_formulas import DROPPING, PLACES, Change, Recorded

# Elements of all wrong outputs of a case up to which all rows are changed, and changes that are tried
# where rows cannot be taken apart.
_WHOLE = 1 << 20
_LEAST_CHANGES = 3
# Fewer rows could be those that a case leaves out, or that hold nothing where a term is dropped.
_LEAST_ROWS = 4
# A formula of more operations, as a loop has, is as much work as so many elements more for each of them.
_FEW_OPERATIONS, _OPERATION = 128, 64
# Elements of a sample's changes together, over those of the outputs, and elements that they go over
# with all that comes before the outputs (`Recorded.work`): what changes may cost.
_SHARE = 1
_WORK = 1 << 27
# Elements that are compared at a time.
_COMPARED = 1 << 15


def recorded(call: FormulaCall, request: Request) -> Recorded:
    """What the formula consists of. ReductionError where a claimed tree cannot add its sums."""
    formula = recorded_on_few(call, request)
    if formula is not None:
        return formula
    formula = changeable.recorded(call.in_double, request.file)._replace(values={})
    _require_trees(formula, request)
    return formula


def recorded_on_few(call: FormulaCall, request: Request) -> Recorded | None:
    """The same from a few rows of a large case, with these; None for others. Raises as `recorded`."""
    on_rows = recorded_on_rows(
        call, request, lambda some: changeable.recorded(some.in_double, request.file)
    )
    if on_rows is None:
        return None
    formula, sample = on_rows
    _require_trees(formula, request)
    less = rows_of.with_rows(call, request, sample.param, sample.rows)
    few, every = rows_of.share_of(less, call, request, sample.param)
    work = formula.work * every // few
    return formula._replace(values={}, sample=sample, work=work, steps=None)


def _require_trees(formula: Recorded, request: Request) -> None:
    for name, rounds in request.rounds.items():
        total = formula.sum_of(name)
        least = max(total.terms - 1, 0).bit_length() if total else 0
        if rounds < least:
            assert total is not None
            raise ReductionError(
                f"no tree adds {total.terms} terms with {rounds} additions on its longest path: at"
                f" least {least} are needed",
                f"reduction.outputs.{name}" if name in request.trees else "reduction.tree",
            )


def with_changes(
    answers: Mapping[str, ArrayParts], call: FormulaCall, request: Request, formula: Recorded
) -> dict[str, ArrayParts]:
    """With wrong outputs, each by the change that made it: all in small cases, else on a sample of rows.

    Where rows are correlated, or are long and few, as many as there is room for.
    """
    made = formula.changes()
    calls = _OPERATION * max(0, len(formula.operations) - _FEW_OPERATIONS)
    size = sum(parts.reference.size for parts in answers.values())
    rows, room, work, steps = None, _room(size), max(formula.work, 1), formula.steps
    most = min(room // max(size + calls, 1), _WORK // work)
    step, param = _at_once(formula), rows_of.param_of(call, request)
    sample = None
    if most < len(made):
        sample = sampled(call, request, answers, len(made), work, step)
    if sample:
        less, rows, steps = sample
        few, every = rows_of.share_of(less, call, request, param)
        work = max(work * few // every, 1)
        size = sum(answers[name].reference[rows].size for name in request.outputs)
        call, most = less, min(room // max(size + calls, 1), _WORK // work)
    if most < len(made):
        most = max(_LEAST_CHANGES, most)
        start = request.turn % max(len(made), 1)
        made = made[start:] + made[:start]
        # Dropped terms decide what a case proves: they are tried whatever they cost.
        terms = [change for change in made if change.kind in DROPPING]
        others = [change for change in made if change.kind not in DROPPING]
        made = terms + others[: max(most - len(terms), 0)]
    references = {name: parts.reference for name, parts in answers.items()}
    if rows is not None:
        references = {name: one[rows] for name, one in references.items()}
    changes: dict[str, dict[str, NDArray[Any]]] = {name: {} for name in answers}
    unaltered = _Unaltered(references, {} if steps is None else steps.values)
    for change in made:
        try:
            change_of = functools.partial(_changed, change, steps)
            outputs = rows_of.by_steps(call, request, param, step, change_of)
        except (ArithmeticError, IndexError, TypeError, ValueError):
            continue  # such a change makes no output
        right = {name: one for name, one in references.items() if name in outputs}
        same = {name for name in right if unaltered.has(name, outputs[name])}
        # A place that nothing alters is told of: no row has what would, such as equal values. So is a
        # side of a condition that no element takes, and a limit that none reaches.
        alters_none = len(same) == len(right)
        told = alters_none and change.operation.name in PLACES
        untaken = alters_none and change.is_of_branch
        for name, one in right.items():
            values, whole = outputs[name], one.dtype.kind in "iu"
            if one.shape == values.shape and (name not in same or untaken or (told and whole)):
                dtype = request.outputs[name] if _is_narrow(answers[name], change) else ""
                changes[name][change.words] = _as_output(values, one, dtype)
    return {
        name: msgspec.structs.replace(parts, changes=changes[name], rows=rows)
        for name, parts in answers.items()
    }


def _at_once(formula: Recorded) -> int:
    """Rows that are changed at once: few where each has large arrays on its way; 0 for all."""
    sample = formula.sample
    if sample is None or not sample.batched or not formula.matrices:
        return 0
    return max(SHARED // max(sample.longest, 1), 1) if sample.independent else 0


def _changed(change: Change, steps: Steps | None, call: FormulaCall) -> Mapping[str, NDArray[Any]]:
    return changeable.outputs(call.in_double, change, steps)


def sampled(
    call: FormulaCall,
    request: Request,
    answers: Mapping[str, ArrayParts],
    times: int,
    work: int,
    step: int = 0,
) -> tuple[FormulaCall, NDArray[np.int64], Steps | None] | None:
    """The case with so few of its rows that it can be asked `times` times, which these are, its steps.

    work: elements that the formula goes over when it is called for all rows. step: rows that it is
    called for at once, 0 for all. None where rows are correlated.
    """
    param = rows_of.param_of(call, request)
    if not param:
        return None
    count = call.params[param]
    size = sum(answers[name].reference.size for name in request.outputs)
    most = min(_room(size) * count // max(size * times, 1), _WORK * count // (work * times))
    few = max(min(count, _LEAST_ROWS), min(count, most))
    rows = rows_of.some_rows(call, request, param, few)
    less = rows_of.with_rows(call, request, param, rows)

    def again(some: FormulaCall) -> Recorded:
        return changeable.recorded(some.in_double, request.file)

    steps = None
    try:
        if step:
            values = rows_of.by_steps(less, request, param, step, lambda some: again(some).values)
        else:
            values, steps = (found := again(less)).values, found.steps
    except rows_of.TOO_FEW:
        return None
    for name in request.outputs:
        if not rows_of.alike(answers[name].reference[rows], np.asarray(values[name])):
            return None
    return less, rows, steps


def _room(size: int) -> int:
    """Elements that the changes of a case with `size` elements in its outputs may have together."""
    return max(_WHOLE, _SHARE * size)


class _Unaltered:
    """Which outputs are the references: of those of the formula itself that is seen once."""

    def __init__(
        self, references: Mapping[str, NDArray[Any]], right: Mapping[str, NDArray[Any]]
    ) -> None:
        self._references = references
        self._right = right
        self._seen: dict[str, bool] = {}

    def has(self, name: str, values: NDArray[Any]) -> bool:
        """Whether an output with these values is."""
        if values is not self._right.get(name):
            return _same(self._references[name], values)
        if name not in self._seen:
            self._seen[name] = _same(self._references[name], values)
        return self._seen[name]


def _same(reference: NDArray[Any], values: NDArray[Any]) -> bool:
    """Whether they are equal: of those that are not, the first elements tell mostly."""
    if reference.shape != values.shape:
        return False
    with_nan = reference.dtype.kind == "f"
    left, right = reference.reshape(-1), values.reshape(-1)
    return all(
        np.array_equal(left[at : at + _COMPARED], right[at : at + _COMPARED], equal_nan=with_nan)
        for at in range(0, left.size, _COMPARED)
    )


def _is_narrow(parts: ArrayParts, change: Change) -> bool:
    """Whether a change is kept as the output holds it: of many large ones, but for a term's, which shows
    by how much.
    """
    return pass_of(parts.reference) is not None and change.kind not in DROPPING


def _as_output(values: NDArray[Any], reference: NDArray[Any], dtype: str = "") -> NDArray[Any]:
    """Values in the reference's dtype; dtype: a float format that they are rounded to."""
    if reference.dtype.kind == "f":
        wide = values.astype(np.float64, copy=False)
        return round_to(wide, dtype) if dtype else wide
    limits = (
        (0, 1)
        if reference.dtype == bool
        else (np.iinfo(reference.dtype).min, np.iinfo(reference.dtype).max)
    )
    return np.asarray(np.clip(np.nan_to_num(values), *limits), dtype=reference.dtype)
