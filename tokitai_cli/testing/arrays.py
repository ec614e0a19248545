"""Arrays of other libraries as numpy's: bit by bit, and never by way of another dtype."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.dtypes import DTYPES, numpy_dtype
from tokitai_cli.core.errors import UsageError, near

# Names of torch's dtypes that numpy has not, by the integer of their size.
_OF_TORCH = {
    "bfloat16": "int16",
    "float8_e4m3fn": "uint8",
    "float8_e5m2": "uint8",
    "float8_e4m3fnuz": "uint8",
    "float8_e5m2fnuz": "uint8",
}


def as_numpy(array: Any, name: str = "the array") -> NDArray[Any]:
    """A copy on the host of an array of numpy, torch, cupy, jax, or what `numpy.asarray` takes.

    Values keep their bits, also bfloat16 and the float8 formats (as ml_dtypes has them) and those of a
    GPU. Raises UsageError for what is no array of numbers of a dtype that the tool knows.
    """
    library = type(array).__module__.partition(".")[0]
    read = _READERS.get(library, np.asarray)
    try:
        found = np.array(read(array))
    except (TypeError, ValueError, RuntimeError) as error:
        raise UsageError(f"{name} of {library} cannot be read as an array: {error}") from error
    if found.dtype == np.dtype(object) or found.dtype.name not in DTYPES:
        hint = near(found.dtype.name, DTYPES)
        raise UsageError(
            f"{name} has the dtype {found.dtype}, which is not a kernel dtype", hint=hint
        )
    return found if found.dtype.isnative else found.astype(found.dtype.newbyteorder("="))


def as_arrays(arrays: Any, name: str) -> dict[str, NDArray[Any]]:
    """Arrays by name; one alone has the name `name`. Raises UsageError for a list of arrays."""
    if isinstance(arrays, list | tuple) and any(hasattr(one, "shape") for one in arrays):
        hint = "give them by name, as {'x': x, 'weight': weight}"
        raise UsageError("several arrays have no names", hint=hint)
    if not isinstance(arrays, Mapping):
        return {name: as_numpy(arrays, name)}
    return {str(key): as_numpy(array, str(key)) for key, array in arrays.items()}


def _of_torch(tensor: Any) -> Any:
    import torch

    tensor = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous()
    dtype = str(tensor.dtype).removeprefix("torch.")
    if dtype not in _OF_TORCH:
        return tensor.numpy()
    bits = tensor.view(getattr(torch, _OF_TORCH[dtype])).numpy()
    return bits.view(getattr(ml_dtypes, numpy_dtype(dtype).name))


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "torch": _of_torch,
    "cupy": lambda array: array.get(),
}
