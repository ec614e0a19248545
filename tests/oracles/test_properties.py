"""Properties: no right kernel fails one, wrong ones do, also where the checks cannot tell."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from tests.row_cases import ORDERS, Emulation, arrays_of, changed, in_order, row_case, shipped
from tests.runs import KERNELS, run, shipped_tree
from tokitai_cli import evidence, report, spec
from tokitai_cli.core.errors import SpecError
from tokitai_cli.core.model.case import Case
from tokitai_cli.core.model.evidence import CaseRecord
from tokitai_cli.core.model.expectation import Expectation, StatedProperty
from tokitai_cli.core.model.judged import PropertyRecord
from tokitai_cli.core.model.spec import Property
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.core.numerics import round_to
from tokitai_cli.judge.property_limits import PropertyJudgement, judge_property
from tokitai_cli.oracles import references

Arrays = Mapping[str, Any]
STATED = [("softmax", "fwd"), ("softmax", "grad"), ("layernorm", "fwd"), ("embedding", "bwd")]
EVERYWHERE = {
    "softmax.fwd": ["row-sum", "shift-invariance", "permutation-equivariance"],
    "softmax.grad": ["row-sum", "permutation-equivariance"],
    "layernorm.fwd": ["row-mean", "row-variance"],
    "embedding.bwd": ["sum-conserved"],
}
FAULTS = {"none": 0, "no-shift": 1, "first-twice": 2, "trap": 3, "past-end": 4, "zeros": 5}


def asking(case: Case) -> Case:
    """The case asking for all properties of its oracle, on every profile."""
    asked = [Property(name=name) for name in EVERYWHERE[case.variant.oracle]]  # type: ignore[arg-type]
    return changed(case, properties=asked)


def table_gradient(case: Case, arrays: Arrays, order: str) -> dict[str, Any]:
    """Sums of an embedding's gradient in float32."""
    vocab = case.shape["vocab"]
    sums = np.zeros((vocab, case.shape["dim"]), dtype=np.float32)
    queries = np.arange(case.shape["queries"])
    for query in queries if order == "sequential" else queries[::-1]:
        row = int(arrays["indices"][query])
        if 0 <= row < vocab:
            sums[row] += arrays["grad_output"][query].astype(np.float32)
    return {"grad_weight": sums}


def outputs_of(case: Case, arrays: Arrays, order: str, seed: int) -> dict[str, Any]:
    """What a right kernel gives, in the outputs' dtypes."""
    with np.errstate(all="ignore"):
        if case.variant.oracle == "embedding.bwd":
            values = table_gradient(case, arrays, order)
        else:
            threads = case.launches[0].block[0]
            values = Emulation(order, seed, threads=threads).run(case, arrays)
    dtypes = {plan.name: plan.dtype for plan in case.buffers}
    return {
        name: round_to(value.astype(np.float64), dtypes[name]) for name, value in values.items()
    }


def stated_of(case: Case, arrays: Arrays) -> tuple[dict[str, Expectation], list[StatedProperty]]:
    expectations = references.expect(case, arrays)
    return expectations, list(references.stated_properties(case, arrays, expectations))


def judged(
    case: Case, stated: StatedProperty, arrays: Arrays, order: str, seed: int
) -> PropertyJudgement | None:
    """Judge a property on an emulated right kernel, of which another run rounds otherwise."""
    outputs = outputs_of(case, arrays, order, seed)
    others = []
    if stated.changed:
        others = [outputs_of(case, {**arrays, **stated.changed()}, order, seed + 1)]
    return judge_property(stated, [outputs], others)


def every_case(
    op: str, variant: str, shapes: list[dict[str, int]], order: str
) -> list[tuple[Case, int]]:
    return [
        (in_order(asking(row_case(op, variant, profile, seed, **shape)), order), seed)
        for profile in shipped(op).spec.variants[variant].profiles
        for seed, shape in enumerate(shapes)
    ]


def assert_held(cases: list[tuple[Case, int]], order: str) -> None:
    """Assert that no property fails, and that each is judged, and not with a limit of no use."""
    tightest: dict[str, float] = {}
    for case, seed in cases:
        arrays = arrays_of(case)
        for stated in stated_of(case, arrays)[1]:
            held = judged(case, stated, arrays, order, seed)
            if held is not None:
                assert held.record.passed, (case.id, held.failure)
                assert not held.failure
                limit = float(held.record.limit)
                tightest[stated.name] = min(tightest.get(stated.name, np.inf), limit)
    assert sorted(tightest) == sorted(EVERYWHERE[cases[0][0].variant.oracle])
    assert max(tightest.values()) < 0.01


