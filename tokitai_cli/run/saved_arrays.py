"""Keeping what a case was given, what it gave back, and how to run it under a debugger."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.model.case import BufferPlan, Case, RunResult
from tokitai_cli.core.model.evidence import ArrayRecord
from tokitai_cli.core.model.expectation import Expectation
from tokitai_cli.core.numerics import array_sha256
from tokitai_cli.run import child
from tokitai_cli.run.device_session import DeviceSession
from tokitai_cli.run.prepare import Prepared

# What an oracle says of an output, by the word in front of the output's name: what judges it again.
_FIELDS = {
    "want": "reference",
    "error": "error",
    "probable": "error_probable",
    "below": "error_below",
    "above": "error_above",
    "low": "low",
    "unwritten": "may_be_unwritten",
    "nan": "may_be_nan",
    "unbounded": "unbounded",
    "allowed": "allowed",
    "segments": "segments",
}
# The bound that one repetition's other outputs leave (bound-chained) stands with its number.
REPLAY, REPLAYED_ROWS, CHAINED = "replay", "rows", "chained"


def save_arrays(
    folder: Path,
    case: Case,
    device: DeviceSession,
    ready: Prepared,
    result: RunResult | None,
) -> tuple[list[ArrayRecord], str]:
    """Save NAME.npy of inputs, got (per repetition), want and bounds under `folder`; the request too.

    Returns what was saved, with the files' names relative to the folder's parent, and the debugger's
    command line. What .npy cannot name, such as bfloat16, is saved exactly as float32.
    """
    place = folder / re.sub(r"[^A-Za-z0-9=,._-]+", "_", f"{case.id}@{device.name}")
    place.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, NDArray[Any]] = {f"in_{n}": array for n, array in ready.arrays.items()}
    for name, one in ready.expectations.items():
        parts = {f"{word}_{name}": getattr(one, field) for word, field in _FIELDS.items()}
        arrays |= {key: array for key, array in parts.items() if array is not None}
    for name, replay in ready.replays.items():
        arrays[f"{REPLAY}_{name}"] = replay.values
        if replay.rows is not None:
            arrays[f"{REPLAYED_ROWS}_{name}"] = replay.rows
    outputs: tuple[Mapping[str, NDArray[Any]], ...] = result.outputs if result else ()
    for repetition, got in enumerate(outputs):
        arrays |= {f"got_{name}_{repetition}": array for name, array in got.items()}
        arrays |= {
            f"{CHAINED}_{name}_{repetition}": one.refine(got)
            for name, one in ready.expectations.items()
            if one.refine is not None
        }
    saved = [_save(place / f"{name}.npy", array, folder.parent) for name, array in arrays.items()]
    artifact = device.built(case).artifact
    assert artifact is not None
    debug = child.debug_command(
        device.launch_command(artifact),
        artifact.request,
        case,
        ready.arrays,
        place,
        artifact.path,
    )
    return saved, debug


def saved_expectation(output: BufferPlan, arrays: Mapping[str, NDArray[Any]]) -> Expectation | None:
    """What an oracle said of an output, out of saved arrays by name; None where it is not there.

    Raises ValueError where a part of it has another shape than the output.
    """
    name = output.name
    if f"want_{name}" not in arrays:
        return None
    parts: dict[str, Any] = {
        field: arrays[f"{word}_{name}"]
        for word, field in _FIELDS.items()
        if f"{word}_{name}" in arrays
    }
    for field, array in parts.items():
        shape = array.shape[1:] if field == "allowed" else array.shape
        if shape != output.shape:
            raise ValueError(f"{field} of {name} has the shape {list(shape)}")
    expectation = Expectation(**parts)
    ratio = arrays.get(f"ratio_{name}")  # as older evidence has it
    if ratio is None or expectation.error is None:
        return expectation
    probable = float(ratio) * expectation.error
    return msgspec.structs.replace(expectation, error_probable=probable)


def _save(path: Path, array: NDArray[Any], base: Path) -> ArrayRecord:
    known = array.dtype.isbuiltin == 1
    np.save(path, array if known else array.astype(np.float32))
    return ArrayRecord(
        name=path.stem,
        dtype=array.dtype.name,
        shape=list(array.shape),
        sha256=array_sha256(array),
        file=str(path.relative_to(base)),
    )
