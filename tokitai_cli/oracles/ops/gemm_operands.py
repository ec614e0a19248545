"""The operands of a matrix product, taken from a case's arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.dtypes import FORMATS
from tokitai_cli.model.case import BufferPlan, Case, Role
from tokitai_cli.oracles.rows import FLOATS, Array, misfit, named, outputs

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
    grad, b = _matrices(case, arrays, "grad_c", "b")
    return _product(case, grad, b.T, ("grad_c", "b"))


def grad_b(case: Case, arrays: Mapping[str, Array]) -> Product:
    """grad_b[k, n] = sum over m of a[m, k] grad_c[m, n]."""
    grad, a = _matrices(case, arrays, "grad_c", "a")
    return _product(case, a.T, grad, ("a", "grad_c"))


Operands = Callable[[Case, Mapping[str, Array]], Product]


def _matrices(case: Case, arrays: Mapping[str, Array], *names: str) -> list[Array]:
    found = named(case, arrays, dict.fromkeys(names, FLOATS))
    for name, array in zip(names, found, strict=True):
        if array.ndim != 2:
            said = (
                f"oracle {case.variant.oracle} takes matrices; {name} has {array.ndim} dimensions"
            )
            raise misfit(case, said, "write an oracle of your own")
    return found


def _product(case: Case, x: Array, y: Array, names: tuple[str, str]) -> Product:
    plans = case.buffers_of(Role.OUTPUT)
    if len(plans) != 1 or x.shape[1] != y.shape[0]:
        shown = ", ".join(f"{plan.name} {list(plan.shape)}" for plan in case.buffers)
        raise misfit(case, f"shapes do not fit oracle {case.variant.oracle}: {shown}", "")
    (output,) = outputs(case, {plans[0].name: (x.shape[0], y.shape[1])}).values()
    return Product(x, y, names, output)


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
