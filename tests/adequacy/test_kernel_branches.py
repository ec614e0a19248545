"""`advise` names what a kernel branches on and no case reaches; with its lines the fault there shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from tests.adequacy.branching_kernels import HEAD, POOR, Poor
from tests.runs import run
from tokitai_cli.adequacy import advice
from tokitai_cli.adequacy.advice.edit import Advice
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.run.specs import load


def written(folder: Path, poor: Poor, kernel: str = "") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "k.hip").write_text(HEAD + (kernel or poor.kernel))
    head = "import numpy as np\n\n\ndef k(params, inputs, scalars):\n    "
    (folder / "formula.py").write_text(f"{head}{poor.formula}\n")
    arrays: dict[str, Any] = {}
    for role, every in poor.arrays.items():
        for name, _, told in (one.partition(": ") for one in every):
            dtype, *shape = told.split()
            buffer = {"dtype": dtype, "shape": [int(n) if n.isdigit() else n for n in shape]}
            arrays.setdefault(role, {})[name] = buffer
    scalars = {
        name: {"dtype": kind, "value": value} for name, (kind, value) in poor.scalars.items()
    }
    launch = {"kernel": "k", "grid": [poor.grid], "block": [64], "args": poor.args}
    variant = {"source": "k.hip", **arrays, "scalars": scalars, "launches": [launch]}
    variant |= {"oracle": {"formula": "formula.py:k"}, "checks": [{"metric": "bound"}]}
    spec = {
        "schema": "tokitai/spec/v1", "op": "k", "title": "A kernel",
        "params": {name: {"default": value} for name, value in (poor.params or {"n": 150}).items()},
        "sizes": {"blocks": "(n + 63) // 64"}, "variants": {"main": variant},
        "profiles": {"normal": {"inputs": poor.inputs}},
        "suites": {"quick": [{"shape": shape} for shape in poor.suite]},
    }  # fmt: skip
    (folder / "spec.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))
    return folder / "spec.yaml"


def advised(path: Path) -> list[Advice]:
    return list(advice.advise(load(path)))


@pytest.mark.parametrize("what", POOR)
def test_what_no_case_reaches_is_named_with_its_line_and_reached_then(
    tmp_path: Path, what: str
) -> None:
    poor = POOR[what]
    path = written(tmp_path, poor)
    (one,) = [one for one in advised(path) if poor.said in one.text]
    assert one.edits
    assert advice.apply(load(path), [one]) == (1, [])
    assert not [one for one in advised(path) if poor.said in one.text]


@pytest.mark.parametrize("what", POOR)
def test_a_fault_there_passes_until_the_lines_are_added(tmp_path: Path, what: str) -> None:
    poor = POOR[what]
    assert poor.kernel.count(poor.fault[0]) == 1
    path = written(tmp_path, poor, poor.kernel.replace(*poor.fault))
    assert run(path, tmp_path / "poor", suite="quick").verdict is Verdict.VERIFIED
    right = written(tmp_path / "right", poor)
    found = [one for one in advised(right) if poor.said in one.text]
    for spec, verdict in ((path, Verdict.REFUTED), (right, Verdict.VERIFIED)):
        assert advice.apply(load(spec), found) == (1, [])
        assert run(spec, tmp_path / verdict.value, suite="quick").verdict is verdict


def test_what_cases_reach_is_not_named(tmp_path: Path) -> None:
    poor = POOR["an index that is -1"]
    part = {"draw": {"kind": "constant", "value": -1}, "share": 1}
    mixed = {"kind": "mix", "parts": [{"draw": poor.inputs["at"], "share": 3}, part]}
    path = written(tmp_path, msgspec.structs.replace(poor, inputs={"at": mixed}))
    assert not [one for one in advised(path) if "in no case" in one.text]


LABELS = Poor(
    "__global__ void k(const float* x, const int* t, float* y, int n, int classes) {\n"
    "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i >= n) return;\n  float m = x[0];\n"
    "  for (int c = 0; c < classes; ++c) m = fmaxf(m, x[i * classes + c]);\n"
    "  y[i] = t[i] < 0 || t[i] >= classes ? m : x[i * classes + t[i]] - m;\n}\n",
    ("", ""),
    "x, t = inputs['x'], inputs['t']\n    m = np.maximum(x.max(axis=-1), x[0, 0])\n"
    "    ok = (t >= 0) & (t < params['classes'])\n"
    "    return {'y': np.where(ok, x[np.arange(len(t)), np.where(ok, t, 0)] - m, m)}",
    {"inputs": ["x: float32 n classes", "t: int32 n"], "outputs": ["y: float32 n"]},
    ["x", "t", "y", "n", "classes"],
    "",
    params={"n": 150, "classes": 11},
    suite=({"n": 150, "classes": 12}, {"n": 65, "classes": 11}),
)


def test_labels_that_are_drawn_as_values_get_a_draw_of_their_own(tmp_path: Path) -> None:
    path = written(tmp_path, LABELS)
    (one,) = [one for one in advised(path) if "is drawn as values" in one.text]
    assert "t, by which k.hip:7 finds elements" in one.text
    assert advice.apply(load(path), [one]) == (1, [])
    (name,) = load(path).spec.profiles.keys() - {"normal"}
    draw = load(path).spec.profiles[name].inputs["t"]
    assert not isinstance(draw, str)
    assert (draw.kind, draw.below) == ("index-uniform", "classes")


def test_profiles_for_values_keep_draws_of_labels(tmp_path: Path) -> None:
    labels = {"t": {"kind": "index-uniform", "below": "classes"}}
    path = written(tmp_path, msgspec.structs.replace(LABELS, inputs=labels))
    # A profile without a draw for single arrays in front: its labels are values.
    text = path.read_text().replace("profiles:\n", "profiles:\n  first:\n    draw: normal\n")
    path.write_text(text)
    advice.apply(load(path), advised(path))
    new = {name: one for name, one in load(path).spec.profiles.items() if name != "first"}
    assert len(new) > 1
    for one in new.values():
        draw = one.inputs["t"]
        assert not isinstance(draw, str)
        parts = [draw, *(part.draw for part in draw.parts or [])]
        kinds = {part if isinstance(part, str) else part.kind for part in parts}
        assert kinds <= {"index-uniform", "mix", "constant"}


@pytest.mark.parametrize(
    ("kernel", "said"),
    [
        ('#include "made.h"\nKERNELS\n', "k with 3 arguments was not found in k.hip"),
        (
            "__global__ void k(const float* x, float* y, int n) {\n  if (n < 0) goto end;\n"
            "  y[threadIdx.x] = x[threadIdx.x];\nend:\n  return;\n}\n",
            "k: goto",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_said(tmp_path: Path, kernel: str, said: str) -> None:
    poor = POOR["a tail of a derived size"]
    (one,) = [one for one in advised(written(tmp_path, poor, kernel)) if "is unknown" in one.text]
    assert said in one.text
    assert not one.edits


def test_a_value_at_which_the_formula_ends_is_named_without_a_line(tmp_path: Path) -> None:
    poor = POOR["an index that is -1"]
    wrong = (
        "assert (inputs['at'] >= 0).all(), 'no place'\n    return {'y': inputs['x'][inputs['at']]}"
    )
    (one,) = [one for one in advised(written(tmp_path, msgspec.structs.replace(poor, formula=wrong)))
              if "in no case" in one.text]  # fmt: skip
    assert "the oracle ends" in one.text
    assert not one.edits


def test_a_macro_that_the_spec_defines_is_a_number_of_the_kernel(tmp_path: Path) -> None:
    poor = POOR["a case of a switch, by a number of the launch"]
    kernel = poor.kernel.replace(", int mode", "").replace("(mode)", "(MODE)")
    path = written(tmp_path, msgspec.structs.replace(poor, args=["x", "y", "n"]), kernel)
    path.write_text(
        path.read_text().replace("    scalars:", "    defines: {MODE: 1}\n    scalars:")
    )
    (one,) = [one for one in advised(path) if "MODE is 2 in no case" in one.text]
    assert advice.apply(load(path), [one]) == (1, [])
    assert not [one for one in advised(path) if "MODE is 2" in one.text]


def test_a_name_without_a_value_is_unknown(tmp_path: Path) -> None:
    poor = POOR["a label that is ignored"]
    kernel = poor.kernel.replace("== skip", "== SKIPPED")
    assert any("k.hip:5 compares t with SKIPPED, which is unknown" in one.text
               for one in advised(written(tmp_path, poor, kernel)))  # fmt: skip
