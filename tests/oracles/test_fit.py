"""Oracles that do not fit their variant are refused where the spec is read, before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runs import run, tokitai
from tests.spec_example import example, write_example
from tokitai_cli import spec
from tokitai_cli.core.errors import SpecError
from tokitai_cli.oracles import references
from tokitai_cli.run.specs import load_op

SOFTMAX = """\
schema: tokitai/spec/v1
op: rows
title: softmax of rows
params:
  r: {default: 4000}
  c: {default: 1000000}
variants:
  main:
    source: k.hip
    inputs:
      x: {dtype: float16, shape: [r, c]}
    outputs:
      y: {dtype: float16, shape: [r, c]}
    launches:
      - {kernel: rows, grid: [r], block: [64], args: [x, y, c]}
    oracle: softmax.fwd
    checks:
      - {metric: bound}
profiles:
  normal: {draw: normal}
"""


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("softmax.fwd", "softmax.fwt", "16:13: variants.main.oracle: unknown oracle 'softmax.fwt'"),
        ("softmax.fwd", "softmax.grad", "16:13: variants.main.oracle: oracle softmax.grad reads g"),
        ("softmax.fwd", "layernorm.fwd", "16:13: .*reads eps"),
        ("x: {dtype: float16", "x: {dtype: int32", "makes y of integers only"),
        ("y: {dtype: float16, shape: [r, c]}", "y: {dtype: float16, shape: [c, r]}", "cannot judge y"),
        ("    checks:", "    reduction: welford\n    checks:", "17:16: .*no bound for the reduction"),
        ("    checks:", "    reduction: {tree: c, welford: true}\n    checks:", "reduction welford"),
        ("    checks:", "    replay: embedding.bwd\n    checks:", "17:13: .*reads indices"),
        (
            "    checks:",
            "    properties:\n      - name: row-mean\n    checks:",
            r"18:15: variants\.main\.properties\[0\]\.name: oracle softmax\.fwd states no property",
        ),
    ],
)  # fmt: skip
def test_a_builtin_oracle_that_does_not_fit(tmp_path: Path, old: str, new: str, words: str) -> None:
    (tmp_path / "k.hip").touch()
    path = tmp_path / "spec.yaml"
    path.write_text(SOFTMAX.replace(old, new))
    spec.load(path)
    with pytest.raises(SpecError, match=words) as caught:
        load_op(str(path))
    assert caught.value.where is not None
    assert (caught.value.where.file, caught.value.where.line > 0) == (path, True)


def test_arrays_larger_than_memory_and_shapes_that_only_a_suite_takes(tmp_path: Path) -> None:
    (tmp_path / "k.hip").touch()
    path = tmp_path / "spec.yaml"
    path.write_text(SOFTMAX)
    load_op(str(path))
    suite = "suites:\n  quick:\n    - {shape: {r: 1}}\n"
    wrong = SOFTMAX.replace("    checks:", '    requires: ["r < 8"]\n    checks:')
    path.write_text(wrong.replace("softmax.fwd", "softmax.grad") + suite)
    with pytest.raises(SpecError, match="reads g"):
        load_op(str(path))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def vector_ad(a, b, c): ...", "no function vector_add .did you mean vector_ad"),
        ("x = 1\ndef f(:\n", r"oracle\.py:2 is not valid Python: invalid syntax"),
        ("x = '\0'", "is not valid Python"),
        ("def vector_add(inputs, params=None, **more): ...", r"oracle\.py:1: .*three arguments"),
        ("def vector_add(params, inputs, scalars, *, more): ...", "three arguments"),
        ("\n\ndef vector_add(a, b, c, d): ...", r"oracle\.py:3: "),
    ],
)  # fmt: skip
def test_a_users_oracle_that_cannot_be_called(tmp_path: Path, text: str, words: str) -> None:
    path = write_example(tmp_path, oracle=text)
    with pytest.raises(SpecError, match=words) as caught:
        load_op(str(path))
    where = caught.value.where
    assert where is not None
    line = next(n for n, one in enumerate(example("spec.yaml").split("\n"), 1) if "oracle:" in one)
    assert (where.key, where.line) == ("variants.main.oracle", line)


@pytest.mark.parametrize(
    "text",
    [
        "def vector_add(*all): ...",
        "def vector_add(params, inputs, scalars, more=0): ...",
        "def vector_add(params, /, inputs, scalars, *, more=0): ...",
        "from numpy import *",
        "from math import hypot as vector_add",
        "vector_add = lambda *all: {}",
        "globals()['vector_' + 'add'] = max",
        "class vector_add(dict): ...",
        "if True:\n    def vector_add(a): ...\n",
        "@max\ndef vector_add(a): ...",
    ],
)
def test_what_a_users_oracle_may_define_in_another_way_is_let_pass(
    tmp_path: Path, text: str
) -> None:
    load_op(str(write_example(tmp_path, oracle=text)))


def test_show_and_verify_refuse_alike_and_write_nothing(tmp_path: Path) -> None:
    path = write_example(tmp_path, oracle="def other(params, inputs, scalars): ...")
    for verb in (["show"], ["verify", "--device", "cpu", "--out", str(tmp_path / "out")]):
        done = tokitai(verb[0], str(path), *verb[1:])
        assert done.returncode == 2, done.stderr
        assert "defines no function vector_add" in done.stderr
    assert not (tmp_path / "out").exists()


def test_modules_beside_an_oracle_are_part_of_it(tmp_path: Path) -> None:
    text = """
from more.sums import total


def vector_add(params, inputs, scalars):
    c = total(inputs)
    return {"c": {"reference": c, "error": 2.0**-24 * abs(c)}}
"""
    path = write_example(tmp_path, oracle=text)
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "__init__.py").touch()
    helper = tmp_path / "more" / "sums.py"
    helper.write_text(
        "def total(inputs):\n    return inputs['a'].astype(float) + inputs['b'].astype(float)\n"
    )
    variant = spec.load(path).spec.variants["main"]
    before = references.identity(variant, tmp_path)
    evidence = run(path, tmp_path / "out", shapes={"n": 100}, profile=["normal"])
    assert [(case.verdict, case.reason) for case in evidence.cases] == [("verified", "")]
    assert {"oracle.py", "more/sums.py"} <= {one.path for one in evidence.sources.values()}
    helper.write_text(helper.read_text() + "# another\n")
    assert references.identity(variant, tmp_path) != before
    assert not list(tmp_path.rglob("__pycache__"))


def test_a_module_that_is_loaded_behind_the_digests_back_is_refused(tmp_path: Path) -> None:
    hidden = "import importlib\nimportlib.import_module('hid' + 'den')\n"
    path = write_example(tmp_path, oracle=example("oracle.py") + hidden)
    (tmp_path / "hidden.py").touch()
    (case,) = run(path, tmp_path / "out", shapes={"n": 100}, profile=["normal"]).cases
    assert case.verdict == "inconclusive"
    assert "loaded hidden.py in a way that the tool cannot follow" in case.reason
