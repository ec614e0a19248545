"""Whole runs in tests: specs derived from the shipped ones, and the command line in a process."""

from __future__ import annotations

import contextlib
import copy
import functools
import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from tokitai_cli import verify
from tokitai_cli.audit import consistency, origin
from tokitai_cli.cli import app
from tokitai_cli.core import resources
from tokitai_cli.core.model.evidence import Evidence

KERNELS = Path(__file__).parent / "kernels"


@functools.cache
def _parsed(op: str) -> Any:
    return yaml.safe_load((resources.specs_dir() / f"{op}.yaml").read_text(encoding="utf-8"))


def shipped_tree(op: str) -> dict[str, Any]:
    """The shipped spec of an op, parsed; the caller's to change."""
    tree = copy.deepcopy(_parsed(op))
    assert isinstance(tree, dict)
    return tree


def derived_spec(
    folder: Path,
    op: str,
    variant: str,
    kernels: Sequence[str],
    *,
    source: Path,
    replay: bool = True,
    changes: Mapping[str, Any] | None = None,
    **top: Any,
) -> Path:
    """Write a spec with a copy of the shipped `variant` of `op` for each kernel; returns its path.

    The copies are named by their kernels, with dashes. `changes` are further keys of each copy,
    `top` of the spec.
    """
    spec = shipped_tree(op)
    one = spec["variants"][variant]
    one["source"] = os.path.relpath(source, folder)
    if not replay:
        one.pop("replay")
        one["checks"] = [check for check in one["checks"] if check.get("against") != "replay"]
    one.update(changes or {})
    spec["variants"] = {}
    for kernel in kernels:
        twin = copy.deepcopy(one)
        twin["launches"][0]["kernel"] = kernel
        spec["variants"][kernel.replace("_", "-")] = twin
    spec.pop("suites", None)
    spec.update(top)
    path = folder / f"{op}-{kernels[0]}.yaml"
    path.write_text(yaml.safe_dump(spec, sort_keys=False), encoding="utf-8")
    return path


def run(spec: str | Path, out: Path, *, stand_in: bool = False, **options: Any) -> Evidence:
    """Evidence of a run on the cpu device, which agrees with itself.

    stand_in: a host compiler stands in for that of a GPU, which `check` must see.
    """
    options.setdefault("device", "cpu")
    found = verify(str(spec), out=out, **options).evidence
    faults = [one for one in consistency.remarks(found, same=True) if one.fault]
    if stand_in:
        seen = list(origin.remarks(found, same=True))
        assert seen or not found.builds
        faults = [one for one in faults if one not in seen]
    assert [one.text for one in faults] == []
    return found


def tokitai(
    *arguments: str | Path,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = 120,
) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "tokitai_cli", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "COLUMNS": "80", "NO_COLOR": "1", **(env or {})},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def tokitai_here(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the command line in this process: the same words and exit code, in a tenth of the time.

    For what does not end the process, and does not hang on what is in it.
    """
    words = [str(word) for word in arguments]
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(io.StringIO()) as out,
        contextlib.redirect_stderr(io.StringIO()) as err,
    ):
        patch.setenv("COLUMNS", "80")
        patch.setenv("NO_COLOR", "1")
        code = app.run(words)
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


def evidence_in(folder: Path, name: str = "gemm-bw") -> dict[str, Any]:
    """Parsed JSON of a run's evidence."""
    found = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def verdicts(evidence: Evidence) -> Sequence[str]:
    """Verdict of every case."""
    return [str(case.verdict) for case in evidence.cases]
