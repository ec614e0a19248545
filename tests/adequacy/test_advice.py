"""`advise`: what a spec cannot tell, the line that would mend it, and a spec with the lines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.runs import run
from tokitai_cli.adequacy import advice
from tokitai_cli.adequacy.advice import edit
from tokitai_cli.cli import app
from tokitai_cli.core.errors import UsageError
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.evidence.queries import not_covered
from tokitai_cli.run.specs import load

LOOSE = "- {metric: abs, limit: 0.5}"
SPEC = """\
# A spec that misses much.
schema: tokitai/spec/v1
op: row-scale
title: "Rows times a weight, over their norm"   # a comment of mine
params:
  rows: {default: 64}
  cols: {default: 64, help:   "columns"}

variants:
  main:
    source: scale.hip
    inputs:
      x: {dtype: float32, shape: [rows, cols]}
      w: {dtype: float32, shape: [cols]}
    outputs:
      y: {dtype: float32, shape: [rows, cols]}
    scalars:
      eps: {dtype: float32, value: 1e-5}   # inside of the root
    launches:
      - {kernel: scale, grid: ["ceil_div(rows, 32)"], block: [32], args: [x, w, y, eps, rows, cols]}
    oracle: {formula: "formula.py:scale"}
    profiles: [ones]
    checks:
      - {metric: abs, limit: 0.5}

# The end of the variants.
profiles:
  ones: {draw: {kind: constant, value: 1}}

suites:
  quick:
    - {shape: {rows: 32, cols: 32}, why: one block}

    # Two of them.
    - {shape: {rows: 64, cols: 64}, why: two blocks}

non_claims:
  - none   # of them
"""
FORMULA = """\
import numpy as np


def scale(params, inputs, scalars):
    x = inputs["x"]
    mean = (x * x).mean(axis=-1, keepdims=True)
    return {"y": x / np.sqrt(mean + scalars["eps"]) * inputs["w"]}
