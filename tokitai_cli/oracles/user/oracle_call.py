"""A call of an oracle: its answer, and where there is time what it says of other inputs.

What it says of inputs with slices zeroed stands in `again.json`, what it does not depend on in
`dependence.json`; nothing that it prints then is kept.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import os
import re
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from tokitai_cli.core import parallel
from tokitai_cli.oracles.output_parts import OF_USERS, OutputParts, Part
from tokitai_cli.oracles.user.loading import (
    FaultError,
    answer,
    guarded,
    inputs_of,
    load,
    put,
    without_chance,
)

AGAIN = "again.json"
DEPENDENCE = "dependence.json"
# In front of the names of arrays that are outputs which a kernel stored.
STORED = "stored "
# Elements of an output that are looked at when a slice is zeroed.
SAMPLE = 1 << 16


def main(request: Mapping[str, Any], folder: Path) -> None:
    """Answer the request in `folder`."""
    start = time.monotonic()
    if answer(request, folder, lambda: {"outputs": _serve(request, folder)}):
        spent = time.monotonic() - start
        calls = 1 + len(request["slices"]) + 3 * len(request["inputs"])
        if spent * calls < request["seconds"]:
            _be_silent()
            if request["dependence"]:
                put(folder / DEPENDENCE, _dependence(request, folder))
            put(folder / AGAIN, _ask_again(request, folder))


def _call(request: Mapping[str, Any], inputs: Mapping[str, Any]) -> Mapping[str, OutputParts[Any]]:
    """Parts of each output that the function returns. Raises FaultError."""
    file = Path(request["file"])
    if request["formula"]:
        with without_chance():
            return _by_formula(request, file, load(file, request["function"]), inputs)
    function = load(file, request["function"])
    told = {"reduction": request["reduction"]} if _takes_reduction(function) else {}
    result = guarded(file, lambda: function(request["params"], inputs, request["scalars"], **told))
    if not isinstance(result, Mapping):
        raise FaultError(f"returned {type(result).__name__}, not a dict of outputs")
    return {name: _parts(name, value) for name, value in result.items()}


def _parts(name: Any, value: Any) -> OutputParts[Any]:
    """What a user's own oracle says of one output, by part."""
    if not isinstance(name, str):
        raise FaultError(f"returned the key {name!r}, which is not the name of an output")
    parts = dict(value) if isinstance(value, Mapping) else {"reference": value}
    if "reference" not in parts:
        raise FaultError(f"returned no reference for {name}")
    for part in parts:
        if part not in OF_USERS:
            raise FaultError(f"returned {part!r} of {name}; known: {', '.join(OF_USERS)}")
    wrong = parts["wrong"] = parts.get("wrong") or {}
    if not isinstance(wrong, Mapping) or not all(
        isinstance(key, str) and re.fullmatch("[a-z][a-z0-9-]{0,62}", key) for key in wrong
    ):
        raise FaultError(f"wrong of {name} is not a dict with names such as 'last-term-dropped'")
    return OutputParts(**parts)


def _by_formula(
    request: Mapping[str, Any], file: Path, function: Callable[..., Any], inputs: Mapping[str, Any]
) -> Mapping[str, OutputParts[Any]]:
    from tokitai_cli.oracles.formula.kept import keeping
    from tokitai_cli.oracles.variants import answer as answers
    from tokitai_cli.oracles.variants.request import FormulaCall, request_of

    drawn = {name: array for name, array in inputs.items() if not name.startswith(STORED)}
    stored = {name.removeprefix(STORED): inputs[name] for name in inputs.keys() - drawn.keys()}
    wanted = request_of(request["formula"], str(file), stored)
    asked = FormulaCall(function, request["params"], drawn, request["scalars"])
    with (
        keeping(),
        parallel.sharing(1),
    ):  # nobody says that a user's function may run on several threads
        found: Mapping[str, OutputParts[Any]] = guarded(file, lambda: answers.answer(asked, wanted))
    return found


def _takes_reduction(function: Callable[..., Any]) -> bool:
    try:
        return "reduction" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


