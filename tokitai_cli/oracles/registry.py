"""Oracles by name: the built-in ones, and `file.py:function` beside a spec."""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType

import numpy as np

from tokitai_cli.dtypes import numpy_dtype
from tokitai_cli.errors import Location, SpecError, near
from tokitai_cli.model.case import Case, Expectation, Replay, Role, StatedProperty
from tokitai_cli.model.draws import functions_of
from tokitai_cli.model.spec import Spec, Variant
from tokitai_cli.oracles import formulas, ops, user
from tokitai_cli.oracles.bounds import is_welford
from tokitai_cli.oracles.builtin import Arrays, BuiltIn
from tokitai_cli.oracles.properties import Given
from tokitai_cli.user_code.files import digest_of, files_of

# Modules whose text has a part in what a built-in oracle says.
_FORMULAS = (
    "tokitai_cli.oracles.",
    "tokitai_cli.formula",
    "tokitai_cli.numerics",
    "tokitai_cli.dtypes",
)
_UNTHINKABLE = 2**62  # bytes; numpy has no array of that size, not even of one element's memory


def _built_in() -> Iterator[tuple[str, BuiltIn, ModuleType]]:
    for found in pkgutil.iter_modules(ops.__path__, f"{ops.__name__}."):
        module = importlib.import_module(found.name)
        for name, oracle in getattr(module, "ORACLES", {}).items():
            yield name, oracle, module


_BUILT_IN: dict[str, BuiltIn] = {name: oracle for name, oracle, _ in _built_in()}


def names() -> tuple[str, ...]:
    """Names of the built-in oracles."""
    return tuple(dict.fromkeys((*_BUILT_IN, *formulas.names())))


def replay_names() -> tuple[str, ...]:
    """Names that a variant's `replay` may have: the built-in oracles that repeat a kernel's order."""
    return tuple(name for name, oracle in _BUILT_IN.items() if oracle.replay is not None)


def expect(
    case: Case,
    arrays: Arrays,
    *,
    timeout: float = user.TIMEOUT,
    log: Callable[[str], None] | None = None,
) -> dict[str, Expectation]:
    """Say what every output and in-out of `case` must be, by name; `arrays` holds what was drawn.

    The oracle gets arrays that it cannot change for others: built-in ones only read, a user's own
    works on copies in a process of its own, ended after `timeout` seconds. What that one prints
    goes to `log`, or into the message of its failure.

    Raises OracleError where a user's oracle fails, SpecError where oracle and spec do not fit,
    NotRunError where the profile has no meaning at this shape.
    """
    name = case.variant.oracle
    if is_user(name):
        return user.expect(case, arrays, timeout, log)
    if case.variant.by_formula:
        return formulas.expect(case, arrays, _formula_file(case))
    return _find(case, name, "oracle").expect(case, arrays)


def replay(
    case: Case,
    arrays: Arrays,
    seed: int | None = None,
    expectations: Mapping[str, Expectation] | None = None,
) -> dict[str, Replay]:
    """Bits that a kernel with the order of the variant's `replay` gives; empty where there is none.

    `seed` (the case's own by default) chooses the rows where only a sample is replayed. A formula in
    `expectations` brings its own.
    """
    name = case.variant.replay
    if not name:
        return {
            output: Replay(one.replay)
            for output, one in (expectations or {}).items()
            if one.replay is not None
        }
    repeat = _replay(case).replay
    assert repeat is not None
    return repeat(case, arrays, case.seed if seed is None else seed)


def require_fit(case: Case) -> None:
    """Raise SpecError for what is known without a run: that oracle, replay or properties do not fit.

    Built-in oracles are shown the case's arrays by dtype and shape; of a user's own one the function
    and its arguments are looked at.
    """
    _require_properties(case)
    variant = case.variant
    plans = case.buffers_of(Role.INPUT, Role.INOUT, Role.SYMBOL)
    if any(plan.nbytes >= _UNTHINKABLE for plan in plans):
        return  # such a case is not run
    # Zeros of every dtype and shape in the room of one element.
    arrays = {
        plan.name: np.broadcast_to(np.zeros((), numpy_dtype(plan.dtype)), plan.shape)
        for plan in plans
    }
    if is_user(variant.oracle):
        user.require(case)
    elif variant.by_formula:
        formulas.require(case, arrays, _formula_file(case))
    else:
        _find(case, variant.oracle, "oracle").read(case, arrays)
    _require_reduction(case)
    if variant.replay:
        _replay(case).read(case, arrays)


def _require_reduction(case: Case) -> None:
    """Raise SpecError for a reduction that the oracle has no bound for; a user's own has what it has."""
    variant, fault = case.variant, ("", "")
    built_in = _BUILT_IN.get(variant.oracle) if variant.by_formula is None else None
    if variant.reduction == "none" and built_in is not None:
        fault = f"the oracle {variant.oracle} knows its own reduction", "remove it"
    elif is_welford(case) and (variant.by_formula or (built_in and not built_in.welford)):
        said = f"the oracle {variant.oracle} has no bound for the reduction welford"
        known = ", ".join(name for name, one in _BUILT_IN.items() if one.welford)
        fault = said, f"claim a tree, or any; {known} has one"
    if fault[0]:
        where = Location(file=case.loaded.path, key=f"variants.{case.variant_name}.reduction")
        raise SpecError(fault[0], where=where, mend=fault[1])