def shapes_of(op: str, *sizes: tuple[int, int]) -> list[dict[str, int]]:
    if op == "embedding":
        return [
            {"queries": rows * 8, "dim": cols % 64 + 1, "vocab": rows * 8} for rows, cols in sizes
        ]
    return [{"rows": rows, "cols": cols} for rows, cols in sizes]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("op", "variant"), STATED)
def test_right_kernels_have_every_property(op: str, variant: str, order: str) -> None:
    shapes = shapes_of(op, (40, 7), (24, 65), (8, 300))
    assert_held(every_case(op, variant, shapes, order), order)


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("op", "variant"), STATED)
def test_right_kernels_have_every_property_in_thousands_of_rows(
    op: str, variant: str, order: str
) -> None:
    shapes = shapes_of(op, (1500, 33), (1000, 5), (200, 700), (3, 20000))
    assert_held(every_case(op, variant, shapes, order), order)


# Wrong outputs: (op.variant, profile, property, what is done to the right outputs, or to another run).


def dropped_column(case: Case, arrays: Arrays, outputs: Arrays) -> dict[str, Any]:
    x = arrays["x"].astype(np.float64)
    terms = np.exp(x - x.max(axis=1, keepdims=True))
    return {"y": (terms / terms[:, :-1].sum(axis=1, keepdims=True)).astype(np.float16)}


def zeros(case: Case, arrays: Arrays, outputs: Arrays) -> dict[str, Any]:
    return {name: np.zeros_like(value) for name, value in outputs.items()}


def unshifted(case: Case, arrays: Arrays, outputs: Arrays) -> dict[str, Any]:
    with np.errstate(all="ignore"):
        terms = np.exp(arrays["x"].astype(np.float32))
        return {"y": (terms / terms.sum(axis=1, keepdims=True)).astype(np.float16)}


def dropped_product(case: Case, arrays: Arrays, outputs: Arrays) -> dict[str, Any]:
    g, s = (arrays[name].astype(np.float64) for name in ("g", "s"))
    total = (g * s)[:, :-1].sum(axis=1, keepdims=True)
    return {"grad_x": (s * (g - total)).astype(np.float16)}


def without_eps(case: Case, arrays: Arrays, outputs: Arrays) -> dict[str, Any]:
    x, scale, shift = (arrays[name].astype(np.float64) for name in ("x", "gamma", "beta"))
    d = x - x.mean(axis=1, keepdims=True)
    y = d / np.sqrt(np.square(d).mean(axis=1, keepdims=True)) * scale + shift
    return {**outputs, "y": y.astype(np.float16)}


def biased(case: Case, arrays: Arrays, outputs: Arrays) -> dict[str, Any]:
    """The mean of all but one column is subtracted: small, and of one sign in a whole row."""
    x, scale, shift = (arrays[name].astype(np.float64) for name in ("x", "gamma", "beta"))
    d = x - x.mean(axis=1, keepdims=True)
    rstd = 1 / np.sqrt(np.square(d).mean(axis=1, keepdims=True) + 1e-5)
    y = (x - x[:, :-1].mean(axis=1, keepdims=True)) * rstd * scale + shift
    return {**outputs, "y": y.astype(np.float16)}


def lost_update(case: Case, arrays: Arrays, outputs: Arrays) -> dict[str, Any]:
    values = outputs["grad_weight"].astype(np.float64)
    values[arrays["indices"][-1]] -= arrays["grad_output"][-1].astype(np.float64)
    return {"grad_weight": values.astype(np.float16)}


WRONG = [
    ("softmax", "fwd", "normal", "row-sum", dropped_column),
    ("softmax", "fwd", "normal", "row-sum", zeros),
    ("softmax", "fwd", "integers", "shift-invariance", unshifted),
    ("softmax", "fwd", "normal", "permutation-equivariance", dropped_column),
    ("softmax", "grad", "not-normalised", "row-sum", dropped_product),
    ("softmax", "grad", "normal", "permutation-equivariance", dropped_product),
    ("layernorm", "fwd", "normal", "row-mean", biased),
    ("layernorm", "fwd", "tiny-variance", "row-variance", without_eps),
    ("embedding", "bwd", "hot-constant", "sum-conserved", lost_update),
]


