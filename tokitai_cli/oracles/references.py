"""Oracles by name: formulas of the built-in ops, and `file.py:function` beside a spec."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.dtypes import numpy_dtype
from tokitai_cli.core.errors import Location, SpecError, near
from tokitai_cli.core.model.case import BufferPlan, Case, Role
from tokitai_cli.core.model.draws import functions_of
from tokitai_cli.core.model.expectation import Expectation, Replay, StatedProperty
from tokitai_cli.core.model.spec import Spec, Variant
from tokitai_cli.core.numerics import bit_source
from tokitai_cli.core.python_source import function_text
from tokitai_cli.core.storage import data_sha256
from tokitai_cli.oracles import builtin, fit
from tokitai_cli.oracles.case_request import Arrays
from tokitai_cli.oracles.properties import PROPERTIES, Given
from tokitai_cli.oracles.sequential import REPLAYS
from tokitai_cli.oracles.user import user_oracle
from tokitai_cli.oracles.user.imported import digest_of, files_of
from tokitai_cli.oracles.user.packages import packages_of


def names() -> tuple[str, ...]:
    """Names of the built-in oracles."""
    return builtin.names()


def expect(
    case: Case,
    arrays: Arrays,
    *,
    timeout: float = user_oracle.TIMEOUT,
    log: Callable[[str], None] | None = None,
    later: bool = False,
) -> dict[str, Expectation]:
    """Say what every output and in-out of `case` must be, by name; `arrays` holds what was drawn.

    The oracle gets arrays that it cannot change for others: built-in ones only read, a user's own
    works on copies in a process of its own, ended after `timeout` seconds. What that one prints
    goes to `log`, or into the message of its failure. later: whether a large answer of a built-in one
    may be computed while it is judged (`core.deferred`).

    Raises OracleError where a user's oracle fails, SpecError where oracle and spec do not fit,
    NotRunError where the profile has no meaning at this shape.
    """
    arrays = _as_set(case, arrays)
    if is_user(case.variant.oracle):
        found = user_oracle.expect(case, arrays, timeout, log)
    else:
        found = builtin.expect(
            case, arrays, _file(case, case.variant.oracle, "oracle"), later=later
        )
    return found | {plan.name: _either(plan, arrays[plan.name]) for plan in masks_of(case)}


def masks_of(case: Case) -> tuple[BufferPlan, ...]:
    """Outputs that the kernel draws by chance; `arrays` may have them, to say the rest by."""
    return tuple(plan for plan in case.buffers if plan.kept is not None)


def _either(plan: BufferPlan, mask: NDArray[Any]) -> Expectation:
    """0 and 1 are both right in a mask, whatever it is."""
    reference = (mask != 0).astype(numpy_dtype(plan.dtype))
    return Expectation(reference, allowed=(mask == 0).astype(reference.dtype)[None])


def _example(case: Case, plan: BufferPlan) -> NDArray[Any]:
    """A mask by chance, by which the oracle is asked where there is none of a kernel."""
    assert plan.kept is not None
    source = bit_source(case.seed, case.loaded.spec.op, case.variant_name, plan.name, "mask")
    chance = (source.random_raw(plan.elements) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return (chance < plan.kept).astype(numpy_dtype(plan.dtype)).reshape(plan.shape)


def _as_set(case: Case, arrays: Arrays) -> Arrays:
    """The arrays with zeros for those that need not be set, on which nothing hangs, and with masks."""
    unset = [plan.name for plan in case.buffers if plan.unset]
    masks = {one.name: _example(case, one) for one in masks_of(case) if one.name not in arrays}
    return {**arrays, **{name: np.zeros_like(arrays[name]) for name in unset}, **masks}


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
    variant, arrays = case.variant, _as_set(case, arrays)
    if variant.replay:
        _file(case, variant.replay, "replay")
    if variant.replay in REPLAYS:
        return REPLAYS[variant.replay](case, arrays, case.seed if seed is None else seed)
    given = {
        output: Replay(one.replay)
        for output, one in (expectations or {}).items()
        if one.replay is not None
    }
    name = variant.replay or ("" if is_user(variant.oracle) else variant.oracle)
    if given or not name or not any(check.against == "replay" for check in variant.checks):
        return given
    return builtin.replay(case, arrays, name, _file(case, name, "replay"))


def require_fit(case: Case) -> None:
    """Raise SpecError for what is known without a run: that oracle, replay or properties do not fit.

    Built-in oracles are shown the case's arrays by dtype and shape; of a user's own one the function
    and its arguments are looked at.
    """
    _require_properties(case)
    variant = case.variant
    if is_user(variant.oracle):
        user_oracle.require(case)
    for key, name in {"replay": variant.replay, "oracle": variant.oracle}.items():
        if name and not is_user(name):
            file = _file(case, name, key)
            fit.require(case, name, key, file, builtin.function(name, file))


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
        output, build = PROPERTIES[case.variant.oracle][asked.name]
        if output in plans and plans[output].elements:
            found.append(build(Given(case, arrays, plans[output], expectations[output])))
    return tuple(one for one in found if one is not None)


def identity(variant: Variant, folder: Path) -> str:
    """Sha256 in hex of the source text that decides what the oracle says.

    Covers the file of a user's oracle, the modules beside it that it imports, files of data that they
    name and installed packages; of a built-in one its file and all that makes bounds of it. OracleError
    where a file cannot be read.
    """
    name = variant.oracle
    if is_user(name):
        return _of_user(name, folder)
    file = builtin.file_of(name)
    return digest_of([file], builtin.engine_digests()) if file else digest_of([])


def shipped_code(names: Iterable[str]) -> dict[str, str]:
    """Code of the built-in formulas among `names`, each with what of its file it leads to."""
    found = {}
    for name in names:
        file = None if is_user(name) else builtin.file_of(name)
        if file is not None:
            function = name.partition(".")[2].replace("-", "_")
            found[name] = function_text(file.read_text(encoding="utf-8"), function)
    return found


def own_files(spec: Spec, variant: Variant, folder: Path) -> list[str]:
    """Files of the variant's own oracle and draws, relative to the spec's folder."""
    names = [*filter(is_user, (variant.oracle,)), *functions_of(spec, variant)]
    return [os.path.relpath(path, folder) for name in names for path in files_of(name, folder)]


def identities(spec: Spec, variant: Variant, folder: Path) -> dict[str, str]:
    """The identity of the variant's oracle, and the same of each function that draws for it, by name;
    and the installed packages that these import (see `packages_of`).
    """
    draws = {name: _of_user(name, folder) for name in functions_of(spec, variant)}
    found = {variant.oracle: identity(variant, folder), **draws}
    for name in filter(is_user, tuple(found)):
        found |= packages_of(name, folder)
    return found


def _of_user(name: str, folder: Path) -> str:
    """The identity of a user's function: its files, and the packages that they import."""
    packages = packages_of(name, folder)
    files = digest_of(files_of(name, folder))
    return data_sha256([files, packages]) if packages else files


