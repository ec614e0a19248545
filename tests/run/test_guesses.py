"""A failure that hangs on a guess of the spec says nothing yet; every other one is what it is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.runs import run
from tokitai_cli import spec
from tokitai_cli.audit import consistency
from tokitai_cli.core.errors import DYNAMIC_SHARED
from tokitai_cli.core.model.evidence import CaseRecord
from tokitai_cli.core.model.judged import FindingRecord, GuessRecord
from tokitai_cli.judge import STEP_FINDINGS, Failure, failure_of, hanging
from tokitai_cli.spec.plan import Selection, plan

# One kernel with a fault of each kind, by number: it is built once for all of them.
FAULTS = (
    "right", "wrong", "behind", "before", "reads", "adds", "racing", "tail", "far", "gathers", "changes",
    "shared",
)  # fmt: skip
KERNEL = """
#include <hip/hip_runtime.h>
__global__ void copies(float* x, const int* idx, float* y, int n, int k, float a, int fault) {
  extern __shared__ float s[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = x[i];
  if (fault == 1) v *= 2;
  if (fault == 2 && i == 0) y[n + 2] = 1;
  if (fault == 3 && i == 0) y[-3] = 1;
  if (fault == 4 && i == n - 1) v = x[n];
  if (fault == 5) v += y[i];
  if (fault == 7 && i == n - 1) return;
  if (fault == 8) v = x[i + (1 << 24)];
  if (fault == 9) v = x[(unsigned)idx[i] * k];
  if (fault == 10) x[i] = 0;
  if (fault == 11) s[i + 4096] = v;
  y[i] = v;
  if (fault == 6) y[0] = i;
}
"""
FORMULA = 'def copy(params, inputs, scalars):\n    return {"y": inputs["x"]}'
HEAD = """schema: tokitai/spec/v1
op: guesses
title: copies
params:
  n: {default: 100}
profiles:
  normal:
    draw: normal
    inputs: {idx: {kind: index-uniform, below: 40}}
  marked:
    draw: normal
    inputs: {idx: {kind: index-uniform, below: 40}}  # guess: ranges
variants:
"""
VARIANT = """  NAME:
    source: k.hip
    profiles: [PROFILE]
    inputs:
      x: {dtype: float32, shape: [n]}  X
      idx: {dtype: int32, shape: [n]}
    outputs:
      y: {dtype: float32, shape: [n]}  Y
    scalars:
      k: {dtype: int32, value: 1000000}  K
      a: {dtype: float32, value: 2}  A
    launches:
      - kernel: copies  INSTANCE
        grid: ["ceil_div(n, 64)"]  GRID
        block: [64]  BLOCK
        shared: 512  SHARED
        args: [x, idx, y, n, k, a, FAULT]
    deterministic: true  BITS
    oracle: {formula: "ORACLE.py:copy"}
    checks:
      - {metric: bound}  BOUND
      - {metric: abs, limit: 1000000}  ABS
"""
PLACES = ("INSTANCE", "GRID", "BLOCK", "SHARED", "BITS", "BOUND", "ABS", "X", "Y", "K", "A")
Marks = dict[str, str]
ROLE = "its shape, and that the kernel only"


def variant(number: int, fault: str, marks: Marks) -> str:
    """A variant with a fault, guesses marked by the line that each is of."""
    text = VARIANT.replace("NAME", f"v{number}").replace("FAULT", str(FAULTS.index(fault)))
    text = text.replace("PROFILE", "marked" if "draw" in marks else "normal")
    text = text.replace("ORACLE", "guessed" if "formula" in marks else "formula")
    for name in PLACES:
        mark = f"# guess: {marks[name.lower()]}" if name.lower() in marks else ""
        text = text.replace(f"  {name}\n", f"  {mark}\n")
    return text


def written(folder: Path, rows: Sequence[tuple[str, Marks]], tail: str = "") -> Path:
    (folder / "k.hip").write_text(KERNEL, "utf-8")
    (folder / "formula.py").write_text(f"{FORMULA}\n", "utf-8")
    (folder / "guessed.py").write_text(f"{FORMULA}  # guess: what it computes\n", "utf-8")
    path = folder / "spec.yaml"
    path.write_text(
        HEAD + "".join(variant(at, *row) for at, row in enumerate(rows)) + tail, "utf-8"
    )
    return path


HANGING = [
    (
        "behind",
        {"y": ROLE + " writes it"},
        "the shape of y",
        "y[102]: out-of-bounds write past the end of y",
    ),
    ("tail", {"y": "its shape"}, "the shape of y", "y: 1 element never written"),
    ("far", {"x": "its shape"}, "the shape of x", "the kernel crashed: SIGSEGV"),
    ("reads", {"x": "its shape", "y": "its shape"}, "the shape of x", "y: "),
    ("adds", {"y": ROLE + " writes it"}, "that the kernel only writes y", "y"),
    ("changes", {"x": ROLE + " reads it"}, "that the kernel only reads x", "x[0]: input changed"),
    ("shared", {"shared": "bytes"}, "the shared memory of copies", "the runtime reports"),
    ("gathers", {"draw": "ranges"}, "the draw of idx", "the kernel crashed"),
    ("gathers", {"k": "its value"}, "the value of k", "the kernel crashed"),
    ("wrong", {"grid": "by the text"}, "the grid of copies", "y["),
    ("wrong", {"block": "by the text"}, "the block of copies", "y["),
    ("wrong", {"instance": "T"}, "the instance copies", "y["),
    ("wrong", {"formula": "what it computes"}, "the formula", "y["),
    ("wrong", {"bound": "its limit"}, "the check bound", "y["),
    ("wrong", {"y": "its shape and dtype"}, "the dtype of y", "y["),
    ("racing", {"draw": "ranges"}, "the draw of idx", "y["),
]


EVERY_SHAPE = {"x": "its shape", "y": ROLE + " writes it"}
STANDING = [
    ("wrong", {}, "refuted"),
    ("wrong", {**EVERY_SHAPE, **dict.fromkeys(("a", "shared", "bits", "abs"), "it")}, "refuted"),
    ("behind", {"x": "its shape"}, "refuted"),
    ("before", EVERY_SHAPE, "refuted"),
    ("tail", {"x": "its shape"}, "refuted"),
    ("reads", {"y": ROLE + " writes it"}, "refuted"),
    ("adds", {"y": "its shape"}, "refuted"),
    ("racing", EVERY_SHAPE, "refuted"),
    ("changes", {"x": "its shape"}, "refuted"),
    ("far", {"y": "its shape", "shared": "bytes"}, "crashed"),
    ("shared", {**EVERY_SHAPE, "a": "its value"}, "crashed"),
    ("gathers", {"a": "its value"}, "crashed"),
    ("right", {name.lower(): "it" for name in PLACES}, "verified"),
]  # fmt: skip


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], list[CaseRecord]]:
    """Lines of a spec with all rows of the tables, and what a run of it gives."""
    folder = tmp_path_factory.mktemp("guesses")
    rows = [*((one[0], one[1]) for one in HANGING), *((one[0], one[1]) for one in STANDING)]
    path = written(folder, rows)
    found = {case.variant: case for case in run(path, folder / "out", repeat=4).cases}
    return path.read_text("utf-8").splitlines(), [found[f"v{at}"] for at in range(len(rows))]


@pytest.mark.parametrize(("number", "row"), [*enumerate(HANGING)])
def test_a_failure_that_a_guess_explains_is_inconclusive(
    cases: tuple[list[str], list[CaseRecord]], number: int, row: tuple[str, Marks, str, str]
) -> None:
    lines, found = cases
    case, (_, _, about, reason) = found[number], row
    assert case.verdict == "inconclusive", case.reason
    assert case.guesses
    first = case.guesses[0]
    assert first.about == about
    file, line = first.place.split(":")
    told = {"spec.yaml": lines, "guessed.py": ["", "# guess:"]}
    assert "# guess:" in told[file][int(line) - 1]
    assert case.reason.startswith(f"{about} in {first.place} is a guess: {reason}")
    assert case.reason.endswith("(if it is right, remove its mark `# guess:`)")


@pytest.mark.parametrize(("number", "row"), [*enumerate(STANDING)])
def test_a_failure_that_hangs_on_no_guess_is_what_it_is(
    cases: tuple[list[str], list[CaseRecord]], number: int, row: tuple[str, Marks, str]
) -> None:
    case = cases[1][len(HANGING) + number]
    assert (case.verdict, case.guesses) == (row[-1], []), case.reason
    assert "a guess" not in case.reason


def test_evidence_that_is_no_longer_of_its_guesses_is_told(tmp_path: Path) -> None:
    found = run(written(tmp_path, [("tail", {"y": "its shape"})]), tmp_path / "out")
    (case,) = found.cases
    for guesses, fault in (
        ([], "its record refutes it and names no guess on which that depends"),
        (
            [GuessRecord(place="spec.yaml:1", about="it", words="")],
            "in spec.yaml:1, which has no such mark",
        ),
    ):
        other = replace(found, cases=[replace(case, guesses=guesses)])
        told = [one.text for one in consistency.remarks(other, same=True) if one.fault]
        assert any(fault in text for text in told), told


def test_a_child_that_does_not_end_hangs_on_places_and_the_launch(tmp_path: Path) -> None:
    failure = [Failure(STEP_FINDINGS, "it does not end", "time")]
    for name, hangs in {"draw": True, "k": True, "grid": True, "y": False, "a": False}.items():
        loaded = spec.load(written(tmp_path, [("right", {name: "it"})]))
        (case, *_) = plan(loaded, Selection()).cases
        assert bool(hanging(case, failure).guesses) is hangs, name


MARKED = [
    ("    outputs:\n", "    outputs:  # guess: all shapes\n", ("outputs",)),
    ("      y: {dtype", "      # guess: its shape\n      y: {dtype", ("outputs", "y")),
    (
        "      - kernel: copies",
        "      # guess: all of it\n      - kernel: copies",
        ("launches", 0, "kernel"),
    ),
    (
        "shape: [n]}  \n    scalars",
        "shape:  # guess: it\n [n]}\n    scalars",
        ("outputs", "y"),
    ),
]


@pytest.mark.parametrize(("old", "new", "key"), MARKED)
def test_what_a_mark_is_of(tmp_path: Path, old: str, new: str, key: tuple[str | int, ...]) -> None:
    path = written(tmp_path, [("behind", {})])
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")
    guess = spec.load(path).guesses[-1]
    assert guess.key == ("variants", "v0", *key)
    (case, *_) = plan(spec.load(path), Selection()).cases
    failure = Failure(STEP_FINDINGS, "y[102]: written", "outside", "y")
    assert hanging(case, [failure]).guesses[0].place == guess.place


FINDINGS = [
    ("out-of-bounds", "y[102] of 100 elements", "k.hip:3", "outside", "y"),
    ("out-of-bounds", "y[-3] of 100 elements", "k.hip:3", "crash", "y"),
    ("out-of-bounds", "dynamic shared memory[128] of 9 elements", "", "outside", DYNAMIC_SHARED),
    ("out-of-bounds", "shared s[64] of 64 elements", "", "crash", ""),
    ("out-of-bounds-write", "", "y[100]", "outside", "y"),
    ("invalid-read", "", "k.hip:3", "outside", ""),
    ("input-changed", "", "x[0, 1]", "changed", "x"),
    ("uninitialised-read", "y[5]", "k.hip:3", "unset", "y"),
    ("race", "y[5]", "k.hip:3", "other", "y"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "array", "location", "means", "name"), FINDINGS)
def test_what_a_finding_is_about(
    kind: str, array: str, location: str, means: str, name: str
) -> None:
    finding = FindingRecord(
        tool="t", kind=kind, message="m", kernel="k", location=location, threads="", array=array
    )
    failure = failure_of(finding)
    assert (failure.kind, failure.array) == (means, name)
