"""Oracles that users write: `file.py:function`, run in a process of their own.

    def function(params, inputs, scalars):
        return {"y": reference}                                  # or
        return {"y": {"reference": reference, "error": error}}

params: name -> int. inputs: name -> array (inputs, in-outs and symbols), copies. scalars: name ->
number as the kernel gets it. For each output and in-out of the variant one entry: a float64 array for
floating-point outputs, integers or bools for such outputs. `error` is the worst-case absolute error
in front of the last rounding to the output's dtype (float64, not negative); without it no bound is
derived and only limits that the spec gives apply. `may_be_unwritten`, a bool array, marks elements
that the kernel may leave as they were. For float64 outputs a float64 reference carries its own
rounding errors: `error` has to include them, or `low` gives what the reference lacks, so that
reference + low is a double-double (T. J. Dekker, Numer. Math. 18, 1971).

The file runs isolated (python -I): it imports installed packages, but no file beside it, so that its
digest covers all of it. Arrays travel as .npy files without pickling.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tokitai_cli import process
from tokitai_cli.dtypes import FORMATS, numpy_dtype
from tokitai_cli.errors import Location, OracleError, SpecError, near
from tokitai_cli.model.case import BufferPlan, Case, Expectation, Role, ScalarValue
from tokitai_cli.numerics import spacing
from tokitai_cli.oracles import child

if TYPE_CHECKING:
    import ast

TIMEOUT = 60.0
_LOG_LINES = 20
_ARGUMENTS = 3  # params, inputs, scalars
_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT")


def file_of(name: str, folder: Path) -> Path:
    """Path of the file in `file.py:function`, relative names starting from `folder`."""
    return folder / name.rpartition(":")[0]


def expect(
    case: Case,
    arrays: Mapping[str, NDArray[Any]],
    timeout: float = TIMEOUT,
    log: Callable[[str], None] | None = None,
) -> dict[str, Expectation]:
    """Ask the user's oracle of `case`; every fault of it becomes an OracleError that says which."""
    file = file_of(case.variant.oracle, case.loaded.folder)
    if not file.is_file():
        raise _fault(case, f"there is no file {file.name} beside the spec", mend="check the path")
    with process.temporary_folder(prefix="tokitai-oracle-") as folder:
        _write_request(case, arrays, file, folder)
        done = process.run(
            (sys.executable, "-I", str(Path(child.__file__).resolve()), str(folder)),
            env={name: os.environ[name] for name in _PASSED_ON if name in os.environ},
            cwd=folder,
            timeout=timeout,
            max_output=1 << 20,
        )
        printed = (done.stdout + done.stderr).strip()
        if log is not None and printed:
            log(printed)
        if done.timed_out:
            raise _fault(case, f"gave no answer in {timeout:g} s and was ended", printed)
        answer = _read_answer(folder)
        if answer is None:
            how = f"signal {-done.returncode}" if done.returncode < 0 else f"exit {done.returncode}"
            raise _fault(case, f"its process ended without an answer ({how})", printed)
        if "failure" in answer:
            raise _fault(case, str(answer["failure"]), printed)
        outputs = case.buffers_of(Role.OUTPUT, Role.INOUT)
        _check_names(case, set(answer["outputs"]), {plan.name for plan in outputs}, printed)
        return {
            plan.name: _expectation(case, plan, answer["outputs"][plan.name], folder)
            for plan in outputs
        }


def require(case: Case) -> None:
    """Raise SpecError where the oracle's file cannot define the function, or not with its arguments.

    The file is read, not run: what it might define in other ways than by its text is let pass.
    """
    import ast
    import warnings

    file = file_of(case.variant.oracle, case.loaded.folder)
    name = case.variant.oracle.rpartition(":")[2]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(file.read_bytes())
    except OSError as error:
        raise _misfit(case, f"{file.name} cannot be read: {error.strerror}") from None
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = f":{error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        told = error.msg if isinstance(error, SyntaxError) else str(error)
        raise _misfit(case, f"{file.name}{line} is no Python: {told}") from None
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    names = set[str]()  # that the rest of the file uses or binds
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name)
        elif isinstance(node, ast.ClassDef) or (
            isinstance(node, ast.FunctionDef) and node not in tree.body
        ):
            names.add(node.name)
    if name in names or names & {"*", "exec", "globals"}:
        return
    if name not in functions:
        raise _misfit(case, f"{file.name} defines no function {name}", near(name, functions))
    found = functions[name]
    if not found.decorator_list and not _takes_three(found.args):
        said = f"{file.name}:{found.lineno}: {name} cannot be called with three arguments"
        raise _misfit(case, said, f"write def {name}(params, inputs, scalars)")


def _takes_three(given: ast.arguments) -> bool:
    places = len(given.posonlyargs) + len(given.args)
    needed = places - len(given.defaults)
    enough = places >= _ARGUMENTS or given.vararg is not None
    return needed <= _ARGUMENTS and enough and None not in given.kw_defaults


def _misfit(case: Case, message: str, mend: str = "") -> SpecError:
    key = f"variants.{case.variant_name}.oracle"
    return SpecError(message, where=Location(file=case.loaded.path, key=key), mend=mend)


