"""A formula and a case of it, and what is asked of them."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.rounding import widened
from tokitai_cli.oracles.formula.kept import wide
from tokitai_cli.oracles.formula.known import MissingError, NoRuleError
from tokitai_cli.oracles.formula.precision import Precision

Function = Callable[[dict[str, int], dict[str, Any], dict[str, Any]], Mapping[str, Any]]


class Request(msgspec.Struct, frozen=True):
    """What is asked of a formula."""

    #: Dtype by name.
    outputs: dict[str, str]
    #: Permissions of its operations.
    precision: Precision
    #: The formula's, for lines.
    file: str
    #: Additions on the longest path of the sums behind an output, where the spec claims a tree.
    rounds: dict[str, int] = msgspec.field(default_factory=dict)
    #: Whether these are wanted.
    probable: bool = False
    replay: bool = False
    #: Which of the changes come first where there are too many for one case.
    turn: int = 0
    #: Those that have one of their own.
    trees: list[str] = []
    #: Of inputs and outputs, as the spec writes them.
    shapes: dict[str, list[str]] = msgspec.field(default_factory=dict)
    #: Inputs of numbers below a param, by name, and that param: its rows are named by them.
    indices: dict[str, str] = {}
    #: Params and sizes of which no single one may change.
    tied: list[str] = []
    #: Whether the outputs that a kernel stored stand for the arrays that the formula returns under
    #: their names, wherever it goes on from these.
    kept: bool = False


def request_of(
    request: Mapping[str, Any], file: str, stored: Mapping[str, Any] | None = None
) -> Request:
    """What a request, as plain JSON, asks of the formula in `file`; stored: see `Precision.outputs`."""
    wanted: Request = msgspec.convert({**request, "file": file}, Request)
    precision = msgspec.structs.replace(wanted.precision, outputs=stored or {})
    return msgspec.structs.replace(wanted, precision=precision)


class _Given(dict[str, Any]):
    """Params, inputs or scalars of a spec: what a formula asks for besides is an error of it."""

    def __init__(self, kind: str, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self._kind = kind

    def __missing__(self, name: str) -> Any:
        near = difflib.get_close_matches(str(name), self, 1)
        known = f"did you mean {near[0]}?" if near else f"it has {', '.join(self) or 'none'}"
        raise MissingError(f"{self._kind}[{name!r}] is not in the spec: {known}", str(name))


class FormulaCall(msgspec.Struct, frozen=True):
    """One case: what the function is called with."""

    function: Function
    params: dict[str, int]
    inputs: dict[str, NDArray[Any]]
    scalars: dict[str, Any]

    def call(self, wrap: Callable[[Any], Any]) -> Mapping[str, Any]:
        """The function's outputs on arrays and floats that `wrap` prepares; integers stay plain."""
        inputs = {name: _wrapped(array, wrap) for name, array in self.inputs.items()}
        scalars = {
            name: wrap(np.float32(value)) if isinstance(value, float) else value
            for name, value in self.scalars.items()
        }
        with np.errstate(all="ignore"):  # inputs may be NaN or infinite: that is no warning
            result = self.function(
                _Given("params", self.params), _Given("inputs", inputs), _Given("scalars", scalars)
            )
        if not isinstance(result, Mapping):
            raise NoRuleError(f"returned {type(result).__name__}, not a dict of outputs")
        return result

    def in_double(self, wrap: Callable[[Any], Any] | None = None) -> Mapping[str, Any]:
        """The function's outputs on float64 arrays, each given to `wrap`, which may change none."""
        if wrap is None:
            return self.call(lambda x: widened(np.asarray(x)))
        return self.call(lambda x: wrap(wide(np.asarray(x)).values))

    def again_in_double(
        self, inputs: Mapping[str, NDArray[Any]], scalars: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """The function's outputs on other inputs and scalars, in float64."""
        other = msgspec.structs.replace(self, inputs=dict(inputs), scalars=dict(scalars))
        return other.in_double()


def _wrapped(array: NDArray[Any], wrap: Callable[[Any], Any]) -> Any:
    return array.copy() if array.dtype.kind in "iub" else wrap(array)
