"""What a run held in memory is recorded, shown, and limited."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.runs import evidence_in, tokitai
from tokitai_cli.core.peak_memory import peak_resident
from tokitai_cli.run.copies import copies

MIB = 1 << 20
# Aimed at: so much beside two times the arrays, and for each thread (docs/internals/performance.md).
BESIDE, EACH_THREAD = 60 * MIB, 64 * MIB
LARGE = {
    "softmax": ("fwd", {"rows": 1024, "cols": 8192}),
    "layernorm": ("fwd", {"rows": 2048, "cols": 4096}),
    "gemm-bw": ("grad-a", {"m": 1024, "n": 1024, "k": 1024}),
    "attention": ("causal-fwd", {"heads": 16, "queries": 512, "keys": 512, "dim": 128}),
    "embedding": ("bwd", {"queries": 4096, "dim": 2048, "vocab": 4096}),
}


def memory_of(op: str, threads: int, folder: Path, **shape: int) -> Mapping[str, int]:
    """What the evidence of a run in a process of its own says."""
    sizes = [word for name, extent in shape.items() for word in (f"--{name}", str(extent))]
    chosen = ["--variant", LARGE[op][0], "--profile", "normal", "--device", "cpu", "--watch", "off"]
    chosen += [*sizes, "--threads", str(threads), "--out", str(folder)]
    done = tokitai("verify", op, *chosen, timeout=600)
    evidence = evidence_in(folder, op)
    # One profile alone need not show each wrong output.
    assert evidence["verdict"] in ("verified", "inconclusive"), done.stderr
    found: Mapping[str, int] = evidence["volatile"]["memory"]
    assert found["threads"] == threads
    return found


def test_the_peak_stands_in_evidence_and_report(tmp_path: Path) -> None:
    found = memory_of("gemm-bw", 3, tmp_path, m=16, n=24, k=32)
    assert found["arrays_bytes"] == 2 * (16 * 24 + 32 * 24 + 2 * 16 * 32)
    assert 20 * MIB < found["peak_bytes"] < 400 * MIB
    peak = round(found["peak_bytes"] / MIB)
    assert (
        f"memory: at most {peak} MB in the tool's process" in (tmp_path / "gemm-bw.md").read_text()
    )


def test_the_peak_grows_with_what_is_held() -> None:
    before = peak_resident()
    held = np.ones(64 * MIB, np.uint8)
    assert peak_resident() > 0
    assert peak_resident() >= before + held.nbytes - 32 * MIB or peak_resident() >= held.nbytes


def test_outputs_of_equal_bytes_are_kept_once() -> None:
    first = np.array([[0.0, np.nan], [1.0, 2.0]], np.float32)
    signed = first.copy()
    signed[0, 0] = -0.0
    one, same, other = copies([{"y": first}, {"y": first.copy()}, {"y": signed}])
    assert one["y"] is not first
    assert same["y"] is one["y"]
    for kept, array in ((one, first), (same, first), (other, signed)):
        assert kept["y"].tobytes() == array.tobytes()
    empty: Any = copies([{"n": np.zeros((0, 3), np.int8)}, {"n": np.zeros((0, 3), np.int8)}])
    assert empty[1]["n"].shape == (0, 3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("op", "threads", "times"),
    [
        ("softmax", 8, 1.0),
        ("softmax", 2, 1.0),
        ("layernorm", 2, 1.1),
        ("gemm-bw", 2, 1.0),
        ("embedding", 2, 1.1),
        ("attention", 2, 1.1),
    ],
)
def test_a_large_case_holds_no_more_than_is_said(
    op: str, threads: int, times: float, tmp_path: Path
) -> None:
    found = memory_of(op, threads, tmp_path, **LARGE[op][1])
    most = BESIDE + 2 * found["arrays_bytes"] + threads * EACH_THREAD
    assert found["peak_bytes"] <= times * most
