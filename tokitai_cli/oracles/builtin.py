"""Formulas as oracles: what is asked of one for a case, and the built-in ones, called in this process.

The built-in formula `op.function` is `function` of `op.py` in the folder of formulas, where names have
_ for -. Formulas that users write run in a process of their own (see `user`).
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core import resources
from tokitai_cli.core.deferred import NotByRowsError
from tokitai_cli.core.dtypes import FORMATS
from tokitai_cli.core.errors import NotRunError
from tokitai_cli.core.larger_of import larger_of, least_of
from tokitai_cli.core.model.case import BufferPlan, Case, Role
from tokitai_cli.core.model.expectation import (
    HEAVIEST_DROPPED,
    LAST_DROPPED,
    Block,
    ChangedRows,
    Expectation,
    Further,
    Replay,
)
from tokitai_cli.core.numerics import round_to
from tokitai_cli.oracles import variants
from tokitai_cli.oracles.case_request import Arrays, request, scalars, sums
from tokitai_cli.oracles.exact import require_exact
from tokitai_cli.oracles.fit import placed, require_outputs
from tokitai_cli.oracles.formula.forms import FORMS, HINTS, WRITE
from tokitai_cli.oracles.formula.kept import keeping
from tokitai_cli.oracles.formula.precision import accumulator
from tokitai_cli.oracles.output_parts import ArrayParts
from tokitai_cli.oracles.user.answer_parts import expectation
from tokitai_cli.oracles.user.imported import digests_of
from tokitai_cli.oracles.variants.answer import answer, by_windows
from tokitai_cli.oracles.variants.by_windows import ByWindows
from tokitai_cli.oracles.variants.dependence import dependence
from tokitai_cli.oracles.variants.replay import replay as in_single
from tokitai_cli.oracles.variants.request import FormulaCall, Request, request_of
from tokitai_cli.oracles.variants.single_product import block_of, product_of
from tokitai_cli.oracles.variants.wrong_formulas import Change, Operation, Recorded
from tokitai_cli.oracles.variants.wrong_outputs import recorded

# Rows and columns of a large product that are sampled, evenly: some of every tile of 128.
_SAMPLED = (128, 1024)
# Elements of a wrong output that are compared at a time.
_TOGETHER = 1 << 15

Refine = Callable[[Arrays], NDArray[np.float64]]


def names() -> tuple[str, ...]:
    """Names of the built-in formulas."""
    files = sorted(resources.formulas_dir().glob("*.py"))
    return tuple(name for file in files for name in _names_in(file))


@functools.cache
def _names_in(file: Path) -> tuple[str, ...]:
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    found = re.findall(r"(?m)^def ([a-z]\w*)\(", text)
    return tuple(f"{file.stem}.{name}".replace("_", "-") for name in found)


def file_of(name: str) -> Path | None:
    """File of the built-in formula `name`, None where there is none of that name."""
    file = resources.formulas_dir() / f"{name.partition('.')[0].replace('-', '_')}.py"
    return file if name in _names_in(file) else None


def engine() -> list[Path]:
    """Files that decide what a built-in formula says, besides its own."""
    package = Path(variants.__file__).parents[2]
    rooms = [
        path
        for room in ("variants", "formula")
        for path in (package / "oracles" / room).glob("*.py")
    ]
    core = [package / "core" / f"{name}.py" for name in ("numerics", "rounding", "dtypes")]
    return [*sorted(rooms), *core]


@functools.cache
def engine_digests() -> bytes:
    """Their digests."""
    return digests_of(engine())


@functools.cache
def _functions(file: Path) -> Mapping[str, Any]:
    space: dict[str, Any] = {"__name__": file.stem, "__file__": str(file)}
    exec(compile(file.read_bytes(), str(file), "exec"), space)  # noqa: S102 -- it ships with the tool
    return space


def function(name: str, file: Path) -> Callable[..., Any]:
    """The built-in formula `name` of `file`."""
    found: Callable[..., Any] = _functions(file)[name.partition(".")[2].replace("-", "_")]
    return found


def expect(
    case: Case, arrays: Arrays, file: Path, *, later: bool = False
) -> dict[str, Expectation]:
    """Say what every output and in-out of `case` must be, by its built-in formula in `file`.

    later: whether a large answer may be computed while it is judged (`core.deferred`).

    Raises SpecError where the formula, or the claim on its sums, does not fit the case, NotRunError
    where float32 leaves no bound, or a profile that counts does not.
    """
    name = case.variant.oracle
    wanted = request_of(request(case), str(file))
    asked = FormulaCall(function(name, file), dict(case.sizes), dict(arrays), scalars(case))
    if later:
        with contextlib.suppress(NotByRowsError):
            return expect_by(case, asked, wanted, later=True)
    return expect_by(case, asked, wanted)


def expect_by(
    case: Case, call: FormulaCall, request: Request, *, later: bool = False
) -> dict[str, Expectation]:
    """Say it by a formula that is called in this process. Raises as `expect`."""
    name = case.variant.oracle
    plans = case.buffers_of(Role.OUTPUT, Role.INOUT)
    if (block := _block(case, call)) is not None:
        call, plans = _within(case, call, block)
        request = msgspec.structs.replace(request, shapes={})
    with placed(case, name), keeping():
        formula = recorded(call, request)
        _require_bound(plans, request, formula)
        windows = by_windows(call, request, formula) if later and block is None else None
        found = answer(call, request, formula, windows=windows)
        require_outputs(plans, case, name, {key: parts.reference for key, parts in found.items()})
    given = {plan.name: expectation(plan, found[plan.name]) for plan in plans}
    for plan in plans:
        require_exact(case, plan, given[plan.name], formula)
    if windows is not None and windows.is_whole:
        raise NotByRowsError  # what is made of it asked for all of it: it is kept as others are
    given = _with_dependence(given, call)
    given = with_refined(case, given, functools.partial(again, call, request, formula), windows)
    return {
        name: msgspec.structs.replace(_with_dropped(one, formula.sums_of(name)), block=block)
        for name, one in given.items()
    }


def _with_dependence(given: Mapping[str, Expectation], call: FormulaCall) -> dict[str, Expectation]:
    """Add what each reference does not depend on, where that can be asked at little cost."""
    found = dependence(call.again_in_double, call.inputs, call.scalars)
    if found is None:
        return dict(given)
    return {
        name: msgspec.structs.replace(
            one,
            independent=tuple(found.independent.get(name, ())),
            alike=name in found.alike,
        )
        for name, one in given.items()
    }


def _block(case: Case, call: FormulaCall) -> Block | None:
    """The sampled block of a large product of two inputs; None where the formula is no such one."""
    oracle, plans = case.variant.by_formula, case.buffers_of(Role.OUTPUT, Role.INOUT)
    assert oracle is not None
    if len(plans) != 1 or plans[0].dtype not in FORMATS or plans[0].dtype == "float64":
        return None
    if any(check.against == "replay" for check in case.variant.checks):
        return None  # a replay has rows of its own
    product = product_of(call, plans[0].name)
    if product is None or product.multiplications < oracle.sampled_from:
        return None
    left, right = product.left.matrix, product.right.matrix
    if (left.shape[0], right.shape[1]) != plans[0].shape or not plans[0].elements:
        return None
    rows, columns = (
        np.unique(np.linspace(0, count - 1, most).astype(np.int64))
        for count, most in zip(plans[0].shape, _SAMPLED, strict=True)
    )
    return Block(rows, columns, left, right, accumulator(sums(case)).countable)


def _within(
    case: Case, call: FormulaCall, block: Block
) -> tuple[FormulaCall, tuple[BufferPlan, ...]]:
    """The block as a case of its own."""
    (plan,) = case.buffers_of(Role.OUTPUT, Role.INOUT)
    product = product_of(call, plan.name)
    assert product is not None
    shape = (block.rows.size, block.columns.size)
    part = msgspec.structs.replace(plan, shape=shape)
    return block_of(call, product, block.rows, block.columns), (part,)


def _require_bound(plans: Iterable[BufferPlan], request: Request, formula: Recorded) -> None:
    """Raise NotRunError where a sum is so long that float32 has no bound for it."""
    for plan in plans:
        total = formula.sum_of(plan.name)
        steps = request.rounds.get(plan.name, total.terms if total else 0)
        if total and plan.dtype != "float64" and steps * FORMATS["float32"].unit_roundoff > 0.25:
            said = f"a float32 sum of {total.terms} terms has no error bound"
            raise NotRunError(said, hint="shorten it")


def again(
    call: FormulaCall, request: Request, formula: Recorded | None, further: Further
) -> dict[str, ArrayParts]:
    """Parts of the answer under what is asked further."""
    precision = msgspec.structs.replace(
        request.precision, outputs=dict(further.outputs), forms=further.forms
    )
    request = msgspec.structs.replace(
        request, precision=precision, kept=further.kept, probable=False
    )
    return answer(call, request, formula, only_error=further.only_error)


def with_refined(
    case: Case,
    given: Mapping[str, Expectation],
    ask: Callable[[Further], Mapping[str, ArrayParts]],
    windows: ByWindows | None = None,
) -> dict[str, Expectation]:
    """Add what asks the formula once more, and the errors that stored outputs leave, for checks of them.

    `ask` gives the parts of its answer, `windows` computes those of a large output.
    """
    chained = {one.output for one in case.variant.checks if one.metric == "bound-chained"}
    forms = {form: HINTS.get(form, WRITE) for form in FORMS}
    found = {}
    for name, one in given.items():
        found[name] = one
        if one.error is not None:
            asked = name in chained or "" in chained
            refine: Refine | None = None
            if asked and windows is not None and windows.pass_of(name) is windows:
                refine = windows.refine
            elif asked:
                refine = functools.partial(_refined, name, one.error, ask, [])
            asks = functools.partial(_sides_of, name, ask)
            found[name] = msgspec.structs.replace(one, refine=refine, again=asks, forms=forms)
    return found


def _sides_of(
    name: str, ask: Callable[[Further], Mapping[str, ArrayParts]], further: Further
) -> tuple[NDArray[np.float64], ...] | None:
    """Reference and errors below and above it under what is asked further; None where there are none."""
    parts = ask(further).get(name)
    errors = parts and parts.errors()
    return (parts.reference, *errors) if parts and errors else None


def _refined(
    name: str,
    error: NDArray[np.float64],
    ask: Callable[[Further], Mapping[str, ArrayParts]],
    seen: list[tuple[list[bytes], NDArray[np.float64]]],
    outputs: Arrays,
) -> NDArray[np.float64]:
    """The smaller error; the last answer is kept in `seen`, as repetitions mostly agree."""
    others = {key: array for key, array in outputs.items() if key != name}
    bits = [array.tobytes() for array in others.values()]
    if not seen or seen[0][0] != bits:
        errors = ask(Further(outputs=others, only_error=True))[name].errors()
        assert errors is not None
        seen[:] = [(bits, least_of(larger_of(*errors), error))]
    return seen[0][1]


def _with_dropped(expectation: Expectation, sums: list[Operation]) -> Expectation:
    """Add the wrong outputs that lack a term of a sum: of that one where it shows most."""
    long = [total for total in sums if total.terms > 1]
    if not long:
        return msgspec.structs.replace(expectation, terms=min(len(sums), 1))
    dropped = {}
    for name, kind in ((LAST_DROPPED, "last"), (HEAVIEST_DROPPED, "heaviest")):
        words = [Change(total, kind).words for total in reversed(long)]
        shown = max(words, key=lambda one: _shows(expectation, one))
        changed = expectation.changes.get(shown)
        dropped[name] = ChangedRows(expectation.reference, expectation.rows, changed)
    return msgspec.structs.replace(
        expectation, terms=max(total.terms for total in long), dropped=dropped
    )


def _shows(expectation: Expectation, words: str) -> float:
    """How far a change leads from the reference at most, in errors."""
    if words not in expectation.changes:
        return 0.0
    right = _of_rows(expectation.reference, expectation.rows)
    wrong = np.atleast_1d(expectation.changes[words])
    error = np.zeros(right.shape)
    if expectation.error is not None:
        error = _of_rows(expectation.error, expectation.rows)
    most, step = 0.0, max(_TOGETHER * len(right) // max(right.size, 1), 1)
    for start in range(0, len(right), step):
        at = slice(start, start + step)
        with np.errstate(all="ignore"):
            allowed = error[at] + np.abs(right[at]) * 2.0**-24 + 2.0**-149
            off = np.abs(wrong[at] - right[at]) / allowed
        most = max(most, float(np.max(off, where=np.isfinite(off), initial=0.0)))
    return most


def _of_rows(array: NDArray[Any], rows: NDArray[np.int64] | None) -> NDArray[Any]:
    """These rows of an array, which may be one that `larger_of` makes part by part; None for all."""
    array = array if array.ndim else np.atleast_1d(array)
    return array if rows is None else array[rows]


def replay(case: Case, arrays: Arrays, name: str, file: Path) -> dict[str, Replay]:
    """What the built-in formula `name` gives in float32, rounded to each output's dtype."""
    asked = FormulaCall(function(name, file), dict(case.sizes), dict(arrays), scalars(case))
    values = in_single(asked.call)
    return {
        plan.name: Replay(round_to(values[plan.name].astype(np.float64), plan.dtype))
        for plan in case.buffers_of(Role.OUTPUT, Role.INOUT)
    }
