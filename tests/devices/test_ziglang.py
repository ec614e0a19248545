"""Without a C++ compiler on PATH, pip's ziglang serves: said in advance, and with progress."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from tests.runs import evidence_in, tokitai

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("ziglang") is None,
        reason="ziglang is not installed: pip install ziglang",
    ),
]


def test_the_first_build_and_the_second_without_a_compiler(tmp_path: Path) -> None:
    """The first one builds zig's own C++ library, which takes minutes."""
    path = tmp_path / "no programs"
    path.mkdir()
    environment = {
        "PATH": str(path),
        "CXX": "",
        "TOKITAI_CACHE": str(tmp_path / "cache"),
        "ZIG_GLOBAL_CACHE_DIR": str(tmp_path / "zig"),
    }
    words = ["verify", "gemm-bw", "--m", "64", "--device", "cpu", "--out", str(tmp_path)]
    # A case's limit in time is not a limit for this build.
    done = tokitai(*words, "--timeout", "5", env=environment, timeout=1200)
    assert done.returncode == 0, done.stderr
    told = done.stderr.splitlines()
    notice = next(number for number, line in enumerate(told) if "first build with zig" in line)
    finished = next(number for number, line in enumerate(told) if "built in" in line)
    seconds = [
        int(found[1])
        for line in told
        if (found := re.search(r"for cpu: (\d+) s$", line)) is not None
    ]
    assert notice < finished
    assert seconds == sorted(seconds)
    took = re.search(r"built in ([\d.]+) s", told[finished])
    assert took is not None
    # A line every 15 seconds; the last one may be due just as the build ends.
    assert len(seconds) in (int(float(took[1]) // 15), int(float(took[1]) // 15) - 1)
    evidence = evidence_in(tmp_path)
    (build,) = evidence["builds"].values()
    assert "zig" in build["compiler"]["path"]
    assert {case["verdict"] for case in evidence["cases"]} == {"verified"}

    again = tokitai(*words, "--profile", "normal", env=environment)
    assert again.returncode == 0, again.stderr
    assert "from the cache" in again.stderr
    # zig's headers are of a newer C library than the one it links: rsqrtf is declared there already.
    other = tokitai("verify", "rmsnorm", "--variant", "fwd", *words[4:], env=environment)
    assert "rmsnorm/fwd" in other.stderr + other.stdout
    assert "build-failed" not in other.stdout
