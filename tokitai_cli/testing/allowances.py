"""Options of a comparison: their types, and what they must be."""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping
from typing import Any, Literal, Required, TypedDict

import numpy as np

from tokitai_cli.core.dtypes import DTYPES
from tokitai_cli.core.errors import UsageError, near
from tokitai_cli.core.model.spec import MatrixArchitecture
from tokitai_cli.testing.arrays import as_numpy

# A name, or what numpy, ml_dtypes or torch have for it.
DType = Any


class Unit(TypedDict, total=False):
    """A matrix unit that makes the sums, as `accumulate` of a spec's oracle has it."""

    unit: Required[Literal["tensor-core", "wmma", "mfma"]]
    #: Whose it is; without it the bound holds for all of them.
    architecture: MatrixArchitecture


# dtype of the sums, or the unit that makes them.
Accumulate = Literal["float16", "bfloat16", "float32", "float32-truncated"] | Unit
# "any" order of additions, "none" for no sum, Welford's update, or additions on the longest path.
Order = Literal["any", "none", "welford"] | int
_ORDERS = ("any", "none", "welford")


class Allowed(TypedDict, total=False):
    """What a comparison allows beside the formula, as keywords."""

    #: dtype in which the kernel keeps its sums, or the matrix unit that makes them; default: float32.
    accumulate: Accumulate
    #: What is known of the order of additions; any order by itself.
    reduction: Order
    #: Errors of functions in ulp, by name, where they are not those of HIP and CUDA.
    precision: Mapping[str, float]
    #: Subnormal results may be flushed to zero.
    flush_to_zero: bool
    #: Inputs of float32 are cut to TF32 before they are used.
    tf32: bool


def require_valid(formula: Any, allowed: Mapping[str, Any]) -> None:
    """Raise UsageError for a formula that is no function, and for options that are none of `Allowed`."""
    if not callable(formula):
        raise UsageError(f"the formula must be a function, not {_told(formula)}")
    for name in set(allowed) - set(Allowed.__annotations__):
        raise UsageError(f"there is no option {name}", hint=near(name, Allowed.__annotations__))
    for name in ("flush_to_zero", "tf32"):
        if not isinstance(allowed.get(name, False), bool | np.bool_):
            raise UsageError(f"{name} must be True or False, not {_told(allowed[name])}")
    precision = allowed.get("precision", {})
    if not isinstance(precision, Mapping):
        raise UsageError(f"precision must be errors by function, not {_told(precision)}")
    order = allowed.get("reduction", "any")
    if isinstance(order, str) and order not in _ORDERS:
        hint = near(order, _ORDERS) or "or the number of additions on the longest path"
        raise UsageError(f"reduction must be {', '.join(_ORDERS)}, not {order!r}", hint=hint)
    if not isinstance(order, str) and _integer(order, "reduction") < 0:
        raise UsageError(f"reduction must be 0 additions or more, not {order}")


def numbers(scalars: Any, params: Any) -> tuple[dict[str, Any], dict[str, int]]:
    """Scalars and parameters as Python's numbers. Raises UsageError for what is none."""
    for name, given in (("scalars", scalars), ("params", params)):
        if given is not None and not isinstance(given, Mapping):
            raise UsageError(f"{name} must be numbers by name, not {_told(given)}")
    found = {str(name): _scalar(one, str(name)) for name, one in (scalars or {}).items()}
    return found, {str(name): _integer(one, str(name)) for name, one in (params or {}).items()}


def dtype_names(dtype: Any, outputs: Collection[str]) -> dict[str, str]:
    """The name of each output's dtype. Raises UsageError where it is none of a kernel."""
    given = dtype if isinstance(dtype, Mapping) else dict.fromkeys(outputs, dtype)
    return {str(name): _dtype_name(one, str(name)) for name, one in given.items()}


def _dtype_name(dtype: Any, name: str) -> str:
    found = dtype if isinstance(dtype, str) else str(dtype).removeprefix("torch.")
    if found not in DTYPES and not isinstance(dtype, str):
        try:
            found = np.dtype(dtype).name
        except TypeError:
            found = _told(dtype)
    if found not in DTYPES:
        raise UsageError(f"dtype {found} of {name} is not a kernel dtype", hint=near(found, DTYPES))
    return found


def _scalar(value: Any, name: str) -> Any:
    if isinstance(value, float):
        return value
    found = as_numpy(value, name)
    if found.ndim:
        hint = "arrays belong into inputs"
        raise UsageError(f"the scalar {name} is an array of shape {[*found.shape]}", hint=hint)
    return found.item()


def _integer(value: Any, name: str) -> int:
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise UsageError(f"{name} must be an integer, not {_told(value)}") from None


def _told(value: Any) -> str:
    return f"{value!r:.60} ({type(value).__name__})" if isinstance(value, str | float | int) else (
        type(value).__name__
    )  # fmt: skip
