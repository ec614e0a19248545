"""A call of a function that draws an array."""

from __future__ import annotations

import contextlib
import inspect
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokitai_cli.oracles.user.loading import FaultError, answer, guarded, inputs_of, load

# Arrays of so many bytes are drawn twice: one that the seed does not decide is no input of evidence.
_TWICE_BYTES = 1 << 24


def main(request: Mapping[str, Any], folder: Path) -> None:
    """Answer the request in `folder` with the file of an array."""
    answer(request, folder, lambda: {"array": _drawn(request, folder)})


def _drawn(request: Mapping[str, Any], folder: Path) -> str:
    import numpy as np

    array = _asked(request, folder)
    if array.nbytes <= _TWICE_BYTES:
        with contextlib.redirect_stdout(io.StringIO()):  # what it prints is told once
            again = _asked(request, folder)
        if (array.dtype, array.shape, array.tobytes()) != (
            again.dtype,
            again.shape,
            again.tobytes(),
        ):
            raise FaultError(
                "returned a different array when called again with the same seed: take all "
                "random numbers from `rng`, and do not depend on the time or an earlier call"
            )
    np.save(folder / "drawn.npy", np.ascontiguousarray(array), allow_pickle=False)
    return "drawn.npy"


def _asked(request: Mapping[str, Any], folder: Path) -> Any:
    """What the function gives, of its file run anew."""
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
    return array


def _names_of(function: Any) -> set[str]:
    try:
        return set(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return set()
