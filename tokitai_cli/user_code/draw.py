"""A call of a function that draws an array."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokitai_cli.user_code.functions import FaultError, answer, guarded, inputs_of, load


def main(request: Mapping[str, Any], folder: Path) -> None:
    """Answer the request in `folder` with the file of an array."""
    answer(request, folder, lambda: {"array": _drawn(request, folder)})


def _drawn(request: Mapping[str, Any], folder: Path) -> str:
    import numpy as np

    file = Path(request["file"])
    function = load(file, request["function"])
    rng = np.random.Generator(np.random.Philox(key=request["key"]))
    told = {"inputs": inputs_of(request, folder), "dtype": request["dtype"]}
    taken = _names_of(function)
    more = {name: value for name, value in told.items() if name in taken}
    shape = tuple(request["shape"])
    array = guarded(file, lambda: function(request["params"], shape, rng, **more))
    if not isinstance(array, np.ndarray):
        raise FaultError(f"returned {type(array).__name__}, not a numpy array")
    if array.dtype.isbuiltin != 1:  # a format of ml_dtypes, which .npy does not name
        array = guarded(file, lambda: array.astype(np.float64))
    if array.dtype.kind not in "biuf":
        raise FaultError(f"returned an array that is not numeric but {array.dtype}")
    np.save(folder / "drawn.npy", np.ascontiguousarray(array), allow_pickle=False)
    return "drawn.npy"


def _names_of(function: Any) -> set[str]:
    try:
        return set(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return set()
