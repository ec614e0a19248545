"""Small kernels by kind of fault (suite/*): each with its fault, and right.

In front of each kernel stand its grid, block, bytes of dynamic shared memory where it has some, and
`warns KIND` where its right form has a warning too. `// <- KIND` marks the line of a finding.

`python -m tests.devices.sanitizers.suite FOLDER` writes a spec of each file into a folder, for any
device, and prints for each its path and its variants; with EVIDENCE... behind it prints what was found,
missed and told falsely.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

import msgspec

from tokitai_cli.core.model.device import Sanitizer
from tokitai_cli.core.model.evidence import CaseRecord
from tokitai_cli.devices.cpu import CpuDevice
from tokitai_cli.devices.sanitizers import cpu_watch
from tokitai_cli.evidence import read

FOLDER = Path(__file__).parent / "suite"
KINDS = {
    "scopes": "scopes of fences and atomic operations",
    "hip_scopes": "orders and scopes of HIP's operations",
    "orders": "releases, acquires, locks, volatile flags",
    "ptx_orders": "orders and scopes in inline PTX",
    "blocks": "barriers, shared and global memory, equal values",
    "warps": "votes, shuffles, masks, divergence",
    "copies": "copies, structs, padding, unset bytes",
    "waiting": "waiting warps and blocks, deadlocks",
    "unseen": "of all kinds, written without a look at the watch",
    "patterns": "patterns of public code, written likewise",
    "cuda_patterns": "the same in the words of CUDA's headers",
    "unopened": "kinds that the rows above do not have",
}
_HEAD = re.compile(
    r"// (\d+) (\d+)(?: (\d+))?(?: warns ([\w-]+))?\nKERNEL (\w+)\((.*?)^}",
    re.DOTALL | re.MULTILINE,
)
_ORACLE = """import numpy as np


def any(params, inputs, scalars):
    return {"y": {"reference": np.zeros(64), "error": np.full(64, np.inf)}}
"""
_VARIANT = """
  {name}-{form}:
    source: {file}
    inputs:
      x: {{dtype: float32, shape: [n]}}
    inout:
      y: {{dtype: float32, shape: [n], draw: {{kind: constant, value: 0}}}}
    workspaces:
      ws: {{dtype: float32, shape: [4 * n], scratch: what threads hand over}}
      flags: {{dtype: int32, shape: [n], init: zero, scratch: flags and counters}}
    launches:
      - kernel: {name}<{wrong}>
        grid: [{grid}]
        block: [{block}]
        shared: {shared}
        args: [x, y, ws, flags, n]
    deterministic: false
    oracle: oracle.py:any
    checks: [{{metric: bound}}]"""


def accesses_alone(device: CpuDevice) -> tuple[Sanitizer, ...]:
    """The watch of accesses in place of all checks of the cpu device."""
    return (cpu_watch._sanitizer(device, cpu_watch.ACCESSES),)


class Kernel(msgspec.Struct, frozen=True):
    """A kernel of a file.

    marks: kind and line of each finding of its wrong form. warns: kind of a warning that its right form
    has too. meets: whether its blocks meet by `grid.sync()`, whose launch is cooperative.
    """

    file: str
    name: str
    grid: str
    block: str
    shared: str
    warns: str
    marks: tuple[tuple[str, int], ...]
    meets: bool


def source(file: str) -> Path:
    """The file, with its suffix."""
    (path,) = FOLDER.glob(f"{file}.*")
    return path


def kernels(file: str) -> tuple[Kernel, ...]:
    """Kernels of a file of the suite."""
    text = source(file).read_text(encoding="utf-8")
    found = []
    for match in _HEAD.finditer(text):
        first = text.count("\n", 0, match.start()) + 1
        marks = tuple(
            (mark[1], first + number)
            for number, line in enumerate(match[0].splitlines())
            if (mark := re.search(r"// <- (\S+)$", line))
        )
        found.append(
            Kernel(
                file, match[5], match[1], match[2], match[3] or "0", match[4] or "", marks,
                "this_grid" in match[6],
            )
        )  # fmt: skip
    return tuple(found)


def write_spec(folder: Path, file: str) -> Path:
    """Write a spec of a file's kernels into `folder`, with what it needs."""
    folder.mkdir(parents=True, exist_ok=True)
    text = source(file)
    (folder / text.name).write_text(text.read_text(encoding="utf-8"))
    (folder / "oracle.py").write_text(_ORACLE, encoding="utf-8")
    variants = "".join(
        _VARIANT.format(
            name=one.name,
            form="wrong" if wrong else "right",
            wrong=str(wrong).lower(),
            file=text.name,
            grid=one.grid,
            block=one.block,
            shared=one.shared,
        )
        for one in kernels(file)
        for wrong in (True, False)
    )
    path = folder / f"{file}.yaml"
    path.write_text(
        f"schema: tokitai/spec/v1\nop: watch-{file}\ntitle: {KINDS[file]}\n"
        f"params:\n  n: {{default: 64}}\nvariants:{variants}\nprofiles:\n  normal: {{draw: normal}}\n",
        encoding="utf-8",
    )
    return path


