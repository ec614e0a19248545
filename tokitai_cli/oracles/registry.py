"""Oracles by name: the built-in ones, and `file.py:function` beside a spec."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli import dtypes, numerics
from tokitai_cli.dtypes import numpy_dtype
from tokitai_cli.errors import Location, OracleError, SpecError, near
from tokitai_cli.model.case import Case, Expectation, Replay, Role, StatedProperty
from tokitai_cli.model.spec import Variant
from tokitai_cli.oracles import (
    bounds,
    embedding,
    exact,
    gemm,
    layernorm,
    layernorm_gradient,
    matrix_rows,
    products,
    properties,
    sequential,
    softmax,
    special,
    user,
)

Arrays = Mapping[str, NDArray[Any]]
_UNTHINKABLE = 2**62  # bytes; numpy has no array of that size, not even of one element's memory


class BuiltIn(msgspec.Struct, frozen=True):
    """A built-in oracle: its reference, its replay, and the files that its digest covers.

    read: takes from a case what the oracle needs, and raises SpecError where that is not there.
    """

    read: Callable[[Case, Arrays], object]
    expect: Callable[[Case, Arrays], dict[str, Expectation]]
    replay: Callable[[Case, Arrays, int], dict[str, Replay]] | None
    files: tuple[str, ...]


def _product(operands: products.Operands) -> BuiltIn:
    return BuiltIn(
        read=operands,
        expect=functools.partial(gemm.expect, operands),
        replay=functools.partial(sequential.replay_sequential, operands),
        files=tuple(
            str(module.__file__)
            for module in (gemm, products, special, sequential, bounds, exact, numerics, dtypes)
        ),
    )


def _rows(
    module: ModuleType,
    read: Callable[[Case, Arrays], object],
    reference: Callable[[Case, Arrays], dict[str, Expectation]],
    repeat: Callable[[Case, Arrays, int], dict[str, Replay]] | None,
) -> BuiltIn:
    files = tuple(
        str(one.__file__)
        for one in (module, matrix_rows, bounds, exact, properties, numerics, dtypes)
    )
    return BuiltIn(read, reference, repeat, files)


_BUILT_IN: dict[str, BuiltIn] = {
    "gemm-bw.grad-a": _product(products.grad_a),
    "gemm-bw.grad-b": _product(products.grad_b),
    "embedding.fwd": _rows(
        embedding, embedding.read_forward, embedding.expect_forward, embedding.replay_forward
    ),
    "embedding.bwd": _rows(embedding, embedding.read_backward, embedding.expect_backward, None),
    "softmax.fwd": _rows(
        softmax, softmax.read_forward, softmax.expect_forward, softmax.replay_forward
    ),
    "softmax.grad": _rows(
        softmax, softmax.read_gradient, softmax.expect_gradient, softmax.replay_gradient
    ),
    "layernorm.fwd": _rows(layernorm, layernorm.read, layernorm.expect, layernorm.replay),
    "layernorm.bwd": _rows(
        layernorm_gradient,
        layernorm_gradient.read,
        layernorm_gradient.expect,
        layernorm_gradient.replay,
    ),
}


def names() -> tuple[str, ...]:
    """Names of the built-in oracles."""
    return tuple(_BUILT_IN)


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
    return _find(case, name, "oracle").expect(case, arrays)


def replay(case: Case, arrays: Arrays, seed: int | None = None) -> dict[str, Replay]:
    """Bits that a kernel with the order of the variant's `replay` gives; empty where there is none.

    `seed` (the case's own by default) chooses the rows where only a sample is replayed.
    """
    name = case.variant.replay
    if not name:
        return {}
    repeat = _replay(case).replay
    assert repeat is not None
    return repeat(case, arrays, case.seed if seed is None else seed)


def require_fit(case: Case) -> None:
    """Raise SpecError for what is known without a run: that oracle, replay or properties do not fit.

    Built-in oracles are shown the case's arrays by dtype and shape; of a user's own one the function
    and its arguments are looked at.
    """
    properties.require(case)
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
    else:
        _find(case, variant.oracle, "oracle").read(case, arrays)
    if variant.replay:
        _replay(case).read(case, arrays)


def stated_properties(
    case: Case, arrays: Arrays, expectations: Mapping[str, Expectation]
) -> tuple[StatedProperty, ...]:
    """Give the properties that the variant asks for and that the case has a place for.

    `expectations` are what `expect` said. Raises SpecError as `require_fit` does.
    """
    return properties.stated(case, arrays, expectations)


def identity(variant: Variant, folder: Path) -> str:
    """Sha256 in hex of the source text that decides what the oracle says.

    Covers the file of a user's oracle, which may import nothing beside it; of a built-in one its
    module and the formulas that it uses. OracleError where the file cannot be read.
    """
    name = variant.oracle
    paths = [user.file_of(name, folder)] if is_user(name) else []
    if name in _BUILT_IN:
        paths = [Path(file) for file in _BUILT_IN[name].files]
    digest = hashlib.sha256()
    for path in paths:
        try:
            digest.update(hashlib.sha256(path.read_bytes()).digest())
        except OSError as error:
            raise OracleError(f"cannot read the oracle {path.name}: {error.strerror}") from error
    return digest.hexdigest()


def own_file(variant: Variant) -> str:
    """File of the user's own oracle as the spec names it; empty where the oracle is built in."""
    return variant.oracle.rpartition(":")[0]


def is_user(name: str) -> bool:
    """Whether an oracle's name is `file.py:function`."""
    return ":" in name


def _replay(case: Case) -> BuiltIn:
    name = case.variant.replay
    found = _find(case, name, "replay")
    if found.replay is None:
        raise _unknown(case, name, "replay", replay_names())
    return found


def _find(case: Case, name: str, key: str) -> BuiltIn:
    if name not in _BUILT_IN:
        raise _unknown(case, name, key, names() if key == "oracle" else replay_names())
    return _BUILT_IN[name]


def _unknown(case: Case, name: str, key: str, known: tuple[str, ...]) -> SpecError:
    where = Location(file=case.loaded.path, key=f"variants.{case.variant_name}.{key}")
    return SpecError(f"unknown {key} {name!r}", where=where, mend=near(name, known))
