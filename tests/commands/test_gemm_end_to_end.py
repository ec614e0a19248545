"""Correct products are verified on every profile; every wrong one is refuted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runs import KERNELS, derived_spec, run, verdicts
from tokitai_cli.core.model.verdict import Verdict

FAULTS = KERNELS / "gemm_faults.hip"
WRONG = (
    "transposed",
    "last_term",
    "half_accumulator",
    "rounded_steps",
    "zeros",
    "one_nan",
    "wrong_sign",
)


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A spec whose variants are the wrong kernels and their correct twin, judged by bounds alone."""
    return derived_spec(
        tmp_path_factory.mktemp("faults"),
        "gemm-bw",
        "grad-a",
        (*WRONG, "plain", "tiled"),
        source=FAULTS,
        replay=False,
    )


@pytest.mark.parametrize(
    "shape",
    [
        {"m": 16, "n": 16, "k": 16},
        {"m": 64, "n": 64, "k": 64},
        {"m": 48, "n": 80, "k": 112},
        pytest.param({"m": 512, "n": 512, "k": 512}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_the_shipped_kernels_are_verified_on_every_profile(
    shape: dict[str, int], tmp_path: Path
) -> None:
    evidence = run("gemm-bw", tmp_path, shapes=shape)
    assert evidence.verdict is Verdict.VERIFIED, evidence.reason
    assert verdicts(evidence) == ["verified"] * 28
    every = {"grad-a", "grad-b", "grad-a-bf16", "grad-b-bf16"}
    assert {case.variant for case in evidence.cases} == every
    assert len({case.profile for case in evidence.cases}) == 10


def test_grad_a_runs_where_grad_b_cannot(tmp_path: Path) -> None:
    evidence = run("gemm-bw", tmp_path, shapes={"n": 1}, variant=["grad-a"])
    assert evidence.verdict is Verdict.VERIFIED, evidence.reason
    assert len(evidence.cases) == 10


@pytest.mark.parametrize("kernel", ["plain", "tiled"])
@pytest.mark.parametrize("size", [16, 64])
def test_another_order_of_summation_is_verified_without_a_replay(
    kernel: str, size: int, faults: Path, tmp_path: Path
) -> None:
    shape = {"m": size, "n": 80, "k": 48}
    evidence = run(faults, tmp_path, shapes=shape, variant=[kernel])
    assert evidence.verdict is Verdict.VERIFIED, evidence.reason
    assert all(case.replay_fraction is None for case in evidence.cases)


@pytest.mark.parametrize("kernel", WRONG)
def test_a_wrong_kernel_is_refuted_by_bounds_alone(
    kernel: str, faults: Path, tmp_path: Path
) -> None:
    shape = {"m": 32, "n": 96, "k": 48}
    evidence = run(faults, tmp_path, shapes=shape, variant=[kernel.replace("_", "-")])
    assert evidence.verdict is Verdict.REFUTED
    assert evidence.verdict.exit_code == 1
    assert evidence.reason


def test_a_grid_short_by_one_block_is_refuted_as_never_written(tmp_path: Path) -> None:
    launch = {
        "grid": ["m // 16", "k // 16 - 1"],
        "block": [16, 16],
        "args": ["grad_c", "b", "grad_a", "m", "n", "k"],
    }
    spec = derived_spec(
        tmp_path, "gemm-bw", "grad-a", ["plain"], source=FAULTS, changes={"launches": [launch]}
    )
    evidence = run(spec, tmp_path, shapes={"m": 32, "n": 8, "k": 48}, profile=["normal"])
    assert evidence.verdict is Verdict.REFUTED
    (case,) = evidence.cases
    assert "512 elements never written" in case.reason
    assert case.outputs[0].structure[0].first == [0, 32]
    assert case.reproduced is True


def test_a_refuted_case_shows_what_a_reader_needs(tmp_path: Path) -> None:
    spec = derived_spec(tmp_path, "gemm-bw", "grad-a", ["wrong_sign"], source=FAULTS)
    evidence = run(spec, tmp_path, shapes={"m": 16, "n": 32, "k": 16}, profile=["normal"])
    (case,) = evidence.cases
    check = next(one for one in case.outputs[0].checks if one.metric == "bound")
    worst = check.worst[0]
    assert isinstance(worst.got, float)
    assert isinstance(worst.want, float)
    assert worst.got * worst.want < 0
    assert check.exceeding
    assert check.exceeding > 200
    for word in (
        "verify",
        "--variant wrong-sign",
        "--profile normal",
        "--m 16",
        "--n 32",
        "--seed 0",
    ):
        assert word in case.rerun
    text = (tmp_path / "gemm-bw.md").read_text(encoding="utf-8")
    assert "refuted" in text
    assert case.rerun in text
