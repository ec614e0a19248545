"""A formula, inputs and arrays as a case of the tool, judged as a run of it is."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Unpack

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli import evidence, judge
from tokitai_cli.core.errors import SpecError, UsageError, near
from tokitai_cli.core.fills import fills_of
from tokitai_cli.core.model.case import BufferPlan, Case, LoadedSpec, Role, RunResult
from tokitai_cli.core.model.evidence import CaseRecord
from tokitai_cli.core.model.expectation import Expectation
from tokitai_cli.core.model.settings import MIN_REPEAT
from tokitai_cli.core.model.spec import (
    Buffer,
    Check,
    FormulaOracle,
    Launch,
    Profile,
    Reduction,
    Spec,
    Variant,
)
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.evidence.vacuity import CONSTANT_HINT
from tokitai_cli.judge.checks.target import Target
from tokitai_cli.oracles.builtin import expect_by
from tokitai_cli.oracles.case_request import request
from tokitai_cli.oracles.formula import loosen
from tokitai_cli.oracles.variants.request import FormulaCall, request_of
from tokitai_cli.testing import allowances
from tokitai_cli.testing.allowances import Allowed, DType
from tokitai_cli.testing.arrays import as_arrays
from tokitai_cli.testing.outcome import Bound, Match, MismatchError, VacuousError, mismatch

Arrays = dict[str, NDArray[Any]]


_VARIANT, _PROFILE = "tested", "given"
# TF32 has 10 bits of a mantissa, and a product may cut off the others: 2^-10 is 2^14 roundings of 2^-24.
_TF32_ROUNDINGS = 2.0**14


def assert_matches(
    got: Any,
    formula: Callable[..., Any],
    inputs: Any,
    *,
    scalars: Mapping[str, float] | None = None,
    params: Mapping[str, int] | None = None,
    dtype: DType | Mapping[str, DType] | None = None,
    **allowed: Unpack[Allowed],
) -> Match:
    """Assert that `got` is what a right kernel may give for the formula on these inputs.

    got, inputs: an array, or arrays by name, of numpy, torch, cupy, jax. formula: plain numpy on them,
    by their names, `formula(x, weight, eps)`, or as in specs, `formula(params, inputs, scalars)`; it
    returns an array, or arrays by name. scalars: as the kernel gets them, floats in float32. dtype: of
    the outputs, which `got` must have; its own where it is left out. allowed: see `Allowed`. The limit
    is the derived bound (docs/bounds.md).

    Raises MismatchError, an AssertionError with the worst elements; VacuousError where wrong arrays
    would pass too; UsageError and SpecError where the formula or the arrays cannot be used.
    """
    arrays = as_arrays(got, "output")
    dtypes = _dtypes_of(arrays, dtype)
    outputs = {name: (dtypes[name], array.shape) for name, array in arrays.items()}
    given = allowances.numbers(scalars, params)
    allowances.require_valid(formula, allowed)
    case, expectations = _expected_of(formula, as_arrays(inputs, "x"), given, allowed, outputs)
    judged = judge.judge(case, expectations, {}, _result(arrays))
    if judged.verdict is Verdict.REFUTED:
        text = mismatch(judged.reason, judged.outputs, judged.mutants, judged.changes)
        raise MismatchError(text, judged.outputs)
    if why := _vacuous(case, judged):
        # There is no spec here in which a constant could be declared.
        why = why.replace(CONSTANT_HINT, "")
        raise VacuousError(f"the check would be vacuous: {why}; use other inputs")
    return Match(judged.outputs, judged.mutants, judged.changes)


def bound(
    formula: Callable[..., Any],
    inputs: Any,
    *,
    scalars: Mapping[str, float] | None = None,
    params: Mapping[str, int] | None = None,
    dtype: DType | Mapping[str, DType] = "float32",
    **allowed: Unpack[Allowed],
) -> Bound | dict[str, Bound]:
    """The reference and the derived bound of each output: one, or by name as the formula returns them.

    Arguments as those of `assert_matches`; dtype: of the outputs. Raises UsageError and SpecError.
    """
    given, arrays = allowances.numbers(scalars, params), as_arrays(inputs, "x")
    allowances.require_valid(formula, allowed)
    made = _called(formula, arrays, given)
    dtypes = allowances.dtype_names(dtype, made)
    if set(dtypes) != set(made):
        raise UsageError(
            f"dtype names {', '.join(dtypes)}, and the formula returns {', '.join(made)}"
        )
    outputs = {name: (dtypes[name], np.shape(value)) for name, value in made.items()}
    _, expectations = _expected(formula, arrays, given, allowed, outputs)
    flushes = allowed.get("flush_to_zero", False)
    found = {name: _bound_of(name, outputs[name], expectations[name], flushes) for name in outputs}
    return found["output"] if [*found] == ["output"] else found


def _bound_of(
    name: str, output: tuple[str, tuple[int, ...]], told: Expectation, flush_to_zero: bool
) -> Bound:
    dtype, shape = output
    target = Target(
        name,
        dtype,
        shape,
        told.reference.reshape(-1),
        None if told.error is None else told.error.reshape(-1),
        flush_to_zero=flush_to_zero,
    )
    parts = [chunk.bound for chunk in target.chunks()]
    flat = [one for one in parts if one is not None]
    limit = np.concatenate(flat) if flat else np.zeros(told.reference.size)
    return Bound(told.reference, limit.reshape(shape))


def _dtypes_of(arrays: Arrays, dtype: DType | Mapping[str, DType] | None) -> dict[str, str]:
    """dtype of each output. Raises UsageError where the arrays have another one."""
    found = {name: array.dtype.name for name, array in arrays.items()}
    wanted = found if dtype is None else allowances.dtype_names(dtype, found)
    for name, one in wanted.items():
        if found.get(name) != one:
            raise UsageError(
                f"{name} has the dtype {found.get(name, 'of no array')}, but {one} is expected",
                hint="compare what the kernel stored, not a conversion of it",
            )
    return wanted


def _expected_of(
    formula: Callable[..., Any],
    arrays: Arrays,
    given: tuple[Mapping[str, float], Mapping[str, int]],
    allowed: Allowed,
    outputs: Mapping[str, tuple[str, tuple[int, ...]]],
) -> tuple[Case, dict[str, Expectation]]:
    """As `_expected`, for outputs that were made. Raises MismatchError where the shape is another."""
    try:
        return _expected(formula, arrays, given, allowed, outputs)
    except SpecError:
        made = {name: np.shape(one) for name, one in _called(formula, arrays, given).items()}
        for name, (_, shape) in outputs.items():
            if made.get(name, shape) != shape:
                text = f"{name}: got {[*shape]}, the formula gives {[*made[name]]}"
                raise MismatchError(text, []) from None
        raise


def _expected(
    formula: Callable[..., Any],
    arrays: Arrays,
    given: tuple[Mapping[str, float], Mapping[str, int]],
    allowed: Allowed,
    outputs: Mapping[str, tuple[str, tuple[int, ...]]],
) -> tuple[Case, dict[str, Expectation]]:
    scalars, params = given
    _check_names(formula, [*params, *arrays, *scalars])
    case = _case(formula, arrays, dict(params), allowed, outputs)
    cut = [name for name, array in arrays.items() if array.dtype == np.float32]
    function = _as_in_specs(formula, cut if allowed.get("tf32", False) else (), outputs)
    file = inspect.getsourcefile(inspect.unwrap(formula)) or ""
    asked = FormulaCall(function, dict(params), arrays, _decoded(scalars))
    return case, expect_by(case, asked, request_of(request(case), file))


def _case(
    formula: Callable[..., Any],
    arrays: Arrays,
    params: dict[str, int],
    allowed: Allowed,
    outputs: Mapping[str, tuple[str, tuple[int, ...]]],
) -> Case:
    name = getattr(formula, "__name__", "formula")
    order = allowed.get("reduction", "any")
    oracle = {
        "formula": f"{name}.py:{name}",
        "accumulate": allowed.get("accumulate", "float32"),
        "precision": dict(allowed.get("precision", {})),
    }
    try:
        given_oracle = msgspec.convert(oracle, FormulaOracle)
    except msgspec.ValidationError as error:
        raise UsageError(f"{error}") from error
    variant = Variant(
        source="",
        given_oracle=given_oracle,
        launches=[Launch(kernel=name, grid=[1], block=[1], args=[])],
        checks=[Check(metric="bound")],
        inputs={key: _buffer(array.dtype.name, array.shape) for key, array in arrays.items()},
        outputs={key: _buffer(dtype, shape) for key, (dtype, shape) in outputs.items()},
        reduction=order if isinstance(order, str) else Reduction(tree=str(order)),
        flush_to_zero=bool(allowed.get("flush_to_zero", False)),
    )
    spec = Spec(
        schema="tokitai/spec/v1",
        op=name,
        title=name,
        params={},
        variants={_VARIANT: variant},
        profiles={_PROFILE: Profile(draw="normal")},
    )
    plans = [
        BufferPlan(key, Role.INPUT, array.dtype.name, array.shape) for key, array in arrays.items()
    ]
    plans += [BufferPlan(key, Role.OUTPUT, dtype, shape) for key, (dtype, shape) in outputs.items()]
    loaded = LoadedSpec(spec=spec, path=Path(f"{name}.py"), text="", digest="")
    return Case(loaded, _VARIANT, params, _PROFILE, 0, buffers=tuple(plans), launches=())


def _buffer(dtype: str, shape: tuple[int, ...]) -> Buffer:
    return Buffer(dtype=dtype, shape=[str(extent) for extent in shape])  # type: ignore[arg-type]


def _result(arrays: Arrays) -> RunResult:
    """The arrays as those of a run: nothing is known of further repetitions."""
    fills = fills_of(MIN_REPEAT)
    return RunResult(outputs=(arrays,) * len(fills), fills=fills, times_ns=(0,) * len(fills))


def _vacuous(case: Case, judged: judge.Judgement) -> str:
    """Why passing means nothing; empty where it does."""
    record = CaseRecord(
        id=case.id, op=case.loaded.spec.op, variant=_VARIANT, shape=dict(case.shape),
        profile=_PROFILE, seed=0, device="", spec="", build="", verdict=judged.verdict,
        stage=judged.stage, reason=judged.reason, inputs=[], launches=[], outputs=judged.outputs,
        properties=[], mutants=judged.mutants, repeats=None, findings=[], replay_fraction=None,
        known_bug="", rerun="", debug="", saved_arrays=[], changes=judged.changes,
    )  # fmt: skip
    (settled,) = evidence.mark_vacuous([record], evidence.groups([record]))
    return "" if settled.reads is Verdict.VERIFIED else settled.reason


def _decoded(scalars: Mapping[str, float]) -> dict[str, Any]:
    """Scalars as a kernel gets them: floats have been rounded to float32."""
    return {
        name: float(np.float32(value)) if isinstance(value, float) else value
        for name, value in scalars.items()
    }


def _is_by_name(formula: Callable[..., Any]) -> bool:
    return [*inspect.signature(formula).parameters][:3] != ["params", "inputs", "scalars"]


def _check_names(formula: Callable[..., Any], names: Collection[str]) -> None:
    """Raise UsageError where the formula has no argument of one of the names."""
    known = inspect.signature(formula).parameters
    if not _is_by_name(formula) or any(one.kind is one.VAR_KEYWORD for one in known.values()):
        return
    for name in names:
        if name not in known:
            called = getattr(formula, "__name__", "formula")
            raise UsageError(f"{called}() has no argument {name!r}", hint=near(name, known))


def _as_in_specs(
    formula: Callable[..., Any], cut: Collection[str] = (), outputs: Collection[str] | None = None
) -> Callable[..., Any]:
    """`function(params, inputs, scalars)` that returns outputs by name; `cut`: inputs cut to TF32.

    It raises UsageError where `outputs` are given and the formula returns others.
    """
    by_name = _is_by_name(formula)

    @functools.wraps(formula)
    def function(params: Any, inputs: Any, scalars: Any) -> Mapping[str, Any]:
        inputs = {
            name: loosen(array, _TF32_ROUNDINGS) if name in cut else array
            for name, array in inputs.items()
        }
        result = (
            formula(**params, **inputs, **scalars) if by_name else formula(params, inputs, scalars)
        )
        found = result if isinstance(result, Mapping) else {"output": result}
        if outputs is not None and {*found} != {*outputs}:
            message = f"the formula returns {', '.join(found)}, but got has {', '.join(outputs)}"
            raise UsageError(
                message, hint="give every output, by the name that the formula returns"
            )
        return found

    return function


def _called(
    formula: Callable[..., Any],
    arrays: Arrays,
    given: tuple[Mapping[str, float], Mapping[str, int]],
) -> Mapping[str, Any]:
    """What the formula gives for plain arrays: names and shapes of the outputs."""
    scalars, params = given
    _check_names(formula, [*params, *arrays, *scalars])
    asked = FormulaCall(_as_in_specs(formula), dict(params), arrays, _decoded(scalars))
    return asked.in_double()
