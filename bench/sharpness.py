"""How near correct kernels come to their bounds: the largest error / bound of each built-in output.

With TOKITAI_UPDATE_GOLDEN=1 the table of reports/generated/sharpness.md is written too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bench._runs import ROOT, TOKITAI, Line, environment, run
from tokitai_cli.evidence import read
from tokitai_cli.evidence.queries import cases

PAGE = ROOT / "reports" / "generated" / "sharpness.md"
MARK = "<!-- generated from here on"
METRICS = ("bound", "bound-chained", "bound-prob")


class Nearest(NamedTuple):
    """The largest value of a check on an output of the shipped kernels, and the case that had it."""

    op: str
    variant: str
    output: str
    metric: str
    value: float
    case: str


def measure(folder: Path) -> Iterator[Line]:
    """Run the quick suite of every op on the cpu device, and read its evidence."""
    command = [TOKITAI, "verify", "--all", "--device", "cpu", "--out", str(folder), "-q"]
    run(command, environment(folder / "cache"), folder)
    found = nearest(folder)
    if os.environ.get("TOKITAI_UPDATE_GOLDEN") == "1":
        page = PAGE.read_text("utf-8")
        head = page[: page.index("\n", page.index(MARK)) + 1]
        PAGE.write_text(head + "\n" + table(found), "utf-8")
    for one in found:
        name = f"largest error / {one.metric}: {one.op} {one.variant} {one.output}"
        yield Line(name, one.value, "", 1.0, one.case)


def nearest(folder: Path) -> list[Nearest]:
    """What the evidence of a folder says, by op, variant, output and metric, in its order."""
    best: dict[tuple[str, str, str, str], Nearest] = {}
    for path in sorted(folder.glob("*.json")):
        for case in cases(read(path)):
            for output in case.outputs:
                for check in output.checks:
                    if check.metric not in METRICS or not check.judges or check.value is None:
                        continue
                    key = (case.op, case.variant, output.name, check.metric)
                    one = Nearest(*key, float(check.value), case.id)
                    if key not in best or one.value > best[key].value:
                        best[key] = one
    return list(best.values())


def table(found: list[Nearest]) -> str:
    """The rows as Markdown."""
    lines = ["| op | variant | output | check | largest error / bound | in the case |"]
    lines.append("|---|---|---|---|--:|---|")
    lines += [
        f"| {one.op} | {one.variant} | {one.output} | {one.metric} | {one.value:.3f} | {one.case} |"
        for one in found
    ]
    return "\n".join(lines) + "\n"