def _require_properties(case: Case) -> None:
    """Raise SpecError where the variant asks for a property that its oracle does not state."""
    oracle = case.variant.oracle
    known = PROPERTIES.get(oracle, {})
    for index, asked in enumerate(case.variant.properties):
        key = f"variants.{case.variant_name}.properties[{index}]"
        if asked.name not in known:
            where = Location(file=case.loaded.path, key=f"{key}.name")
            hint = (
                near(asked.name, known)
                if known
                else f"only {', '.join(sorted(PROPERTIES))} state any"
            )
            said = f"oracle {oracle} states no property {asked.name}"
            raise SpecError(said, where=where, hint=hint)
        stated = known[asked.name][0]
        if asked.output and asked.output != stated:
            where = Location(file=case.loaded.path, key=f"{key}.output")
            said = f"oracle {oracle} states {asked.name} of {stated}, not of {asked.output}"
            raise SpecError(said, where=where, hint=f"write {stated}")


def is_user(name: str) -> bool:
    """Whether an oracle's name is `file.py:function`."""
    return ":" in name


def _file(case: Case, name: str, key: str) -> Path:
    """File of a built-in formula; SpecError for `key` of the variant where it has none."""
    file = builtin.file_of(name)
    if file is None:
        where = Location(file=case.loaded.path, key=f"variants.{case.variant_name}.{key}")
        raise SpecError(f"unknown {key} {name!r}", where=where, hint=near(name, names()))
    return file