"""
KERNEL = """\
#include <hip/hip_runtime.h>
__global__ void scale(const float* x, const float* w, float* y, float eps, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0;
    for (int i = 0; i < cols; i++) sum += x[row * cols + i] * x[row * cols + i];
    float root = sqrtf(sum / cols + eps);
    for (int i = 0; i < cols; i++) y[row * cols + i] = x[row * cols + i] / root * w[i];
}
"""


def written(folder: Path, spec: str = SPEC) -> Path:
    (folder / "formula.py").write_text(FORMULA)
    (folder / "scale.hip").write_text(KERNEL)
    (folder / "spec.yaml").write_text(spec)
    return folder / "spec.yaml"


def told(path: Path) -> str:
    return "\n".join(
        f"{one.text} | {one.lines} {one.needless}" for one in advice.advise(load(path))
    )


def test_each_gap_is_told_with_a_line(tmp_path: Path) -> None:
    text = told(written(tmp_path))
    assert "rows and cols are equal in every shape" in text
    assert "eps is 1e-05 in every case" in text
    assert "10 ** -eps_digits" in text
    assert "the checks of y let pass" in text
    assert "add at variants.main.checks: - {metric: bound, output: y" in text


def test_tails_blocks_and_profiles_are_told(tmp_path: Path) -> None:
    spec = SPEC.replace("cols: 64}, why", "cols: 65}, why").replace(LOOSE, "- {metric: bound}")
    text = told(written(tmp_path, spec))
    assert (
        "32 divides rows in every shape with several blocks: the guard for the tail never runs"
        in text
    )
    written_out = spec.replace("ceil_div(rows, 32)", "(rows + 31) // 32")
    assert "32 divides rows in every shape with several blocks" in told(
        written(tmp_path, written_out)
    )
    one_block = spec.replace("rows: 64, cols", "rows: 31, cols")
    assert "ceil_div(rows, 32) is 1 in every shape" in told(written(tmp_path, one_block))


def test_what_is_not_missing_is_not_told(tmp_path: Path) -> None:
    shapes = "{rows: 33, cols: 70}, why: a tail}\n    - {shape: {rows: 32, cols: 32}"
    spec = SPEC.replace("{rows: 32, cols: 32}", shapes).replace(LOOSE, "- {metric: bound}")
    text = told(written(tmp_path, spec))
    for words in ("equal", "tail", "let pass", "flat limit"):
        assert words not in text


def test_a_profile_is_proposed_for_what_none_of_the_spec_tells(tmp_path: Path) -> None:
    zeros = SPEC.replace("value: 1}", "value: 0}").replace(LOOSE, "- {metric: bound}")
    path = written(tmp_path, zeros)
    (one,) = (one for one in advice.advise(load(path)) if "no profile detects" in one.text)
    assert "the wrong output " in one.text
    assert one.lines[0].startswith("add at profiles: normal: {draw: {kind: normal}")
    assert one.lines[1] == "add at variants.main.profiles: - normal"
    assert advice.apply(load(path), [one]) == (1, [])
    assert load(path).spec.variants["main"].profiles == ["ones", "normal"]
    assert not [one for one in advice.advise(load(path)) if "no profile detects" in one.text]


def test_a_proposed_profile_keeps_the_draws_that_arrays_need(tmp_path: Path) -> None:
    zeros = SPEC.replace("value: 1}}", "value: 0}, inputs: {w: {kind: uniform, lo: 2, hi: 3}}}")
    path = written(tmp_path, zeros.replace(LOOSE, "- {metric: bound}"))
    (one,) = (one for one in advice.advise(load(path)) if "no profile detects" in one.text)
    assert advice.apply(load(path), [one]) == (1, [])
    profiles = load(path).spec.profiles
    assert len(profiles) == 2
    assert all(one.inputs == profiles["ones"].inputs for one in profiles.values())


def test_outputs_that_are_mostly_no_numbers_are_told(tmp_path: Path) -> None:
    spec = SPEC.replace("{draw: {kind: constant, value: 1}}", "{draw: normal}")
    path = written(tmp_path, spec.replace(LOOSE, "- {metric: bound}"))
    for file in ("formula.py", "scale.hip"):
        text = (tmp_path / file).read_text()
        text = text.replace('* inputs["w"]', '* np.sqrt(inputs["w"] + 0.5)').replace(
            "* w[i]", "* sqrtf(w[i] + 0.5f)"
        )
        (tmp_path / file).write_text(text)
    (one,) = (one for one in advice.advise(load(path)) if "NaN" in one.text)
    assert re.search(
        r"main: \d\d% of y is NaN or infinite, or may be, on the profile ones", one.text
    )
    evidence = run(path, tmp_path / "out", suite="quick")
    assert evidence.verdict is Verdict.VERIFIED
    assert any(
        "NaN or infinity is right at more than a tenth" in one for one in not_covered(evidence)
    )
    # A spec that says where they are means them.
    meant = path.read_text().replace("cols]}\n    sc", 'cols], non_finite: "roots"}\n    sc')
    path.write_text(meant)
    assert not [one for one in advice.advise(load(path)) if "NaN" in one.text]
    assert not [
        one for one in not_covered(run(path, tmp_path / "b", suite="quick")) if "NaN" in one
    ]


LARGEST = """\
import numpy as np


def scale(params, inputs, scalars):
    x = inputs["x"]
    top = x.max(axis=-1)
    return {"y": top + np.log(np.exp(x - top[:, None]).sum(axis=-1))}
