"""Values at which kernels of a formula's kind often fail, and whether any profile has them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core import storage
from tokitai_cli.core.dtypes import FORMATS
from tokitai_cli.core.model.case import Case, LoadedSpec
from tokitai_cli.oracles.user.imported import file_of
from tokitai_cli.run.prepare import Prepared

_LARGE = 89.0  # whose exponential overflows in float32
_STEEP = 40.0  # whose exponential, or that of its negative, is nothing beside 1
_SMALL = 0.1  # up to which constants such as 1e-5 matter beside squares
_FAR = 8.0  # standard deviations of a mean from 0
_Floats = NDArray[np.floating[Any]]


def _has_ties(array: _Floats) -> bool:
    rows = array.reshape(-1, array.shape[-1]) if array.ndim else array.reshape(1, -1)
    return any(len(np.unique(row)) < row.size for row in rows[:64])


def _has_zero_rows(array: _Floats) -> bool:
    rows = array.reshape(-1, array.shape[-1]) if array.ndim else array.reshape(1, -1)
    return bool((~rows.any(axis=1)).any())


# By the profile that has them: what is missing, and what shows that it is not.
KINDS: Mapping[str, tuple[str, Callable[[_Floats], bool]]] = {
    "large": (
        "uses exponentials and a maximum, and no profile is large enough for the "
        "exponentials to overflow",
        lambda array: bool(np.abs(array).max() >= _LARGE),
    ),
    "negative": (
        "takes a maximum, and on no profile are all values negative, so a kernel that "
        "starts the maximum at 0 would pass",
        lambda array: bool(array.max() < 0),
    ),
    "ties": ("returns positions of values, and no profile has equal values", _has_ties),
    "steep": (
        "uses exponentials, and no profile makes them very large or zero",
        lambda array: bool(np.abs(array).max() >= _STEEP),
    ),
    "overflowing": (
        "uses exponentials and gives numbers where they overflow, and no profile is large enough "
        "for that",
        lambda array: bool(array.max() >= _LARGE and array.min() <= -_LARGE),
    ),
    "offset": (
        "uses a variance, and on no profile is the mean far from 0, so cancellation of "
        "squares would pass",
        lambda array: bool(abs(array.mean()) > _FAR * array.std() > 0),
    ),
    "zero-rows": (
        "divides by a computed value, and no profile makes it 0",
        _has_zero_rows,
    ),
    "tiny": (
        "adds a small constant, and no profile has values beside which it matters",
        lambda array: bool(np.abs(array).max() <= _SMALL),
    ),
}


def nodes_of(loaded: LoadedSpec, variant: str) -> list[ast.AST]:
    """Code of a user's formula: the statements of its file that give its name, and the names in these.

    None of another oracle.
    """
    oracle = loaded.spec.variants[variant].oracle
    if not loaded.spec.variants[variant].own_oracle:
        return []
    text = storage.read_plain(file_of(oracle, loaded.path.parent)).decode("utf-8", errors="replace")
    body = ast.parse(text).body
    wanted, found = {oracle.rpartition(":")[2]}, dict[ast.stmt, None]()
    while more := [one for one in body if one not in found and _bound(one) & wanted]:
        found |= dict.fromkeys(more)
        nodes = (node for one in more for node in ast.walk(one))
        wanted |= {node.id for node in nodes if isinstance(node, ast.Name)}
    return [node for one in found for node in ast.walk(one)]


def _bound(statement: ast.stmt) -> set[str]:
    """Names that a statement of a module gives something to."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return {statement.name}
    every = ast.walk(statement)
    return {one.id for one in every if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}


def kinds_of(loaded: LoadedSpec, variant: str) -> set[str]:
    """Kinds of KINDS that a formula of the user's asks for, by the functions of numpy that it calls."""
    nodes = nodes_of(loaded, variant)
    functions = (one.func for one in nodes if isinstance(one, ast.Call))
    called = {one.attr for one in functions if isinstance(one, ast.Attribute)}
    products = called & {"einsum", "matmul", "dot"} or any(
        isinstance(one, ast.MatMult) for one in nodes
    )
    places = called & {"argmax", "argmin", "argsort", "argpartition"}
    largest = called & {"max", "amax", "argmax", "sort", "argsort"}
    found = {"ties"} if places else set()
    found |= {"negative"} if largest and not products else set()  # of two negative ones is none
    exponentials = called & {"exp", "exp2", "expm1", "tanh", "logaddexp"}
    found |= {"large"} if exponentials and largest else set()
    found |= {"overflowing", "steep"} if exponentials and not largest else set()
    variance = called & {"var", "std"} or ("mean" in called and _squares(nodes, called))
    found |= {"offset"} if variance else set()
    measured = called & {"abs", "absolute"} and called & {"max", "amax", "sum"}
    return found | ({"zero-rows"} if (measured or "norm" in called) and _divides(nodes) else set())


def _squares(nodes: list[ast.AST], called: set[str]) -> bool:
    """Whether something is multiplied by itself, and something taken away."""
    made = [one for one in nodes if isinstance(one, ast.BinOp)]
    taken = any(isinstance(one.op, ast.Sub) for one in made)
    return taken and ("square" in called or any(map(_is_square, made)))


def _is_square(node: ast.BinOp) -> bool:
    same = ast.dump(node.left) == ast.dump(node.right)
    return isinstance(node.op, ast.Pow) or (isinstance(node.op, ast.Mult) and same)


def _divides(nodes: list[ast.AST]) -> bool:
    return any(isinstance(one, ast.BinOp) and isinstance(one.op, ast.Div) for one in nodes)


def shown_by(case: Case, ready: Prepared) -> set[str]:
    """Kinds that some array of floats of the case has."""
    floats = [
        np.asarray(ready.arrays[one.name], dtype=np.float64)
        for one in case.buffers
        if one.name in ready.arrays and one.dtype in FORMATS and one.elements > 1
    ]
    finite = [one for one in floats if np.isfinite(one).all()]
    return {kind for kind, (_, has) in KINDS.items() if any(map(has, finite))}
