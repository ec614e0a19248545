"""Formulas as oracles: what is asked of one for a case, and the built-in ones, called in this process.

The built-in formula `op.function` is `function` of `op.py` in the folder of formulas, where names have
_ for -. Formulas that users write run in a process of their own (see `user`).
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokitai_cli import formula, resources
from tokitai_cli.dtypes import FORMATS, numpy_dtype
from tokitai_cli.errors import Location, OracleError, SpecError
from tokitai_cli.expressions import evaluate
from tokitai_cli.formula import NoRuleError
from tokitai_cli.formula.oracle import Asked, answer, wanted_of
from tokitai_cli.model.case import Case, Expectation, Role, ScalarValue
from tokitai_cli.oracles.answer import AnswerError, expectation
from tokitai_cli.user_code.oracle import flat

Arrays = Mapping[str, NDArray[Any]]


def names() -> tuple[str, ...]:
    """Names of the built-in formulas."""
    found = []
    for file in sorted(resources.formulas_dir().glob("*.py")):
        tree = ast.parse(file.read_bytes())
        found += [
            f"{file.stem}.{node.name}".replace("_", "-")
            for node in tree.body
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
        ]
    return tuple(found)


def file_of(name: str) -> Path | None:
    """File of the built-in formula `name`, None where there is none of that name."""
    file = resources.formulas_dir() / f"{name.partition('.')[0].replace('-', '_')}.py"
    return file if file.is_file() and name in names() else None


def engine() -> list[Path]:
    """Files that decide what a built-in formula says, besides its own."""
    folder = Path(formula.__file__).parent
    return [
        *sorted(folder.glob("*.py")),
        folder.parent / "numerics.py",
        folder.parent / "dtypes.py",
    ]


@functools.cache
def _functions(file: Path) -> Mapping[str, Any]:
    space: dict[str, Any] = {"__name__": file.stem, "__file__": str(file)}
    exec(compile(file.read_bytes(), str(file), "exec"), space)  # noqa: S102 -- it ships with the tool
    return space


def _function(name: str, file: Path) -> Callable[..., Any]:
    function: Callable[..., Any] = _functions(file)[name.partition(".")[2].replace("-", "_")]
    return function


def expect(case: Case, arrays: Arrays, file: Path) -> dict[str, Expectation]:
    """Say what every output and in-out of `case` must be, by its built-in formula in `file`."""
    name = case.variant.oracle
    wanted = wanted_of(request(case), str(file))
    asked = Asked(_function(name, file), dict(case.shape), dict(arrays), scalars(case))
    plans = case.buffers_of(Role.OUTPUT, Role.INOUT)
    try:
        found = answer(asked, wanted)
        parts = {plan.name: dict(flat(plan.name, found[plan.name])) for plan in plans}
        return {plan.name: expectation(plan, parts[plan.name]) for plan in plans}
    except (AnswerError, NoRuleError) as error:
        raise OracleError(f"oracle {name}: {error}", mend=getattr(error, "mend", "")) from None


def require(case: Case, arrays: Arrays, file: Path) -> None:
    """Raise SpecError where the built-in formula does not fit the case's arrays, or its outputs.

    It is tried on `arrays`, zeros of the case's dtypes and shapes.
    """
    name = case.variant.oracle
    asked = Asked(_function(name, file), dict(case.shape), dict(arrays), scalars(case))
    try:
        with np.errstate(all="ignore"):
            given = asked.call(lambda x: np.array(x, dtype=np.float64))
    except KeyError as error:
        raise _misfit(
            case, f"oracle {name} reads {error.args[0]}", f"add {error.args[0]}"
        ) from None
    except (IndexError, TypeError, ValueError) as error:
        raise _misfit(case, f"shapes do not fit oracle {name}: {error}", "") from None
    for plan in case.buffers_of(Role.OUTPUT, Role.INOUT):
        if plan.name not in given:
            raise _misfit(case, f"oracle {name} judges {', '.join(given)}, not {plan.name}", "")
        shape = np.shape(given[plan.name])
        if shape != plan.shape:
            said = f"oracle {name} cannot judge {plan.name} {list(plan.shape)}, not {list(shape)}"
            raise _misfit(case, said, "")


def _misfit(case: Case, message: str, mend: str) -> SpecError:
    where = Location(file=case.loaded.path, key=f"variants.{case.variant_name}.oracle")
    return SpecError(message, where=where, mend=mend)


def request(case: Case) -> dict[str, Any]:
    """What is asked of the case's formula, as plain JSON (see `formula.oracle.Wanted`)."""
    oracle = case.variant.by_formula
    assert oracle is not None
    claim = reduction(case)
    plans = case.buffers_of(Role.OUTPUT, Role.INOUT)
    rounds = {}
    if isinstance(claim, dict):
        rounds = {plan.name: claim["outputs"].get(plan.name, claim["tree"]) for plan in plans}
    checks = case.variant.checks
    return {
        "outputs": {plan.name: plan.dtype for plan in plans},
        "rounds": rounds,
        "precision": {
            "ulps": oracle.precision,
            "accumulate": oracle.accumulate,
            "flush_to_zero": case.variant.flush_to_zero,
        },
        "probable": any(check.metric == "bound-prob" for check in checks),
        "replay": any(check.against == "replay" for check in checks),
        "turn": case.seed,
    }


def reduction(case: Case) -> Any:
    """The variant's claim on the order of additions: a word, or its trees at this shape."""
    claim = case.variant.reduction
    if isinstance(claim, str):
        return claim
    trees = {name: int(evaluate(text, case.shape)) for name, text in claim.outputs.items()}
    return {"tree": int(evaluate(claim.tree, case.shape)), "outputs": trees}


def scalars(case: Case) -> dict[str, Any]:
    """Scalars of the spec as the kernels get them: decoded from the launches' bits.

    One that changes from step to step of a loop is left out.
    """
    passed: dict[str, set[ScalarValue]] = {}
    for launch in case.launches:
        for argument in launch.leaves:
            if isinstance(argument, ScalarValue) and argument.name in case.variant.scalars:
                passed.setdefault(argument.name, set()).add(argument)
    values: dict[str, Any] = {}
    for name, (one, *others) in passed.items():
        number = np.frombuffer(one.bits, dtype=numpy_dtype(one.dtype))[0]
        if not others:
            values[name] = float(number) if one.dtype in FORMATS else number.item()
    return values