"""


def test_a_profile_shows_a_maximum_that_is_not_taken_away(tmp_path: Path) -> None:
    spec = SPEC.replace("shape: [rows, cols]}\n    sc", "shape: [rows]}\n    sc")
    path = written(tmp_path, spec.replace("{kind: constant, value: 1}", "normal"))
    (tmp_path / "formula.py").write_text(LARGEST)
    kernel = re.sub(r"float sum = 0;.*}", "y[row] = x[row * cols];\n}", KERNEL, flags=re.DOTALL)
    (tmp_path / "scale.hip").write_text(kernel)
    advised = told(path)
    assert re.search(r"no profile detects .*max.*; on (large|negative) the checks reject", advised)
    assert "add at profiles: large" in advised
    # What a formula is asked for is drawn, and not named.
    drawn = path.read_text().replace("{draw: normal}", "{draw: {kind: uniform, lo: -200, hi: -90}}")
    path.write_text(drawn)
    assert "the formula takes" not in told(path)


def test_ties_are_asked_for_where_places_are_given(tmp_path: Path) -> None:
    spec = SPEC.replace("y: {dtype: float32, shape: [rows, cols]}\n    sc",
                        "y: {dtype: int32, shape: [rows]}\n    sc")  # fmt: skip
    spec = spec.replace("{kind: constant, value: 1}", "normal").replace(LOOSE, "- {metric: exact}")
    path = written(tmp_path, spec)
    (tmp_path / "formula.py").write_text(
        "def scale(params, inputs, scalars):\n    return {'y': inputs['x'].argmax(axis=-1)}\n"
    )
    (tmp_path / "scale.hip").write_text(KERNEL.replace("float* y", "int* y"))
    found = [one for one in advice.advise(load(path)) if "profile detects" in one.text]
    words = {one.edits[0].path[-1]: one.text for one in found}
    assert "line 2, argmax: the last of equal values" in words["ties"]
    assert "line 2, argmax: a start at 0" in words["negative"]
    assert advice.apply(load(path), found) == (2, [])
    assert not [one for one in advice.advise(load(path)) if "argmax" in one.text]


def test_a_formula_without_a_change_to_try_is_told(tmp_path: Path) -> None:
    path = written(tmp_path, SPEC.replace(LOOSE, "- {metric: bound}"))
    (tmp_path / "formula.py").write_text(
        "def scale(params, inputs, scalars):\n    return {'y': inputs['x'][:, ::-1]}\n"
    )
    assert "main: no change of the formula alters y: its checks cannot be scored" in told(path)


def test_a_flat_limit_is_needless_only_where_the_bound_is_within_it(tmp_path: Path) -> None:
    both = f"{LOOSE}\n      - {{metric: bound}}"
    found = advice.advise(load(written(tmp_path, SPEC.replace(LOOSE, both))))
    assert [one.needless for one in found if one.needless] == ["variants.main.checks[0]"]
    sharp = both.replace("0.5", "1e-9")
    assert "flat limit" not in told(written(tmp_path, SPEC.replace(LOOSE, sharp)))


def test_lines_are_added_and_all_others_stay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path)
    assert app.run(["advise", str(path)]) == 6
    assert path.read_text() == SPEC
    said = capsys.readouterr().out
    gaps = int(re.findall(r"(\d+) gaps.*; --apply adds the lines", said)[0])
    assert app.run(["advise", str(path), "--apply"]) == 0
    assert re.search(rf"\d of {gaps} gaps closed", capsys.readouterr().out)
    new = path.read_text()
    gone = [line for line in SPEC.splitlines() if line not in new.splitlines()]
    # The setting's own line, and the variant's list of profiles, which stands on one line.
    assert [line.split(":")[0].strip() for line in gone] == ["eps", "profiles"]
    assert "# inside of the root" in new
    assert new.index("# The end of the variants.") > new.index("metric: bound")
    assert new.index("non_claims") > new.index("another eps")
    assert run(path, tmp_path / "out", suite="quick").verdict is Verdict.VERIFIED
    # What is left are changes that may be none.
    assert not [one for one in advice.advise(load(path)) if one.edits]


def test_an_edit_that_would_break_the_spec_is_left_out(tmp_path: Path) -> None:
    path = written(tmp_path)
    suite = ("suites", "quick")
    unknown = advice.Edit(suite, {"shape": {"lines": 3}}, appended=True)
    lost = advice.Edit((*suite, 0, "shape"), {"rows": 9}, instead=True)
    given = [advice.Advice("unknown", (unknown,)), advice.Advice("lost", (lost,))]
    done, refused = advice.apply(load(path), given)
    assert (done, len(refused)) == (0, 2)
    assert path.read_text() == SPEC


def test_a_shipped_op_is_left_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["advise", "scan", "--apply"]) == 2
    assert "ships with the tool" in capsys.readouterr().err


@pytest.mark.parametrize("indent", [0, 2])
def test_lists_keep_their_indentation(tmp_path: Path, indent: int) -> None:
    spec = (
        SPEC if indent else SPEC.replace("\n    - {sh", "\n  - {sh").replace("    # Two", "  # Two")
    )
    path = written(tmp_path, spec)
    assert app.run(["advise", str(path), "--apply"]) == 0
    (line,) = (line for line in path.read_text().splitlines() if "another eps" in line)
    assert line.startswith(f"{' ' * (2 + indent)}- ")


def _edited(text: str, *edits: advice.Edit) -> str:
    return edit.edited(text, edits)


ITEM = advice.Edit(("a", "list"), {"x": "p q, r"}, appended=True)
KEY = advice.Edit(("a", "new"), {"y": 1})


@pytest.mark.parametrize(
    ("text", "made", "new"),
    [
        ("a:\n  list:\n    - 1  # one\n  b: 2\n", ITEM, '    - {x: "p q, r"}\n'),
        ("a:\n  list:\n  - 1\n  # behind\n  b: 2\n", ITEM, '  - {x: "p q, r"}\n'),
        ("a:\r\n  list:\r\n  -   k: 1\r\n      l: 2\r\n", ITEM, '  -   {x: "p q, r"}\r\n'),
        ("a: {list: [1, 2]}\n", ITEM, ', {x: "p q, r"}'),
        ("a: {list: [1,\n  2,  # two\n  ]}\n", ITEM, ', {x: "p q, r"}'),
        ("a:\n  list: []  # none\n", ITEM, '{x: "p q, r"}'),
        ("a:\n  list:  # none\n  b: 2\n", ITEM, ' [{x: "p q, r"}]'),
        ("a:\n  b: 2\nc: 3\n", ITEM, '  list:\n    - {x: "p q, r"}\n'),
        ("a: {b: 2}\n", ITEM, ', list: [{x: "p q, r"}]'),
        ("c: 3", ITEM, '\na:\n  list:\n    - {x: "p q, r"}'),
        ("\ufeffa:\n  list:\n  - |\n    text\n\n# end\n", ITEM, '  - {x: "p q, r"}\n'),
        ("a:\n    b: >\n        text\n\n\nc: 3\n", KEY, "    new: {y: 1}\n"),
        ("- 0\n- 1\n", advice.Edit((0,), 5, instead=True), None),
    ],
)
def test_an_edit_adds_its_bytes_and_changes_no_other(
    text: str, made: advice.Edit, new: str | None
) -> None:
    after = _edited(text, made)
    if new is None:
        assert after == "- 5\n- 1\n"
        return
    assert after.count(new) == 1
    assert after.replace(new, "") == text
    tree = yaml.safe_load(after)["a"]
    assert tree["new"] == {"y": 1} if made is KEY else tree["list"][-1] == {"x": "p q, r"}


@pytest.mark.parametrize(
    "text",
    [
        "b: &b [1]\na: {list: *b}\n",
        "b: &b {list: [1]}\na: {<<: *b}\n",
        "a: {list: 3}\n",
        "a: 3\n",
    ],
)
def test_what_stands_elsewhere_is_not_edited(text: str) -> None:
    with pytest.raises((TypeError, ValueError)):
        _edited(text, ITEM)


@pytest.mark.parametrize("front", ["", "\ufeff"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_file_keeps_its_ends_of_lines_its_mark_and_its_mode(
    tmp_path: Path, front: str, newline: str
) -> None:
    path = written(tmp_path)
    before = (front + SPEC.replace("\n", newline)).encode()
    path.write_bytes(before)
    path.chmod(0o640)
    found = list(advice.advise(load(path)))
    added = [one for one in found if one.edits and not any(edit.instead for edit in one.edits)]
    assert advice.apply(load(path), added)[0]
    after = path.read_bytes()
    assert path.stat().st_mode & 0o777 == 0o640
    lines = [one for one in before.splitlines(keepends=True) if b"profiles: [ones" not in one]
    left = iter(after.splitlines(keepends=True))
    assert all(any(line == one for one in left) for line in lines)
    assert after.count(b"\n") == after.count(newline.encode())


def test_a_file_that_is_protected_is_not_written(tmp_path: Path) -> None:
    path = written(tmp_path)
    path.chmod(0o444)
    with pytest.raises(UsageError, match="write-protected"):
        advice.apply(load(path), advice.advise(load(path)))
    assert path.read_text() == SPEC


DEQUANT = """\
schema: tokitai/spec/v1
op: dequant-dot
title: Product of 4-bit weights and a vector
params:
  rows: {default: 7}
  cols: {default: 64, multiple_of: 8}