class Tally(msgspec.Struct):
    """What became of a file's kernels.

    false: right ones with a finding. lines: of the wrong ones, those of which a finding of the kind
    names the line. words: of each kernel that did not go as it should.
    """

    wrong: int = 0
    found: int = 0
    lines: int = 0
    right: int = 0
    false: int = 0
    words: list[str] = msgspec.field(default_factory=list)


def tally(file: str, cases: Iterable[CaseRecord]) -> Tally:
    """Count what was found, missed and told falsely in the cases of a file's spec."""
    known = {one.name: one for one in kernels(file)}
    told = Tally()
    for case in cases:
        name, _, form = case.variant.rpartition("-")
        kernel = known[name]
        found = [one for one in case.findings if one.tool not in {"guards", "repeats"}]
        kinds = [one.words for one in found]
        if form == "right":
            told.right += 1
            if any(one.kind != kernel.warns for one in found):
                told.false += 1
                told.words.append(f"{name}: false {kinds}")
            continue
        told.wrong += 1
        hit = [one for one in found if one.kind in {kind for kind, _ in kernel.marks}]
        told.found += bool(hit) or (case.device != "cpu" and bool(found))
        exact = all(
            any(one.kind == kind and f"{source(file).name}:{line}" in one.location for one in hit)
            for kind, line in kernel.marks
        )
        told.lines += exact
        if not exact:
            told.words.append(f"{name}: wanted {kernel.marks}, told {kinds or case.verdict}")
    return told


def table(tallies: dict[str, Tally]) -> str:
    """A Markdown table of what was found, missed and told falsely, by kind."""
    rows = ["| kind of fault | wrong | found | missed | right | false alarms |", "|---" * 6 + "|"]
    whole = Tally()
    for file, one in tallies.items():
        rows.append(_row(KINDS[file], one))
        whole.wrong += one.wrong
        whole.found += one.found
        whole.right += one.right
        whole.false += one.false
    return "\n".join([*rows, _row("all", whole)])


def _row(kind: str, one: Tally) -> str:
    missed = one.wrong - one.found
    return f"| {kind} | {one.wrong} | {one.found} | {missed} | {one.right} | {one.false} |"


def main(folder: str, *evidence: str) -> None:
    """Write specs into a folder or, given evidence of them, print the table."""
    if not evidence:
        for file in KINDS:
            names = (f"{one.name}-{form}" for one in kernels(file) for form in ("wrong", "right"))
            print(write_spec(Path(folder), file), *names)
        return
    cases: dict[str, list[CaseRecord]] = {}
    for path in evidence:
        record = read(Path(path))
        cases.setdefault(record.cases[0].op.removeprefix("watch-"), []).extend(record.cases)
    tallies = {file: tally(file, mine) for file, mine in cases.items()}
    print(table(tallies))
    for one in tallies.values():
        print("\n".join(one.words))


if __name__ == "__main__":
    main(*sys.argv[1:])