def stated_properties(
    case: Case, arrays: Arrays, expectations: Mapping[str, Expectation]
) -> tuple[StatedProperty, ...]:
    """Give the properties that the variant asks for on the case's profile and that have a place there.

    A shift that no row takes exactly has none. `expectations` are what `expect` said. Raises SpecError
    as `require_fit` does.
    """
    _require_properties(case)
    plans = {plan.name: plan for plan in case.buffers_of(Role.OUTPUT, Role.INOUT)}
    found = []
    for asked in case.variant.properties:
        if asked.profiles and case.profile not in asked.profiles:
            continue
        output, build = _BUILT_IN[case.variant.oracle].properties[asked.name]
        if output in plans and plans[output].elements:
            found.append(build(Given(case, arrays, plans[output], expectations[output])))
    return tuple(one for one in found if one is not None)


def identity(variant: Variant, folder: Path) -> str:
    """Sha256 in hex of the source text that decides what the oracle says.

    Covers the file of a user's oracle and the modules beside it that it imports; of a built-in one its
    module and the formulas that it uses. OracleError where the file cannot be read.
    """
    name = variant.oracle
    paths = files_of(name, folder) if is_user(name) else []
    if variant.by_formula and (file := formulas.file_of(name)):
        paths = [file, *formulas.engine()]
    elif name in _BUILT_IN:
        paths = _sources_of(next(module for found, _, module in _built_in() if found == name))
    return digest_of(paths)


def own_files(spec: Spec, variant: Variant, folder: Path) -> list[str]:
    """Files of the variant's own oracle and draws, relative to the spec's folder."""
    names = [*filter(is_user, (variant.oracle,)), *functions_of(spec, variant)]
    return [os.path.relpath(path, folder) for name in names for path in files_of(name, folder)]


def identities(spec: Spec, variant: Variant, folder: Path) -> dict[str, str]:
    """The identity of the variant's oracle, and the same of each function that draws for it, by name."""
    draws = {name: digest_of(files_of(name, folder)) for name in functions_of(spec, variant)}
    return {variant.oracle: identity(variant, folder), **draws}


def _sources_of(module: ModuleType) -> list[Path]:
    """Files of a module of `oracles.ops` and of all that it takes from oracles and numerics."""
    found: dict[str, ModuleType] = {}
    todo = [module]
    while todo:
        one = todo.pop()
        found[one.__name__] = one
        used = {getattr(value, "__module__", None) or "" for value in vars(one).values()}
        todo += [sys.modules[name] for name in used - found.keys() if name.startswith(_FORMULAS)]
    return [Path(str(found[name].__file__)) for name in sorted(found)]


def _require_properties(case: Case) -> None:
    """Raise SpecError where the variant asks for a property that its oracle does not state."""
    oracle = case.variant.oracle
    known = _BUILT_IN[oracle].properties if oracle in _BUILT_IN else {}
    for index, asked in enumerate(case.variant.properties):
        key = f"variants.{case.variant_name}.properties[{index}]"
        if asked.name not in known:
            where = Location(file=case.loaded.path, key=f"{key}.name")
            stating = ", ".join(name for name, one in _BUILT_IN.items() if one.properties)
            mend = near(asked.name, known) if known else f"only {stating} state any"
            said = f"oracle {oracle} states no property {asked.name}"
            raise SpecError(said, where=where, mend=mend)
        stated = known[asked.name][0]
        if asked.output and asked.output != stated:
            where = Location(file=case.loaded.path, key=f"{key}.output")
            said = f"oracle {oracle} states {asked.name} of {stated}, not of {asked.output}"
            raise SpecError(said, where=where, mend=f"write {stated}")


def is_user(name: str) -> bool:
    """Whether an oracle's name is `file.py:function`."""
    return ":" in name


def _replay(case: Case) -> BuiltIn:
    name = case.variant.replay
    found = _find(case, name, "replay")
    if found.replay is None:
        raise _unknown(case, name, "replay", replay_names())
    return found


def _formula_file(case: Case) -> Path:
    name = case.variant.oracle
    file = formulas.file_of(name)
    if file is None:
        raise _unknown(case, name, "oracle", formulas.names())
    return file


def _find(case: Case, name: str, key: str) -> BuiltIn:
    if name not in _BUILT_IN:
        raise _unknown(case, name, key, names() if key == "oracle" else replay_names())
    return _BUILT_IN[name]


def _unknown(case: Case, name: str, key: str, known: tuple[str, ...]) -> SpecError:
    where = Location(file=case.loaded.path, key=f"variants.{case.variant_name}.{key}")
    return SpecError(f"unknown {key} {name!r}", where=where, mend=near(name, known))