variants:
  main:
    source: scale.hip
    inputs:
      codes: {dtype: uint32, shape: [rows, "cols // 8"]}
      scale: {dtype: float16, shape: [rows]}
      x: {dtype: float16, shape: [cols]}
    outputs:
      y: {dtype: float16, shape: [rows]}
    launches:
      - {kernel: dequant_dot, grid: [1], block: [64], args: [codes, scale, x, y, rows, cols]}
    oracle: {formula: formula.py:dequant_dot}
    checks:
      - {metric: bound, why: roundings of a float32 kernel}
profiles:
  normal: {draw: normal, inputs: {codes: {kind: uniform, lo: 0, hi: "2 ** 32 - 1"}}}
"""
DEQUANT_FORMULA = """\
import numpy as np


def dequant_dot(params, inputs, scalars):
    codes = ((inputs["codes"][:, :, None] >> (4 * np.arange(8))) & 15).reshape(params["rows"], -1)
    weights = (codes.astype(np.float64) - 8) * inputs["scale"][:, None]
    return {"y": weights @ inputs["x"]}
"""


def test_no_profile_is_proposed_on_which_an_output_overflows_in_its_dtype(tmp_path: Path) -> None:
    """Products of large values are finite in float64 and not in the float16 that they are stored in."""
    path = written(tmp_path, DEQUANT)
    (tmp_path / "formula.py").write_text(DEQUANT_FORMULA)
    (tmp_path / "scale.hip").write_text(
        "#include <hip/hip_runtime.h>\n#include <hip/hip_fp16.h>\n"
        "__global__ void dequant_dot(const unsigned* codes, const __half* scale, const __half* x,"
        " __half* y, int rows, int cols) {}\n"
    )
    assert not [
        edit
        for one in advice.advise(load(path))
        for edit in one.edits
        if edit.path[0] == "profiles"
    ]


TILED = """\
#include <hip/hip_runtime.h>
__global__ void scale(const float* x, const float* w, float* y, float eps, int rows, int cols) {
    for (int row = blockIdx.x * blockDim.x + threadIdx.x; row < rows; row += blockDim.x * gridDim.x)
        for (int at = 0; at < cols; at += 16)
            for (int i = at; i < at + 16 && i < cols; i++) y[row * cols + i] = x[row * cols + i] * w[i];
}
"""


def test_passes_of_a_loop_and_a_cap_of_the_grid_are_told(tmp_path: Path) -> None:
    shape = "{rows: 33, cols: 37}"
    spec = SPEC.replace("{rows: 32, cols: 32}", shape).replace(LOOSE, "- {metric: bound}")
    path = written(tmp_path, spec.replace("ceil_div(rows, 32)", "min(ceil_div(rows, 32), 3)"))
    (tmp_path / "scale.hip").write_text(TILED)
    text = told(path)
    assert "no shape has three passes and a tail of the loop over cols by 16" in text
    assert "ceil_div(rows, 32) is at most 3, the grid's cap, in every shape" in text
    given = list(advice.advise(load(path)))
    advice.apply(load(path), given)
    assert "passes" not in told(path)
    assert "cap" not in told(path)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("1 / (1 + np.exp(-x))", "steep"),
        ("(x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1)", "offset"),
        ("x / np.maximum(np.abs(x).max(-1, keepdims=True), 1e-6)", "zero-rows"),
        ("x + 1", ""),
    ],
)
def test_values_that_a_formula_of_its_kind_needs_are_named(
    tmp_path: Path, value: str, kind: str
) -> None:
    path = written(tmp_path, SPEC.replace(LOOSE, "- {metric: bound}"))
    text = "import numpy as np\n\n\ndef scale(params, inputs, scalars):\n    x = inputs['x']\n"
    (tmp_path / "formula.py").write_text(f"{text}    return {{'y': {value}}}\n")
    given = list(advice.advise(load(path)))
    proposed = {one.edits[0].path[-1] for one in given if one.edits} & {
        "steep",
        "offset",
        "zero-rows",
    }
    assert proposed == {kind} - {""}
