"""Whole runs in tests: specs derived from the shipped ones, and the command line in a process."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tokitai_cli import resources, verify
from tokitai_cli.audit import consistency
from tokitai_cli.model.evidence import Evidence

KERNELS = Path(__file__).parent / "kernels"


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
    spec = yaml.safe_load((resources.specs_dir() / f"{op}.yaml").read_text(encoding="utf-8"))
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


def run(spec: str | Path, out: Path, **options: Any) -> Evidence:
    """Evidence of a run on the cpu device, which agrees with itself."""
    options.setdefault("device", "cpu")
    found = verify(str(spec), out=out, **options).evidence
    assert [one.text for one in consistency.remarks(found, same=True) if one.fault] == []
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


def evidence_in(folder: Path, name: str = "gemm-bw") -> dict[str, Any]:
    """Parsed JSON of a run's evidence."""
    found = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def verdicts(evidence: Evidence) -> Sequence[str]:
    """Verdict of every case."""
    return [str(case.verdict) for case in evidence.cases]
