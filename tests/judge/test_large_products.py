"""Large products: random vectors over whole numbers beside a sample, tried at small sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from numpy.typing import NDArray

from tests.runs import run, shipped_tree
from tests.support import slow
from tokitai_cli.core import resources
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.judge.freivalds import MISSED_BITS, factors, proved
from tokitai_cli.oracles.variants.request import FormulaCall
from tokitai_cli.oracles.variants.single_product import product_of

SIZES = {"m": 150, "n": 1100, "k": 70}


def spec(folder: Path, *, profiles: list[str], fault: str = "", variant: str = "f16") -> Path:
    """The shipped product, sampled at every size; `fault`: where 1 is added."""
    op = shipped_tree("gemm")
    del op["suites"]
    one = {**op["variants"][variant], "profiles": profiles}
    one["oracle"] = {**one["oracle"], "sampled_from": 1}
    for name in ("storage.hpp", "gemm.hip"):
        text = (resources.kernels_dir() / name).read_text()
        wrong = f"col, sum + ({fault} ? 1.0f : 0.0f));"
        (folder / name).write_text(text.replace("col, sum);", wrong) if fault else text)
    one["source"] = "gemm.hip"
    text = yaml.safe_dump({**op, "variants": {variant: one}}, sort_keys=False)
    (folder / "gemm.yaml").write_text(text)
    return folder / "gemm.yaml"


def matrices(turned: bool = False) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    rng = np.random.default_rng(3)
    a = rng.integers(-2, 3, (67, 90)).astype(np.float16)
    b = rng.integers(-2, 3, (90, 130)).astype(np.float16)
    if turned:
        a, b = np.ascontiguousarray(a.T).T, np.ascontiguousarray(b.T).T
    return a, b, (a.astype(float) @ b.astype(float)).astype(np.float32)


@pytest.mark.parametrize("turned", [False, True])
def test_a_right_product_is_proved_with_a_stated_probability(turned: bool) -> None:
    a, b, c = matrices(turned)
    found = proved(factors(a, b, 2.0**24), c, "float32")
    assert found.record is not None
    assert (found.failure, found.undecided, found.record.wrong_rows) == ("", "", 0)
    assert found.record.missed <= 2.0**-MISSED_BITS < 1e-12
    assert found.record.elements == c.size


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("off", [1.0, -3.0, 0.5, np.nan, np.inf, 1e30])
def test_every_wrong_element_is_found_and_named(off: float, turned: bool) -> None:
    a, b, right = matrices(turned)
    for row, column in ((0, 0), (66, 129), (31, 77)):
        c = right.copy()
        c[row, column] += off
        found = proved(factors(a, b, 2.0**24), c, "float32")
        assert found.failure.startswith(f"[{row}, {column}] is ")
        assert "1 of 67 rows are wrong" in found.failure


def test_what_is_not_whole_or_does_not_count_proves_nothing() -> None:
    a, b, c = matrices()
    assert proved(factors(a * 0.5, b, 2.0**24), c, "float32").record is None
    assert proved(factors(a, b, 100.0), c, "float32").record is None
    large = (a * 9, b * 9)
    c16 = (c * 81).astype(np.float16)
    found = proved(factors(*large, 2.0**24), c16, "float16")
    assert not found.failure
    assert "counts no further" in found.undecided


def test_the_sample_is_judged_and_the_whole_proved(tmp_path: Path) -> None:
    evidence = run(spec(tmp_path, profiles=["exact-int", "normal"]), tmp_path / "out", shapes=SIZES)
    assert evidence.verdict is Verdict.VERIFIED
    by_profile = {case.profile: case.outputs[0] for case in evidence.cases}
    exact, normal = by_profile["exact-int"].sample, by_profile["normal"].sample
    assert exact is not None
    assert normal is not None
    assert exact.proof is not None
    assert normal.proof is None
    assert (exact.rows, exact.columns) == (128, 1024)
    assert by_profile["normal"].elements == 150 * 1100
    text = " ".join(one.text for one in evidence.statements)
    assert "all 165000 elements equal the product of integers" in text
    left = " ".join(one.text for one in evidence.non_claims)
    assert "131072 of 165000 elements were judged" in left


def test_a_sample_alone_is_inconclusive(tmp_path: Path) -> None:
    evidence = run(spec(tmp_path, profiles=["normal"]), tmp_path / "out", shapes=SIZES)
    assert evidence.verdict is Verdict.INCONCLUSIVE
    assert "only a sample" in evidence.cases[0].reason


SAMPLED = set(np.linspace(0, SIZES["m"] - 1, 128).astype(int).tolist())
LEFT_OUT = sorted(set(range(SIZES["m"])) - SAMPLED)


@pytest.mark.parametrize("row", [LEFT_OUT[0], slow(LEFT_OUT[-1])])
def test_one_wrong_element_outside_of_the_sample_refutes(tmp_path: Path, row: int) -> None:
    fault = f"row == {row} && col == 700"
    path = spec(tmp_path, profiles=["exact-int", "normal"], fault=fault)
    evidence = run(path, tmp_path / "out", shapes=SIZES)
    assert evidence.verdict is Verdict.REFUTED
    (case,) = (one for one in evidence.cases if one.verdict is Verdict.REFUTED)
    assert case.reason.startswith(f"c: [{row}, 700] is ")


def test_only_a_plain_product_of_two_inputs_is_sampled() -> None:
    a, b, c = matrices()
    given = {"a": a.astype(np.float32), "b": b.astype(np.float32), "w": c}

    def found(formula: Callable[[Mapping[str, Any]], Any]) -> bool:
        asked = FormulaCall(lambda params, inputs, scalars: {"c": formula(inputs)}, {}, given, {})
        return product_of(asked, "c") is not None

    assert found(lambda x: x["a"] @ x["b"])
    assert found(lambda x: x["b"].T @ x["a"].T)
    assert not found(lambda x: (x["a"] @ x["b"]) * 2)
    assert not found(lambda x: x["a"] @ np.exp(x["b"]))
    assert not found(lambda x: x["a"] @ x["a"].T)
    assert not found(lambda x: x["a"] @ x["b"] @ x["w"])