@pytest.mark.parametrize(("op", "variant", "profile", "name", "fault"), WRONG)
def test_a_wrong_kernel_fails_the_property(
    op: str, variant: str, profile: str, name: str, fault: Any
) -> None:
    shape = {"queries": 300, "dim": 5, "vocab": 9} if op == "embedding" else {"rows": 6, "cols": 65}
    case = asking(row_case(op, variant, profile, **shape))
    arrays = arrays_of(case)
    (stated,) = (one for one in stated_of(case, arrays)[1] if one.name == name)
    outputs = fault(case, arrays, outputs_of(case, arrays, "tree", 0))
    others = []
    if stated.changed:
        there = {**arrays, **stated.changed()}
        others = [fault(case, there, outputs_of(case, there, "tree", 0))]
    held = judge_property(stated, [outputs], others)
    assert held is not None
    assert not held.record.passed
    assert held.record.runs == (2 if stated.changed else 1)
    assert held.failure.startswith(f"{stated.output}: {name} does not hold: {stated.places} [")
    assert "exceeds the limit" in held.failure
    right = judged(case, stated, arrays, "tree", 0)
    assert right is not None
    assert right.record.passed


def test_what_a_kernel_puts_out_never_widens_its_own_limit() -> None:
    for op, variant in STATED:
        case = asking(row_case(op, variant, "normal"))
        arrays = arrays_of(case)
        for stated in stated_of(case, arrays)[1]:
            for value in (np.inf, -np.inf, np.nan, 6e4):
                outputs = outputs_of(case, arrays, "tree", 0)
                changed = stated.changed() if stated.changed else {}
                others = [outputs_of(case, {**arrays, **changed}, "tree", 1)]
                wrong = (others if stated.changed else [outputs])[0][stated.output]
                wrong.reshape(-1)[3] = value
                held = judge_property(stated, [outputs], others if stated.changed else [])
                assert held is not None, stated.name
                assert not held.record.passed, (stated.name, value)


def test_every_repetition_is_judged() -> None:
    case = asking(row_case("softmax", "fwd", "normal"))
    arrays = arrays_of(case)
    stated = stated_of(case, arrays)[1][0]
    good = outputs_of(case, arrays, "tree", 0)
    bad = zeros(case, arrays, good)
    held = judge_property(stated, [good, good, bad])
    assert held is not None
    assert held.failure.endswith("in repetition 2")


def test_shifts_keep_every_number_exact() -> None:
    for profile in ("integers", "far-below-zero", "masked"):
        case = asking(row_case("softmax", "fwd", profile, rows=50, cols=33))
        arrays = arrays_of(case)
        stated = {one.name: one for one in stated_of(case, arrays)[1]}
        if profile == "masked":  # small numbers of all sizes: nothing can be added without rounding
            assert "shift-invariance" not in stated
            continue
        before = arrays["x"].astype(np.float64)
        shifts = stated["shift-invariance"].changed
        assert shifts is not None
        after = shifts()["x"].astype(np.float64)
        steps = after - before
        assert (steps == steps[:, :1]).all()
        assert (steps != 0).all()
        assert len(set(steps[:, 0])) > (1 if profile == "integers" else 0)
        assert before.min() < 0


def test_a_column_alone_has_no_other_order() -> None:
    case = asking(row_case("softmax", "fwd", "normal", rows=4, cols=1))
    assert "permutation-equivariance" not in {
        one.name for one in stated_of(case, arrays_of(case))[1]
    }


# Runs


