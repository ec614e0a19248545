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

The file runs isolated (python -I): it imports installed packages and modules beside it, by import
statements that its digest follows (see `user_code`).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from tokitai_cli.core import process, python_source, resources
from tokitai_cli.core.dtypes import FORMATS, numpy_dtype
from tokitai_cli.core.errors import Location, OracleError, SpecError
from tokitai_cli.core.model.buffers import drawn_buffers
from tokitai_cli.core.model.case import BufferPlan, Case, Role
from tokitai_cli.core.model.expectation import Expectation, Further, Zeroed
from tokitai_cli.core.model.wording import shortened
from tokitai_cli.oracles.builtin import with_refined
from tokitai_cli.oracles.case_request import Arrays, reduction, request, scalars
from tokitai_cli.oracles.output_parts import ArrayParts
from tokitai_cli.oracles.user.answer_parts import AnswerError, expectation, loaded
from tokitai_cli.oracles.user.calls import call, function_of, output_files, read_answer
from tokitai_cli.oracles.user.imported import file_of
from tokitai_cli.oracles.user.oracle_call import AGAIN, DEPENDENCE, STORED
from tokitai_cli.oracles.variants.dependence import Dependence

TIMEOUT = 60.0
_LOG_LINES = 20
_MOST_TOLD = 4000  # characters of what it raised, and of what it printed
_MOST_SLICES = 24


def expect(
    case: Case,
    arrays: Arrays,
    timeout: float = TIMEOUT,
    log: Callable[[str], None] | None = None,
) -> dict[str, Expectation]:
    """Ask the user's oracle of `case`; every fault of it becomes an OracleError that says which."""
    parts, zeroed, depends_on = _answer(case, arrays, timeout, log, Further())
    plans = case.buffers_of(Role.OUTPUT, Role.INOUT)
    try:
        found = {plan.name: expectation(plan, parts[plan.name]) for plan in plans}
    except AnswerError as error:
        raise _fault(case, str(error), hint=error.hint) from None
    if case.variant.by_formula:
        found = with_refined(
            case, found, lambda further: _answer(case, arrays, timeout, log, further)[0]
        )
    own = case.variant.by_formula is None  # else the tool derived the error
    terms = 0 if case.variant.reduction == "none" else None
    return {
        name: msgspec.structs.replace(
            one,
            own=own,
            terms=terms,
            zeroed=zeroed[name],
            independent=None if depends_on is None else tuple(depends_on.independent.get(name, ())),
            alike=depends_on is not None and name in depends_on.alike,
        )
        for name, one in found.items()
    }


def _answer(
    case: Case,
    arrays: Arrays,
    timeout: float,
    log: Callable[[str], None] | None,
    further: Further,
) -> tuple[dict[str, ArrayParts], dict[str, tuple[Zeroed, ...]], Dependence | None]:
    """Of each output the parts of the answer and what it said of zeroed slices, and what all depend
    on; under what is asked further.
    """
    file = file_of(case.variant.oracle, case.loaded.folder)
    if not resources.is_file(file):
        raise _fault(case, f"no file {file.name} next to the spec", hint="check the path")
    with process.temporary_folder(prefix="tokitai-oracle-") as folder:
        function = function_of(case.variant.oracle, case.loaded.folder)
        more = _asked(case, arrays, further)
        stored = {STORED + name: array for name, array in further.outputs.items()}
        given = {**arrays, **stored}
        called = call("oracle", function, given, more, folder=folder, timeout=timeout)
        printed, answer = called.printed, called.answer
        if log is not None and printed:
            log(printed)
        if answer is None:
            raise _fault(case, called.ended, printed)
        if "failure" in answer:
            raise _fault(case, str(answer["failure"]), printed)
        plans = case.buffers_of(Role.OUTPUT, Role.INOUT)
        files = output_files(answer)
        _check_names(case, set(files), {plan.name for plan in plans}, printed)
        try:
            parts = {plan.name: loaded(plan, files[plan.name], folder) for plan in plans}
        except AnswerError as error:
            raise _fault(case, str(error), hint=error.hint) from None
        zeroed = {plan.name: _said_again(folder, plan) for plan in plans}
        return parts, zeroed, _dependence(folder, {*arrays, *more["scalars"]})


