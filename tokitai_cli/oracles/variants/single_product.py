"""Formulas that are one product of two matrices: which inputs, and a block of the output by itself."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.oracles.variants.request import FormulaCall, Request


class Factor:
    """An input of a formula that is turned over and multiplied, and no more."""

    #: numpy's functions would make arrays of it as of any object, one element at a time.
    __array_function__ = None
    __array_ufunc__ = None

    def __init__(self, array: NDArray[Any], *, turned: bool = False) -> None:
        self.array = array
        self.turned = turned

    @property
    def T(self) -> Factor:  # noqa: N802 - numpy's name
        """Rows and columns exchanged."""
        return Factor(self.array, turned=not self.turned)

    @property
    def matrix(self) -> NDArray[Any]:
        """The input as it is multiplied: a view."""
        return self.array.T if self.turned else self.array

    def __matmul__(self, other: Factor) -> Product:
        return Product(self, other)


class Product(msgspec.Struct, frozen=True):
    """`left` times `right`, each of them another input."""

    left: Factor
    right: Factor

    @property
    def multiplications(self) -> int:
        """Of the whole output."""
        return int(self.left.matrix.size * self.right.matrix.shape[1])


def product_of(call: FormulaCall, output: str) -> Product | None:
    """The two factors, where the formula gives this one output, as a product of two of its inputs."""
    try:
        result = call.call(Factor)
    except Exception:  # noqa: BLE001 - whatever else it does with an input: it is no such product
        return None
    found = result.get(output)
    if not isinstance(found, Product) or len(result) != 1 or found.left.array is found.right.array:
        return None
    flat = all(one.array.ndim == 2 for one in (found.left, found.right))
    return found if flat else None


def block_of(
    call: FormulaCall, product: Product, rows: NDArray[np.int64], columns: NDArray[np.int64]
) -> FormulaCall:
    """The case with these rows and columns of the output alone."""
    parts = (
        (product.left, int(product.left.turned), rows),
        (product.right, int(not product.right.turned), columns),
    )
    inputs = dict(call.inputs)
    for name, array in call.inputs.items():
        for one, axis, some in parts:
            if one.array is array:
                inputs[name] = np.take(array, some, axis)
    return FormulaCall(call.function, call.params, inputs, call.scalars)


def is_product_by_rows(call: FormulaCall, request: Request, param: str) -> bool:
    """Whether each output is a product of two inputs, and the rows are those of the first one alone."""
    for name in request.outputs:
        found = product_of(call, name)
        if found is None:
            return False
        axes = {
            side: [axis for axis, text in enumerate(request.shapes.get(side, ())) if text == param]
            for side in call.inputs
        }
        left = next(one for one, array in call.inputs.items() if array is found.left.array)
        right = next(one for one, array in call.inputs.items() if array is found.right.array)
        if axes[left] != [int(found.left.turned)] or axes[right]:
            return False
    return True
