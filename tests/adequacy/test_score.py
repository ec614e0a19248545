"""`show --score`: what the checks tell of the changes of a formula, without a kernel."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import yaml

from tests.runs import run
from tokitai_cli.adequacy.advice.score import score
from tokitai_cli.cli import app
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.run import specs

SPEC = {
    "schema": "tokitai/spec/v1",
    "op": "row-sum",
    "title": "Sums of rows",
    "params": {"rows": {"default": 6}, "cols": {"default": 33}},
    "variants": {},
    "profiles": {"normal": {"draw": "normal"}, "ones": {"draw": {"kind": "constant", "value": 1}}},
}
VARIANT = {
    "source": "sums.hip",
    "inputs": {"x": {"dtype": "float32", "shape": ["rows", "cols"]}},
    "outputs": {"y": {"dtype": "float32", "shape": ["rows"]}},
    "launches": [{"kernel": "sums", "grid": ["rows"], "block": [1], "args": ["x", "y", "cols"]}],
    "oracle": {"formula": "formula.py:sums"},
}
FORMULA = "def sums(params, inputs, scalars):\n    return {'y': inputs['x'].sum(axis=-1)}\n"
KERNEL = 'extern "C" __global__ void sums(const float* x, float* y, int cols) { no C++ at all }\n'
DROPPED = "line 2, sum: the last term dropped"


def spec_with(folder: Path, **checks: list[dict[str, object]]) -> Path:
    """A spec whose variants have these checks, and whose kernel cannot be built."""
    variants = {name: copy.deepcopy({**VARIANT, "checks": one}) for name, one in checks.items()}
    (folder / "spec.yaml").write_text(
        yaml.safe_dump({**SPEC, "variants": variants}, sort_keys=False)
    )
    (folder / "formula.py").write_text(FORMULA)
    (folder / "sums.hip").write_text(KERNEL)
    return folder / "spec.yaml"


def test_checks_that_miss_a_change_are_told_without_building(tmp_path: Path) -> None:
    path = spec_with(tmp_path, sharp=[{"metric": "bound"}], loose=[{"metric": "abs", "limit": 50}])
    sharp, loose = score(specs.load(path))
    assert sharp.profiles == loose.profiles == ["normal", "ones"]
    assert sharp.shape == {"rows": 6, "cols": 33}
    assert sharp.tried == loose.tried > 4
    assert not sharp.accepted
    assert DROPPED not in sharp.undetected
    assert DROPPED in loose.accepted


def test_the_verb_prints_the_score_only_when_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = spec_with(tmp_path, loose=[{"metric": "abs", "limit": 50}])
    assert app.run(["show", str(path)]) == 0
    assert "changes of the formula" not in capsys.readouterr().out
    assert app.run(["show", str(path), "--score"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert f"checks accept: {DROPPED}" in shown
    assert "tried on: rows=6,cols=33, profiles normal, ones; no kernel was run" in shown
    (found,) = score(specs.load(path))
    rejected = found.tried - len(found.accepted) - len(found.undetected)
    assert f"y: checks reject {rejected} of {found.tried} changes of the formula" in shown


def test_a_built_in_op_is_scored_as_its_run_records_it(tmp_path: Path) -> None:
    loaded = specs.load_op("gelu")
    (found,) = (one for one in score(loaded) if one.variant == "tanh")
    evidence = run("gelu", tmp_path, variant=["tanh"])
    assert evidence.verdict is Verdict.VERIFIED
    records = [case.changes[0] for case in evidence.cases if case.changes]
    assert found.tried >= max(one.tried for one in records)
    left = [{*one.accepted, *one.undetected} for one in records]
    mine = {*found.accepted, *found.undetected}
    assert set.intersection(*left) <= mine <= set.union(*left)
    assert mine
    assert found.shape == evidence.cases[0].shape
    assert set(found.profiles) == {case.profile for case in evidence.cases}


def test_a_profile_that_cannot_be_looked_at_is_named(tmp_path: Path) -> None:
    path = spec_with(tmp_path, sharp=[{"metric": "bound"}])
    (tmp_path / "draw.py").write_text("def odd(rng, shape, params):\n    raise ValueError('no')\n")
    document = yaml.safe_load(path.read_text())
    document["profiles"]["own"] = {"draw": "draw.py:odd"}
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    (found,) = score(specs.load(path))
    assert list(found.skipped) == ["own"]
    assert "no" in found.skipped["own"]
    assert "own" not in found.profiles


def test_a_large_default_gives_way_to_the_smallest_quick_shape(tmp_path: Path) -> None:
    path = spec_with(tmp_path, sharp=[{"metric": "bound"}])
    document = yaml.safe_load(path.read_text())
    document["params"]["rows"]["default"] = 1 << 20
    shapes = ({"rows": 40, "cols": 9}, {"rows": 3, "cols": 9})
    document["suites"] = {"quick": [{"shape": one, "why": "small"} for one in shapes]}
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    (found,) = score(specs.load(path))
    assert found.shape == {"rows": 3, "cols": 9}
