"""The spec of gpu_faults.hip: one variant for each fault, and the right twins."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tests.runs import KERNELS

N = 4096
# Floats: far behind every allocation of the case, and inside the address space of a GPU's memory.
BEYOND = 1 << 20


def _copy(kernel: str, *more: str | int, **launch: Any) -> dict[str, Any]:
    return {
        "oracle": "oracles.py:copy",
        "inputs": {"x": {"dtype": "float32", "shape": ["n"]}},
        "outputs": {"y": {"dtype": "float32", "shape": ["n"]}},
        "checks": [{"metric": "bound"}],
        "launches": [
            {
                "kernel": kernel,
                "grid": ["ceil_div(n, 256)"],
                "block": [256],
                "args": ["x", "y", *more, "n"] if more == ("work",) else ["x", "y", "n", *more],
                **launch,
            }
        ],
    }


def _sums(kernel: str) -> dict[str, Any]:
    one = {"dtype": "float32", "shape": ["rows"]}
    return {
        "oracle": "oracles.py:row_sums",
        "inputs": {"x": {"dtype": "float32", "shape": ["rows", "n"]}},
        "outputs": {"sums": one, "squares": one},
        "checks": [{"metric": "bound"}],
        "launches": [
            {
                "kernel": kernel,
                "grid": ["rows"],
                "block": [256],
                "args": ["x", "sums", "squares", "n"],
            }
        ],
    }


def variants() -> dict[str, dict[str, Any]]:
    """Every variant by name."""
    work = {"workspaces": {"work": {"dtype": "float32", "shape": ["n"]}}}
    return {
        "right": _copy("copy"),
        "reads-past": _copy("reads_past", BEYOND),
        "writes-nowhere": _copy("writes_nowhere"),
        "waits": _copy("waits"),
        "reads-unwritten": {**_copy("reads_unwritten", "work"), **work},
        "half-a-barrier": _copy("half_a_barrier"),
        "block-of-2048": _copy("copy", block=[2048]),
        "shared-of-1-gib": _copy("copy", shared=1 << 30),
        "sums": _sums("row_sums<true>"),
        "racy-sums": _sums("row_sums<false>"),
    }


def write_spec(folder: Path) -> Path:
    """Write the spec of all variants and the oracles beside it; returns the spec's path."""
    found = variants()
    for one in found.values():
        one["source"] = os.path.relpath(KERNELS / "gpu_faults.hip", folder)
    here = Path(__file__).parent
    (folder / "oracles.py").write_bytes((here / "oracles.py").read_bytes())
    document = {
        "schema": "tokitai/spec/v1",
        "op": "gpu-faults",
        "title": "Faults that a GPU shows in its own way",
        "params": {"n": {"default": N}, "rows": {"default": 64}},
        "variants": found,
        "profiles": {"normal": {}},
        "suites": {"quick": [{"shape": {"n": N, "rows": 64}}]},
    }
    path = folder / "gpu-faults.yaml"
    path.write_text(json.dumps(document, indent=1), encoding="utf-8")  # JSON is YAML
    return path