def _ask_again(request: Mapping[str, Any], folder: Path) -> list[dict[str, Any]]:
    """Ask for each slice; one that the oracle cannot do is left out."""
    answers = []
    for number, (which, name, axis) in enumerate(request["slices"]):
        inputs = inputs_of(request, folder)
        index = _zero(inputs[name], axis, which)
        with contextlib.suppress(Exception):  # zeros may be no input that the oracle is made for
            result = _call(request, inputs)
            files = {one: _sample(number, one, parts, folder) for one, parts in result.items()}
            answers.append({"slice": [which, name, axis], "index": index, "outputs": files})
    return answers


def _be_silent() -> None:
    """Keep nothing of what it prints from here on."""
    silent = os.open(os.devnull, os.O_WRONLY)
    sys.stdout.flush()
    sys.stderr.flush()
    os.dup2(silent, 1)
    os.dup2(silent, 2)


def _dependence(request: Mapping[str, Any], folder: Path) -> dict[str, Any] | None:
    """What its outputs do not depend on, and which are one number; None where that is not asked."""
    from tokitai_cli.oracles.variants.dependence import dependence
    from tokitai_cli.oracles.variants.request import FormulaCall

    file = Path(request["file"])
    function = load(file, request["function"])
    told = {"reduction": request["reduction"]} if _takes_reduction(function) else {}
    drawn = inputs_of(request, folder)

    def ask(inputs: Mapping[str, Any], scalars: Mapping[str, Any]) -> Mapping[str, Any]:
        if request["formula"]:
            asked = FormulaCall(function, request["params"], dict(inputs), dict(scalars))
            return asked.in_double()
        copies = {name: array.copy() for name, array in inputs.items()}
        result: Mapping[str, Any] = function(request["params"], copies, dict(scalars), **told)
        return result

    with contextlib.suppress(Exception):  # what it cannot be asked is not known
        found = dependence(ask, drawn, request["scalars"])
        return None if found is None else msgspec.structs.asdict(found)
    return None


def _zero(array: Any, axis: int, which: str) -> int:
    """Set the last slice, or that of the largest sum of squares, to zero; returns its index."""
    import numpy as np

    moved = np.moveaxis(array, axis, 0)
    index: int = moved.shape[0] - 1
    if which == "heaviest":
        with np.errstate(all="ignore"):
            wide = moved.reshape(moved.shape[0], -1).astype(np.float64)
            index = int(np.argmax(np.square(np.where(np.isfinite(wide), wide, 0.0)).sum(axis=1)))
    moved[index] = 0
    return index


def _sample(number: int, name: str, parts: OutputParts[Any], folder: Path) -> dict[str, Any]:
    import numpy as np

    reference = np.asarray(parts.reference)
    stride = max(1, reference.size // SAMPLE) | 1
    file = f"again-{number}-{len(name)}-{name}.npy"
    np.save(folder / file, reference.reshape(-1)[::stride], allow_pickle=False)
    return {"file": file, "stride": stride}


def _serve(request: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Names of the files that the parts of each output are written to."""
    result = _call(request, inputs_of(request, folder))
    files = {
        name: _write(f"output-{number}", name, parts, folder)
        for number, (name, parts) in enumerate(result.items())
    }
    return {name: msgspec.to_builtins(parts) for name, parts in files.items()}


def _write(prefix: str, name: str, parts: OutputParts[Any], folder: Path) -> OutputParts[str]:
    import numpy as np

    numbers = itertools.count()

    def write(part: Part, array: Any) -> str:
        said = " ".join(part).strip()
        if not isinstance(array, np.ndarray):
            raise FaultError(f"{said} of {name} is {type(array).__name__}, not a numpy array")
        if array.dtype.kind not in "biuf":
            raise FaultError(f"{said} of {name} is not numeric but {array.dtype}")
        file = f"{prefix}-{next(numbers)}.npy"
        np.save(folder / file, np.ascontiguousarray(array), allow_pickle=False)
        return file

    return parts.map(write)
