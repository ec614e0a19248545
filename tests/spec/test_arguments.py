"""Structs, lists of arrays and loops of a spec: faults of it, and what the kernel does not take."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.runs import KERNELS, run
from tokitai_cli import spec as spec_stage
from tokitai_cli.core.errors import SpecError
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.spec import plan

OWN = KERNELS / "own" / "arguments"
SPEC = """schema: tokitai/spec/v1
op: one
title: One
params: {n: {default: 100}, skipped: {default: 2}, big: {default: 70000}}
variants:
  main:
    source: arguments.hip
    inputs: {x: {dtype: float32, shape: [n]}, i: {dtype: int32, shape: [n]}}
    outputs: {y: {dtype: float32, shape: [n]}}
    scalars:
      alpha: {dtype: float32, value: 0.5}
      beta: {dtype: float32, value: 0.25}
    structs:
      v: {x: 1, y: 2, z: n, w: 0}
      config:
        n: n
        alpha: alpha
        strides: {step: [1, 0], beta: beta}
        x: x
        limits: [{lo: 0, hi: n}, {lo: 1, hi: n}]
    lists: {xs: [x, x], ys: [y, y]}
    launches:
      - {kernel: "with_struct<false>", grid: [4], block: [32], args: [config, v, y]}
      - {kernel: "added<false>", grid: [1], block: [1], args: [xs, 2, ys, 1]}
    oracle: oracle.py:with_struct
    checks: [{metric: abs, limit: 1}]
profiles: {normal: {}}
"""
GOOD = (
    SPEC.replace(
        '      - {kernel: "added<false>", grid: [1], block: [1], args: [xs, 2, ys, 1]}\n', ""
    )
    .replace("    lists: {xs: [x, x], ys: [y, y]}\n", "")
    .replace(", i: {dtype: int32, shape: [n]}", "")
)


def written(folder: Path, text: str) -> Path:
    for name in ("arguments.hip", "oracle.py"):
        shutil.copy(OWN / name, folder)
    path = folder / "spec.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("x: x\n", "x: nope\n", r"structs.config.x: unknown argument `nope`"),
        ("alpha: alpha\n", "alpha: v\n", r"structs.config.alpha: `v` is a struct of its own"),
        ("hi: n}]", "hi: m}]", r"structs.config.limits\[1\].hi: unknown argument `m`"),
        ("beta: beta}", "beta: {z: {q: 1}}}", r"strides.beta.z: expected an integer or text"),
        ("      v: {x", "      alpha: {x", r"structs.alpha: `alpha` is already the name"),
        ("args: [config, v, y]", "args: [config, i, y]", r"structs.v: `v` is not an argument of any"),
        ("[x, x]", "[x, i]", r"lists.xs: arrays of float32 and int32 in one list"),
        ("[x, x]", "[]", r"lists.xs: an empty list"),
        ("[x, x]", "z", r"lists.xs: unknown array `z`"),
        ("args: [config", "loop: {name: n, count: 3}, args: [config", r"`n` is already the name"),
        ("args: [config", "loop: {name: k, count: k}, args: [config", r"unknown name `k` in `k`"),
        ("args: [config", "loop: [{name: k, cont: 1}], args: [config", r"did you mean count"),
        ("value: 0.5", "value: 1 / k", r"scalars.alpha.value: unknown name `k`"),
    ],
)  # fmt: skip
def test_faults_of_a_spec_are_located(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert old in SPEC
    with pytest.raises(SpecError, match=words):
        spec_stage.load(written(tmp_path, SPEC.replace(old, new, 1)))


def test_an_array_for_a_vector_by_value_is_located(tmp_path: Path) -> None:
    text = GOOD.replace("args: [config, v, y]", "args: [config, x, y]", 1)
    text = text.replace("      v: {x: 1, y: 2, z: n, w: 0}\n", "")
    with pytest.raises(
        SpecError, match=r"args\[1\]: the spec passes `x`, an array of float32; the param"
    ):
        spec_stage.load(written(tmp_path, text))


@pytest.mark.parametrize(
    ("count", "words"), [("n - 101", "-1 steps"), ("n * 100", "more than 4096 launches")]
)
def test_steps_that_cannot_be_made(tmp_path: Path, count: str, words: str) -> None:
    text = GOOD.replace("args: [config", f"loop: {{name: k, count: {count}}}, args: [config")
    loaded = spec_stage.load(written(tmp_path, text))
    with pytest.raises(SpecError, match=words):
        plan.plan(loaded, plan.Selection())


@pytest.mark.parametrize(
    ("old", "new", "verdict", "words"),
    [
        ("[1, 0]", "[1, 0, 2]", Verdict.BUILD_FAILED,
         "gives 3 values, the kernel's field is no array"),
        ("        alpha: alpha\n        strides: {step: [1, 0], beta: beta}\n",
         "        strides: {step: [1, 0], beta: alpha}\n", Verdict.BUILD_FAILED,
         "has fields that the spec does not name"),
        ("hi: n}]", "hi: big}]", Verdict.NOT_RUN,
         r"argument 0.limits[1].hi (counted from 0) of kernel with_struct<false>: 70000 does not fit"),
    ],
)  # fmt: skip
def test_what_the_kernel_does_not_take(
    tmp_path: Path, old: str, new: str, verdict: Verdict, words: str
) -> None:
    assert old in GOOD
    text = GOOD.replace(old, new, 1)
    if "beta: alpha" in new:
        text = text.replace("      beta: {dtype: float32, value: 0.25}\n", "")
    evidence = run(written(tmp_path, text), tmp_path / "out")
    assert evidence.verdict is verdict
    assert words in evidence.cases[0].reason.replace("\u2018", "'").replace("\u2019", "'")
    if verdict is Verdict.BUILD_FAILED:
        assert evidence.cases[0].reason.startswith("variants.main.launches[0].")


def test_more_values_than_a_launch_may_pass_are_told(tmp_path: Path) -> None:
    from tokitai_cli.core.model.harness import MAX_WORDS
    from tokitai_cli.cpp.whole import program_of
    from tokitai_cli.drafts.draft import drafts

    text = (KERNELS.parents[1] / "kernels" / "harness" / "tokitai_program.hpp").read_text()
    assert f"argument_limit = {MAX_WORDS};" in text
    many = GOOD.replace("step: [1, 0]", f"step: [{', '.join(['1'] * MAX_WORDS)}]")
    with pytest.raises(SpecError, match=rf"args: the launch passes {MAX_WORDS + 15} values"):
        spec_stage.load(written(tmp_path, many))
    source = tmp_path / "k.hip"
    source.write_text(
        f"struct S {{ int a[{MAX_WORDS - 2}]; float b; }};\n"
        "__global__ void k(S s, float* y) { *y = s.b; }\n"
        f"struct T {{ int a[{MAX_WORDS - 3}]; float b; }};\n"
        "__global__ void l(T s, float* y) { *y = s.b; }\n"
    )
    first, second = drafts(program_of(source, [], {}))
    assert first.reasons == (
        f"a launch passes {MAX_WORDS + 1} values, {MAX_WORDS} at most can be passed",
    )
    assert not second.reasons
