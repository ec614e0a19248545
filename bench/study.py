"""The kernels of docs/examples/llm_kernels: right ones verified, wrong ones refuted."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import yaml

from bench._runs import ROOT, TOKITAI, Line, environment

_STUDY = ROOT / "docs" / "examples" / "llm_kernels"
_FINE = {"verified", "vacuous"}


def measure(folder: Path) -> Iterator[Line]:
    """Share of the kernels, each in both storage types, that are judged as their titles say."""
    told: dict[bool, list[bool]] = {True: [], False: []}
    for spec in sorted(_STUDY.glob("*.yaml")):
        command = [TOKITAI, "verify", str(spec), "--device", "cpu", "--out", str(folder), "-q"]
        subprocess.run(command, env=environment(folder / "cache"), capture_output=True, check=False)
        variants = yaml.safe_load(spec.read_text("utf-8"))["variants"]
        cases = json.loads((folder / f"llm-{spec.stem}.json").read_text("utf-8"))["cases"]
        for name, variant in variants.items():
            found = {case["verdict"] for case in cases if case["variant"] == name}
            wrong = variant["title"].startswith("Wrong")
            told[wrong].append("refuted" in found if wrong else found <= _FINE)
    for wrong, word in ((False, "right kernels verified"), (True, "wrong kernels refuted")):
        fine = told[wrong]
        share = sum(fine) / len(fine)
        yield Line(f"study: {word}", share, "", 1.0, f"{sum(fine)} of {len(fine)}", at_least=True)