def written(
    folder: Path,
    fault: str,
    *,
    properties: list[dict[str, Any]],
    profiles: list[str],
    checks: list[dict[str, Any]] | None = None,
) -> Path:
    """Spec of the kernel with a fault: the shipped contract of softmax, one thread per row."""
    document = shipped_tree("softmax")
    variant = document["variants"]["fwd"]
    variant |= {
        "source": os.path.relpath(KERNELS / "property_faults.hip", folder),
        "reduction": "any",
        "properties": properties,
        "profiles": profiles,
        "checks": checks or [{"metric": "bound"}],
    }
    variant.pop("replay", None)
    variant["launches"] = [
        {
            "kernel": "softmax_rows",
            "grid": ["ceil_div(rows, 64)"],
            "block": [64],
            "args": ["x", "y", "rows", "cols", FAULTS[fault]],
        }
    ]
    document["variants"] = {"fwd": variant}
    document["profiles"] = {name: document["profiles"][name] for name in profiles}
    for profile in document["profiles"].values():
        profile.pop("inputs", None)  # of the gradient's s
    document["op"] = "one-thread-softmax"
    del document["suites"]
    path = folder / f"{fault}.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return path


def outcome(path: Path, folder: Path, **shape: int) -> CaseRecord:
    found = run(path, folder, shapes=shape or {"rows": 6, "cols": 65})
    (case,) = found.cases
    return case


def held_in(case: CaseRecord, name: str) -> PropertyRecord:
    (one,) = (one for one in case.properties if one.name == name)
    return one


SHIFT = {"name": "shift-invariance", "output": "y"}


def test_a_shift_shows_exponentials_that_overflow(tmp_path: Path) -> None:
    """The bound holds on small logits, with and without the maximum subtracted."""
    path = written(tmp_path, "no-shift", properties=[], profiles=["integers"])
    assert outcome(path, tmp_path).verdict is Verdict.VERIFIED
    path = written(tmp_path, "no-shift", properties=[SHIFT], profiles=["integers"])
    case = outcome(path, tmp_path)
    assert case.verdict is Verdict.REFUTED
    assert case.reason.startswith("y: shift-invariance does not hold: element [")
    assert "got nan" not in case.reason
    assert "nan, want 0." in case.reason
    assert case.reproduced
    assert case.outputs[0].passed
    assert not held_in(case, "shift-invariance").passed


def test_a_right_kernel_is_verified_and_its_other_runs_are_told(tmp_path: Path) -> None:
    names = EVERYWHERE["softmax.fwd"]
    asked = [{"name": name, "output": "y"} for name in names]
    path = written(tmp_path, "none", properties=asked, profiles=["integers"])
    found = run(path, tmp_path, shapes={"rows": 6, "cols": 65})
    (case,) = found.cases
    assert case.verdict is Verdict.VERIFIED
    assert [(one.name, one.runs) for one in case.properties] == list(
        zip(names, (1, 2, 2), strict=True)
    )
    assert len(found.volatile.case_times_ns[case.key]) == 2  # those of the case's own run
    texts = [statement.text for statement in found.statements]
    told = "property shift-invariance holds in 1 case, each run once more on changed inputs."
    assert any(text.endswith(told) for text in texts)
    text = report.render(evidence.read(tmp_path / "one-thread-softmax.json"), "md").decode()
    assert "| shift-invariance | `y` |" in text
    assert "a row with NaN or +inf, or of -inf alone, is NaN throughout" in text


@pytest.mark.parametrize(
    ("fault", "name", "profile"),
    [
        ("zeros", "row-sum", "equal"),
        ("first-twice", "row-sum", "one-large"),
        ("first-twice", "permutation-equivariance", "one-large"),
    ],
)
def test_properties_see_what_a_flat_limit_passes(
    tmp_path: Path, fault: str, name: str, profile: str
) -> None:
    flat = [{"metric": "abs", "limit": 0.01}]
    if profile == "one-large":
        flat = [{"metric": "abs", "limit": 0.5}]
    shape = {"rows": 2, "cols": 4096}
    path = written(tmp_path, fault, properties=[], profiles=[profile], checks=flat)
    before = outcome(path, tmp_path, **shape)
    assert before.verdict in (Verdict.INCONCLUSIVE, Verdict.VERIFIED)
    path = written(tmp_path, fault, properties=[{"name": name}], profiles=[profile], checks=flat)
    case = outcome(path, tmp_path, **shape)
    assert case.verdict is Verdict.REFUTED
    assert case.reason.startswith(f"y: {name} does not hold")
    (check,) = case.outputs[0].checks
    assert check.passed
    assert check.passes_zeros is (profile != "one-large")
    right = written(tmp_path, "none", properties=[{"name": name}], profiles=[profile], checks=flat)
    assert outcome(right, tmp_path, **shape).verdict is before.verdict