def require(case: Case) -> None:
    """Raise SpecError where the oracle's file cannot define the function, or not with its arguments."""
    file = file_of(case.variant.oracle, case.loaded.folder)
    try:
        name = case.variant.oracle.rpartition(":")[2]
        python_source.check_function(file, name, python_source.ORACLE)
    except SpecError as error:
        key = f"variants.{case.variant_name}.oracle"
        where = Location(file=case.loaded.path, key=key)
        raise SpecError(error.message, where=where, hint=error.hint) from None


def _asked(case: Case, arrays: Arrays, further: Further) -> dict[str, Any]:
    """What an oracle's request says beside its function and arrays."""
    formula = request(case) if case.variant.by_formula else None
    if formula is not None:
        formula["kept"] = further.kept
        formula["probable"] &= not (further.outputs or further.forms)
        formula["precision"]["forms"] = list(further.forms)
    return {
        "params": dict(case.sizes),
        "scalars": scalars(case),
        "reduction": reduction(case),
        "slices": [] if case.variant.by_formula else _slices(case, arrays),
        "formula": formula,
        "dependence": not further.outputs and not further.forms,
    }


def _slices(case: Case, arrays: Arrays) -> list[tuple[str, str, int]]:
    """Slices to ask for: the last and the heaviest along each axis of each input.

    The one slice of an axis is a term only where no output has an axis of that name.
    """
    variant = case.variant
    named = {
        text for one in (*variant.outputs.values(), *variant.inout.values()) for text in one.shape
    }
    return [
        (which, name, axis)
        for name, buffer in drawn_buffers(variant).items()
        for axis, text in enumerate(buffer.shape)
        if arrays[name].size and (arrays[name].shape[axis] > 1 or text not in named)
        for which in ("last", "heaviest")
    ][:_MOST_SLICES]


def _check_names(case: Case, given: set[str], wanted: set[str], log: str) -> None:
    if missing := sorted(wanted - given):
        also = f"; it returned {', '.join(sorted(given))}" if given else ""
        raise _fault(case, f"returned nothing for {', '.join(missing)}{also}", log)
    if unknown := sorted(given - wanted):
        raise _fault(case, f"returned {', '.join(unknown)}, which is not an output", log)


def _dependence(folder: Path, names: set[str]) -> Dependence | None:
    """What the outputs depend on, of `names`; None where that was not asked."""
    try:
        found = msgspec.convert(read_answer(folder / DEPENDENCE, dict), Dependence)
    except msgspec.ValidationError:
        return None
    independent = {
        output: [name for name in said if name in names]
        for output, said in found.independent.items()
    }
    return msgspec.structs.replace(found, independent=independent)


def _said_again(folder: Path, plan: BufferPlan) -> tuple[Zeroed, ...]:
    """What it said of zeroed slices; nothing where its files are not those that the tool writes."""
    try:
        return _zeroed(folder, plan)
    except (OSError, EOFError, LookupError, TypeError, ValueError, AttributeError):
        return ()


def _zeroed(folder: Path, plan: BufferPlan) -> tuple[Zeroed, ...]:
    """What the oracle said of an output when it was asked again; nothing where it was not."""
    found = []
    for asked in read_answer(folder / AGAIN, list) or []:
        entry = asked["outputs"].get(plan.name)
        if entry is None:
            continue
        values = np.load(folder / entry["file"], allow_pickle=False)
        wanted = -(-plan.elements // entry["stride"])
        kinds = "f" if plan.dtype in FORMATS else "b" if plan.dtype == "bool" else "iu"
        if values.size == wanted and values.dtype.kind in kinds:
            which, name, axis = asked["slice"]
            if plan.dtype not in FORMATS:
                values = values.astype(numpy_dtype(plan.dtype))
            found.append(Zeroed(which, name, axis, asked["index"], entry["stride"], values))
    return tuple(found)


def _fault(case: Case, message: str, log: str = "", hint: str = "") -> OracleError:
    lines = shortened(log, _MOST_TOLD).splitlines()[-_LOG_LINES:]
    printed = "\nit printed:\n" + "\n".join(f"  {line}" for line in lines) if lines else ""
    return OracleError(
        f"oracle {case.variant.oracle}: {shortened(message, _MOST_TOLD)}{printed}",
        where=Location(file=case.loaded.path, key=f"variants.{case.variant_name}.oracle"),
        hint=hint,
    )