def _write_request(
    case: Case, arrays: Mapping[str, NDArray[Any]], file: Path, folder: Path
) -> None:
    inputs = []
    for number, (name, array) in enumerate(arrays.items()):
        # .npy names no dtype of ml_dtypes: the child gets the bits.
        known = array.dtype.isbuiltin == 1
        stored = array if known else array.view(f"u{array.dtype.itemsize}")
        np.save(folder / f"input-{number}.npy", stored, allow_pickle=False)
        inputs.append({"name": name, "dtype": array.dtype.name, "file": f"input-{number}.npy"})
    request = {
        "file": str(file.resolve()),
        "function": case.variant.oracle.rpartition(":")[2],
        "params": dict(case.shape),
        "scalars": _scalars(case),
        "packages": str(Path(np.__file__).resolve().parent.parent),
        "inputs": inputs,
    }
    (folder / child.REQUEST).write_text(json.dumps(request), encoding="utf-8")


def _scalars(case: Case) -> dict[str, Any]:
    """Scalars of the spec as the kernels get them: decoded from the launches' bits."""
    values: dict[str, Any] = {}
    for launch in case.launches:
        for argument in launch.args:
            if isinstance(argument, ScalarValue) and argument.name in case.variant.scalars:
                number = np.frombuffer(argument.bits, dtype=numpy_dtype(argument.dtype))[0]
                is_float = argument.dtype in FORMATS
                values[argument.name] = float(number) if is_float else number.item()
    return values


def _read_answer(folder: Path) -> dict[str, Any] | None:
    try:
        answer = json.loads((folder / child.ANSWER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return answer if isinstance(answer, dict) else None


def _check_names(case: Case, given: set[str], wanted: set[str], log: str) -> None:
    if missing := sorted(wanted - given):
        raise _fault(case, f"returned nothing for {', '.join(missing)}", log)
    if unknown := sorted(given - wanted):
        raise _fault(case, f"returned {', '.join(unknown)}, which is no output", log)


def _expectation(
    case: Case, plan: BufferPlan, parts: Mapping[str, str], folder: Path
) -> Expectation:
    loaded: dict[str, NDArray[Any]] = {}
    for part, file in parts.items():
        try:
            array = np.load(folder / file, allow_pickle=False)
        except (OSError, ValueError) as failure:
            raise _fault(case, f"{part} of {plan.name} cannot be read: {failure}") from failure
        if array.shape != plan.shape:
            raise _fault(
                case,
                f"{part} of {plan.name} has shape {list(array.shape)}, not {list(plan.shape)}",
            )
        loaded[part] = array
    reference = _reference(case, plan, loaded["reference"])
    error = loaded.get("error")
    if error is not None:
        _check_error(case, plan, error, reference)
    unwritten = loaded.get("may_be_unwritten")
    if unwritten is not None and unwritten.dtype != np.bool_:
        raise _fault(case, f"may_be_unwritten of {plan.name} is {unwritten.dtype}, not bool")
    low = loaded.get("low")
    if low is not None:
        low = _low(case, plan, low, reference)
    return Expectation(reference=reference, error=error, may_be_unwritten=unwritten, low=low)


def _low(
    case: Case, plan: BufferPlan, low: NDArray[Any], reference: NDArray[Any]
) -> NDArray[np.float64]:
    """Check the low part of a double-double; zero where the reference is not finite."""
    if plan.dtype != "float64" or low.dtype != np.float64:
        raise _fault(case, f"low of {plan.name}: only float64 outputs have one, in float64")
    finite = np.isfinite(reference)
    half = 0.5 * spacing(reference, FORMATS["float64"])
    with np.errstate(invalid="ignore"):
        if not np.all(np.abs(low[finite]) <= half[finite]):
            raise _fault(
                case,
                f"low of {plan.name} has NaN, or values above half an ulp of the reference",
                mend="let the reference be the nearest float64, and low the rest",
            )
    return np.where(finite, low, 0.0)


def _reference(case: Case, plan: BufferPlan, array: NDArray[Any]) -> NDArray[Any]:
    """Check the dtype: float64 for floats, else integers (or bools) that the output can hold."""
    said = f"reference of {plan.name} is {array.dtype}"
    if plan.dtype in FORMATS:
        if array.dtype != np.float64:
            raise _fault(case, f"{said}, not float64", mend="compute and return float64")
        return array
    dtype = numpy_dtype(plan.dtype)
    if dtype == np.bool_ or array.dtype.kind not in "iu":
        if array.dtype != dtype:
            raise _fault(case, f"{said}, not {plan.dtype}")
        return array
    limits = np.iinfo(dtype)
    if array.size and not limits.min <= int(array.min()) <= int(array.max()) <= limits.max:
        raise _fault(case, f"{said} with values that {plan.dtype} cannot hold")
    return array.astype(dtype)


def _check_error(
    case: Case, plan: BufferPlan, error: NDArray[Any], reference: NDArray[Any]
) -> None:
    if plan.dtype not in FORMATS:
        raise _fault(case, f"error of {plan.name}: {plan.dtype} outputs are exact and have none")
    if error.dtype != np.float64:
        raise _fault(case, f"error of {plan.name} is {error.dtype}, not float64")
    if np.any((np.isnan(error) & np.isfinite(reference)) | (error < 0)):
        raise _fault(case, f"error of {plan.name} has negative values or NaN")


def _fault(case: Case, message: str, log: str = "", mend: str = "") -> OracleError:
    lines = log.splitlines()[-_LOG_LINES:]
    printed = "\nit printed:\n" + "\n".join(f"  {line}" for line in lines) if lines else ""
    return OracleError(
        f"oracle {case.variant.oracle}: {message}{printed}",
        where=Location(file=case.loaded.path, key=f"variants.{case.variant_name}.oracle"),
        mend=mend,
    )