def test_the_other_run_may_crash_or_write_where_it_must_not(tmp_path: Path) -> None:
    path = written(tmp_path, "trap", properties=[SHIFT], profiles=["integers"])
    case = outcome(path, tmp_path)
    assert case.verdict is Verdict.CRASHED
    assert "in the run for shift-invariance, with one of 1000, -1000" in case.reason
    path = written(tmp_path, "past-end", properties=[SHIFT], profiles=["integers"])
    case = outcome(path, tmp_path)
    assert case.verdict is Verdict.REFUTED
    assert case.reason.startswith("in the run with one of 1000")
    assert "y[390]: out-of-bounds write past the end of y, which has 390 elements" in case.reason
    assert case.findings[0].kind == "out-of-bounds-write"


def test_a_property_that_no_case_had_a_place_for_is_no_claim(tmp_path: Path) -> None:
    path = written(tmp_path, "none", properties=[SHIFT], profiles=["normal"])
    found = run(path, tmp_path, shapes={"rows": 6, "cols": 65})
    assert found.verdict is Verdict.VERIFIED
    assert not found.cases[0].properties
    texts = [claim.text for claim in found.non_claims]
    assert "property shift-invariance: no case of this run could judge it" in texts


def test_saved_arrays_are_those_of_the_first_run(tmp_path: Path) -> None:
    path = written(tmp_path, "no-shift", properties=[SHIFT], profiles=["integers"])
    (case,) = run(path, tmp_path, shapes={"rows": 6, "cols": 65}, save_arrays=True).cases
    files = {one.name: tmp_path / one.file for one in case.saved_arrays}
    got, want = np.load(files["got_y_0"]), np.load(files["want_y"])
    assert np.abs(got - want).max() < 1e-3  # those of the other run are NaN


# Specs


def softmax_with(folder: Path, **asked: Any) -> Path:
    return written(folder, "none", properties=[asked], profiles=["integers"])


def test_a_property_that_the_oracle_does_not_state_is_a_spec_error(tmp_path: Path) -> None:
    path = softmax_with(tmp_path, name="row-mean")
    with pytest.raises(SpecError) as caught:
        run(path, tmp_path)
    assert str(caught.value).endswith(
        "variants.fwd.properties[0].name: oracle softmax.fwd states no property row-mean "
        "(did you mean row-sum?)"
    )
    document = yaml.safe_load(path.read_text("utf-8"))
    document["variants"]["fwd"]["oracle"] = "mine.py:softmax"
    (tmp_path / "mine.py").write_text("def softmax(*given): return {}\n", encoding="utf-8")
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    with pytest.raises(SpecError, match=r"only embedding\.bwd, .* state any"):
        run(path, tmp_path)


def test_a_property_is_stated_of_one_output(tmp_path: Path) -> None:
    path = written(tmp_path, "none", properties=[{"name": "row-sum"}], profiles=["integers"])
    document = yaml.safe_load(path.read_text("utf-8"))
    variant = document["variants"]["fwd"]
    variant["outputs"]["z"] = copy.deepcopy(variant["outputs"]["y"])
    kernel = (KERNELS / "property_faults.hip").read_text("utf-8")
    (tmp_path / "with_z.hip").write_text(kernel.replace("output, int", "output, __half* z, int", 1))
    variant["source"] = "with_z.hip"
    variant["launches"][0]["args"].insert(2, "z")
    variant["properties"][0]["output"] = "z"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    with pytest.raises(SpecError, match=r"states row-sum of y, not of z \(write y\)"):
        run(path, tmp_path)


@pytest.mark.parametrize("op", ["softmax", "layernorm", "embedding", "gemm-bw"])
def test_shipped_specs_ask_for_what_their_oracles_state_and_say_what_is_not_finite(op: str) -> None:
    for name, variant in spec.load(spec.find(op)).spec.variants.items():
        is_name = isinstance(variant.given_oracle, str)
        stated = EVERYWHERE.get(variant.oracle, []) if is_name else []
        assert [asked.name for asked in variant.properties] == stated, name
        assert all(asked.why for asked in variant.properties)
        for buffer in (*variant.outputs.values(), *variant.inout.values()):
            assert buffer.non_finite
