"""The operands of a matrix product, taken from a case's arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.dtypes import FORMATS
from tokitai_cli.errors import Location, SpecError
from tokitai_cli.model.case import BufferPlan, Case, Role

Array = NDArray[Any]

_DTYPES = ("float16", "bfloat16", "float32")
# float64 entries of a row block: 16 MiB, large enough for BLAS, small beside the arrays.
_BLOCK = 1 << 21


class Product(msgspec.Struct, frozen=True):
    """The views X [r, n] and Y [n, c] in their storage dtype, and the output they make."""

    x: Array
    y: Array
    names: tuple[str, str]
    output: BufferPlan

    @property
    def terms(self) -> int:
        """Length n of the reduction."""
        return int(self.x.shape[1])

    @property
    def halves(self) -> bool:
        """Whether both operands are float16."""
        return self.x.dtype == np.float16 and self.y.dtype == np.float16

    def has(self, dtype: str) -> bool:
        """Whether an operand is of this dtype."""
        return dtype in {self.x.dtype.name, self.y.dtype.name}

    def row_blocks(self) -> list[slice]:
        """Slices of the rows, each of about `_BLOCK` entries of X or of the output."""
        rows, terms = self.x.shape
        step = max(1, _BLOCK // max(1, terms, self.y.shape[1]))
        return [slice(start, min(start + step, rows)) for start in range(0, rows, step)]


def grad_a(case: Case, arrays: Mapping[str, Array]) -> Product:
    """grad_a[m, k] = sum over n of grad_c[m, n] b[k, n]."""
    grad, b = _named(case, arrays, "grad_c", "b")
    return _product(case, grad, b.T, ("grad_c", "b"))


def grad_b(case: Case, arrays: Mapping[str, Array]) -> Product:
    """grad_b[k, n] = sum over m of a[m, k] grad_c[m, n]."""
    grad, a = _named(case, arrays, "grad_c", "a")
    return _product(case, a.T, grad, ("a", "grad_c"))


Operands = Callable[[Case, Mapping[str, Array]], Product]


def _named(case: Case, arrays: Mapping[str, Array], *names: str) -> list[Array]:
    oracle = f"oracle {case.variant.oracle}"
    mend = "write an oracle of your own"
    if missing := [name for name in names if name not in arrays]:
        raise _misfit(case, f"{oracle} reads inputs named {', '.join(names)}", f"add {missing[0]}")
    for name in names:
        array = arrays[name]
        if array.ndim != 2 or array.dtype.name not in _DTYPES:
            said = f"{name} is {array.dtype.name} with {array.ndim} dimensions"
            raise _misfit(case, f"{oracle} takes matrices of {', '.join(_DTYPES)}; {said}", mend)
    return [arrays[name] for name in names]


def _product(case: Case, x: Array, y: Array, names: tuple[str, str]) -> Product:
    outputs = case.buffers_of(Role.OUTPUT)
    shape = (x.shape[0], y.shape[1])
    if len(outputs) != 1 or x.shape[1] != y.shape[0] or outputs[0].shape != shape:
        shown = ", ".join(f"{plan.name} {list(plan.shape)}" for plan in case.buffers)
        raise _misfit(case, f"shapes do not fit oracle {case.variant.oracle}: {shown}", "")
    if outputs[0].dtype not in _DTYPES:
        judged = f"oracle {case.variant.oracle} judges {', '.join(_DTYPES)}"
        raise _misfit(case, f"{judged}, not {outputs[0].dtype}", "write an oracle of your own")
    return Product(x, y, names, outputs[0])


def _misfit(case: Case, message: str, mend: str) -> SpecError:
    key = f"variants.{case.variant_name}.oracle"
    return SpecError(message, where=Location(file=case.loaded.path, key=key), mend=mend)


def cleaned(part: Array) -> NDArray[np.float64]:
    """Contiguous float64 copy with zeros for what is not finite."""
    copy: NDArray[np.float64] = np.array(part, dtype=np.float64, order="C")
    np.copyto(copy, 0.0, where=~np.isfinite(copy))
    return copy


def _smallest(operand: Array) -> float:
    """Smallest nonzero finite magnitude, infinite where there is none."""
    entries = np.abs(cleaned(operand))
    return float(np.min(entries, where=entries > 0, initial=np.inf))


def products_normal(product: Product) -> bool:
    """Whether no product can fall below float32's normal numbers."""
    if product.halves:
        return True
    return _smallest(product.x) * _smallest(product.y) >= FORMATS["float32"].smallest_normal


def products_exact(product: Product) -> bool:
    """Whether float32 holds every product: 24 significand bits suffice, and none is subnormal."""
    precision = sum(FORMATS[a.dtype.name].precision for a in (product.x, product.y))
    return precision <= FORMATS["float32"].precision and products_normal(product)
