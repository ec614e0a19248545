"""Arrays that a user's function draws: `file.py:function`, called as oracles are.

    def function(params, shape, rng):        # and `inputs`, `dtype`, where it has such parameters
        return array

`rng` is a numpy Generator whose stream is the array's own. What it gives is checked against dtype and
shape; numbers for a floating-point array are rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core import process
from tokitai_cli.core.dtypes import FORMATS, numpy_dtype
from tokitai_cli.core.errors import SpecError
from tokitai_cli.core.model.wording import shortened
from tokitai_cli.core.numerics import round_to
from tokitai_cli.oracles.user.calls import call, function_of
from tokitai_cli.spec.inputs.draw_request import ArrayRequest

_MOST_TOLD = 4000
_KEY_BITS = 128


def draw_by_function(
    request: ArrayRequest,
    arrays: Mapping[str, NDArray[Any]],
    timeout: float,
    log: Callable[[str], None],
) -> tuple[NDArray[Any], str]:
    """Array that the function gives, `arrays` being those that were drawn before, and its name.

    What it prints goes to `log`. SpecError where it gives none, or one that does not fit.
    """
    name, plan, case = request.draw.kind, request.plan, request.case
    key = request.source().random_raw(_KEY_BITS // 64)
    more = {
        "params": dict(case.sizes),
        "shape": plan.shape,
        "dtype": plan.dtype,
        "key": int(key[0]) << 64 | int(key[1]),
    }
    with process.temporary_folder(prefix="tokitai-draw-") as folder:
        function = function_of(name, case.loaded.folder)
        called = call("draw", function, arrays, more, folder=folder, timeout=timeout)
        if called.printed:
            log(called.printed)
        answer = called.answer or {"failure": called.ended}
        if "failure" in answer:
            told = shortened(str(answer["failure"]), _MOST_TOLD)
            raise request.refuse(f"{name}: {told}")
        try:
            values = np.load(folder / answer["array"], allow_pickle=False)
        except (OSError, ValueError) as error:
            raise request.refuse(f"{name}: its result cannot be read: {error}") from None
    if values.shape != plan.shape:
        said = f"{name} gave shape {list(values.shape)}, {plan.name} has {list(plan.shape)}"
        raise request.refuse(said, "return an array of `shape`")
    return _held(request, values), name


def _held(request: ArrayRequest, values: NDArray[Any]) -> NDArray[Any]:
    """`values` in the array's dtype. SpecError where it cannot hold them."""
    name, plan = request.draw.kind, request.plan
    dtype = numpy_dtype(plan.dtype)
    if plan.dtype in FORMATS:
        wide = values.astype(np.float64)
        array = round_to(wide, plan.dtype)
        if not np.array_equal(np.isfinite(array.astype(np.float64)), np.isfinite(wide)):
            raise _unheld(request, f"{name} gave numbers beyond {plan.dtype}")
        return array
    if values.dtype.kind != "b" if dtype.kind == "b" else values.dtype.kind not in "iu":
        raise _unheld(request, f"{name} gave {values.dtype} for {plan.name} of {plan.dtype}")
    if dtype.kind in "iu" and values.size:
        limits = np.iinfo(dtype)
        if not limits.min <= int(values.min()) <= int(values.max()) <= limits.max:
            raise _unheld(request, f"{name} gave integers beyond {plan.dtype}")
    return values.astype(dtype)


def _unheld(request: ArrayRequest, message: str) -> SpecError:
    return request.refuse(message, f"return values that {request.plan.dtype} holds")
