"""Cases from public bug reports, each with real kernels on the cpu device from spec to verdict."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.runs import KERNELS, evidence_in, run, verdicts
from tests.spec_example import example, write_example
from tokitai_cli.cli import app
from tokitai_cli.core.model.evidence import CaseRecord, Evidence
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.run.specs import load_op

ORACLES = Path(__file__).parents[1] / "oracle_fixtures"
FLAT = [{"metric": "abs", "limit": 1e-2}]
BOUND = [{"metric": "bound"}]
EXACT = [{"metric": "exact"}]
VERIFIED, REFUTED, INCONCLUSIVE = Verdict.VERIFIED, Verdict.REFUTED, Verdict.INCONCLUSIVE

Entry = dict[str, Any]


def arrays(dtype: str, **shapes: Sequence[str]) -> Entry:
    return {name: {"dtype": dtype, "shape": list(shape)} for name, shape in shapes.items()}


def rows_of(dtype: str, kernel: str, oracle: str, checks: Sequence[Entry], per: str) -> Entry:
    """x [rows, columns] to y: of the same shape, or one element per row or column."""
    shapes = {"element": ["rows", "columns"], "row": ["rows"], "column": ["columns"]}
    count = "rows * columns" if per == "element" else f"{per}s"
    return {
        "oracle": oracle,
        "checks": list(checks),
        "inputs": arrays(dtype, x=["rows", "columns"]),
        "outputs": arrays(dtype, y=shapes[per]),
        "launches": [launch(kernel, count, "x", "y", "rows", "columns")],
    }


def vectors(dtype: str, kernel: str, oracle: str, checks: Sequence[Entry], *names: str) -> Entry:
    names = names or ("x",)
    return {
        "oracle": oracle,
        "checks": list(checks),
        "inputs": arrays(dtype, **{name: ["n"] for name in names}),
        "outputs": arrays(dtype, y=["n"]),
        "launches": [launch(kernel, "n", *names, "y", "n")],
    }


def launch(kernel: str, count: str, *args: str) -> Entry:
    return {"kernel": kernel, "grid": [f"ceil_div({count}, 64)"], "block": [64], "args": list(args)}


def product(kernel: str, **more: Any) -> Entry:
    return {
        "oracle": "gemm-bw.grad-a",
        "checks": BOUND,
        "inputs": arrays("float16", grad_c=["m", "n"], b=["k", "n"]),
        "outputs": arrays("float16", grad_a=["m", "k"]),
        "launches": [launch(kernel, "m * k", "grad_c", "b", "grad_a", "m", "n", "k")],
        **more,
    }


def gathered(kernel: str) -> Entry:
    rows = {
        "dtype": "int32",
        "shape": ["count"],
        "draw": {"kind": "index-uniform", "below": "rows"},
    }
    return {
        "oracle": "gather",
        "checks": [{"metric": "abs", "limit": 0}],
        "inputs": arrays("float32", table=["rows", "columns"]) | {"rows_read": rows},
        "outputs": arrays("float32", y=["count", "columns"]),
        "launches": [
            launch(kernel, "count * columns", "table", "rows_read", "y", "columns", "count")
        ],
    }


def variants() -> dict[str, Entry]:
    short = vectors("float32", "doubled", "doubled", BOUND)
    short["launches"][0]["grid"] = ["n // 64 - 1"]
    through_both = vectors("float32", "doubled_through<16000>", "doubled", BOUND)
    through_both["launches"][0]["shared"] = 4096
    return {
        "zeros-flat": rows_of("float32", "zeros", "softmax", FLAT, "element"),
        "zeros-relative": rows_of(
            "float32",
            "zeros",
            "softmax",
            [*FLAT, {"metric": "rel", "limit": 1e-2}],
            "element",
        ),
        "doubled": vectors("float32", "doubled", "doubled", BOUND),
        "shared-64000": vectors("float32", "doubled_through<16000>", "doubled", BOUND),
        "shared-64000-and-more": through_both,
        "shared-100000": vectors("float32", "doubled_through<25000>", "doubled", BOUND),
        "doubled-short": short,
        "next-ulp": vectors("float16", "next", "same", [{"metric": "ulp", "limit": 1}]),
        "next-abs": vectors("float16", "next", "same", [{"metric": "abs", "limit": 1e-8}]),
        "column-sum": rows_of("float16", "column_sum", "column_sum", BOUND, "column"),
        "column-sum-half": rows_of("float16", "column_sum_half", "column_sum", BOUND, "column"),
        "column-mean": rows_of("float16", "column_mean", "column_mean", BOUND, "column"),
        "product": product("product"),
        "product-flushed": product("product_flushed"),
        "product-allowed": product("product_flushed", flush_to_zero=True),
        "product-transposed": product("product_transposed"),
        "row-max": rows_of("float32", "row_max", "row_max", EXACT, "row"),
        "row-max-without-nan": rows_of("float32", "row_max_without_nan", "row_max", EXACT, "row"),
        "zero-value": vectors("float32", "unsigned_zero", "same", [{"metric": "abs", "limit": 0}]),
        "zero-exact": vectors("float32", "unsigned_zero", "same", EXACT),
        "some-rows": rows_of("float32", "some_rows_zero", "same", FLAT, "element"),
        "fused": vectors("float32", "fused", "multiply_add", BOUND, "a", "c"),
        "unfused": vectors("float32", "unfused", "multiply_add", BOUND, "a", "c"),
        "fused-exact": vectors("float32", "fused", "multiply_add", EXACT, "a", "c"),
        "unfused-exact": vectors("float32", "unfused", "multiply_add", EXACT, "a", "c"),
        "gather": gathered("gather"),
        "gather-short": gathered("gather_short"),
        "not-numbers": vectors("float32", "not_numbers", "same", FLAT),
    }


PROFILES = {
    "normal": {"draw": "normal"},
    "special": {"draw": "special"},
    "ones": {"draw": {"kind": "constant", "value": 1.0}},
    "tiny": {
        "draw": {"kind": "constant", "value": 2.0**-15},
        "inputs": {"b": {"kind": "constant"}},
    },
    "contraction": {
        "inputs": {
            "a": {"kind": "constant", "value": 1 + 2.0**-12},
            "c": {"kind": "constant", "value": -(1 + 2.0**-11)},
        },
        "draw": "normal",
    },
}
PARAMS = {
    "n": 128, "rows": 300, "columns": 128, "count": 40, "m": 16, "k": 16,
}  # fmt: skip


EMPTY = {"shape": {"rows": 0}, "expect": "empty", "variants": ["row-max"], "profiles": ["normal"]}
ROWS = [
    {"shape": {"rows": rows, "columns": 1}, "variants": ["row-max"], "profiles": ["normal"]}
    for rows in (64, 1)
]


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One spec for all variants, so that they share an artifact."""
    folder = tmp_path_factory.mktemp("field")
    chosen = variants()
    for one in chosen.values():
        one["source"] = os.path.relpath(KERNELS / "field_cases.hip", folder)
        if "." not in one["oracle"]:
            file = os.path.relpath(ORACLES / "field_cases.py", folder)
            one["oracle"] = f"{file}:{one['oracle']}"
        kinds = {"normal", "special", "ones"}
        kinds |= {"tiny"} if "b" in one["inputs"] else set()
        kinds |= {"contraction"} if "c" in one["inputs"] else set()
        one["profiles"] = sorted(kinds)
    tree = {
        "schema": "tokitai/spec/v1",
        "op": "field",
        "title": "cases from the field",
        "params": {name: {"default": value} for name, value in PARAMS.items()},
        "variants": chosen,
        "profiles": PROFILES,
        "suites": {"rows": [EMPTY, *ROWS]},
    }
    path = folder / "field.yaml"
    path.write_text(json.dumps(tree, indent=1), encoding="utf-8")
    return path


@pytest.fixture
def field(spec: Path, tmp_path: Path) -> Any:
    """Run variants at one shape: `field(names, profiles, n=64)`; cases by variant and profile."""

    def runs(
        names: Sequence[str], profiles: Sequence[str], **shape: Any
    ) -> tuple[Evidence, dict[tuple[str, str], CaseRecord]]:
        found = run(spec, tmp_path, shapes=shape, variant=list(names), profile=list(profiles))
        return found, {(case.variant, case.profile): case for case in found.cases}

    return runs


def test_case_1_an_output_of_zeros_is_never_verified(field: Any) -> None:
    names = ["zeros-flat", "zeros-relative"]
    _, cases = field(names, ["normal"], rows=4, columns=16384)
    flat, relative = (cases[name, "normal"] for name in names)
    assert flat.verdict is INCONCLUSIVE
    assert "zeros" in flat.reason
    assert "would pass an output of zeros" in flat.outputs[0].checks[0].note
    assert relative.verdict is REFUTED


def test_case_2_a_tail_that_a_right_kernel_wrote_before(field: Any) -> None:
    found, cases = field(["doubled", "doubled-short"], ["normal"], n=1536)
    assert verdicts(found) == ["verified", "refuted"]
    assert (
        "64 elements never written, first index [1472]" in cases["doubled-short", "normal"].reason
    )


def test_case_6_a_transposed_operand_hides_behind_equal_elements(field: Any) -> None:
    found, _ = field(["product-transposed"], ["ones"], m=128, n=128, k=128)
    assert found.verdict is INCONCLUSIVE
    found, _ = field(["product-transposed", "product"], ["normal"], m=64, n=96, k=32)
    assert verdicts(found) == ["refuted", "verified"]


def test_case_8_flushed_subnormals(field: Any) -> None:
    names = ["product", "product-flushed", "product-allowed"]
    found, cases = field(names, ["normal", "tiny"], m=64, n=64, k=64)
    assert cases["product", "tiny"].verdict is VERIFIED
    flushed = cases["product-flushed", "tiny"]
    assert flushed.verdict is REFUTED
    worst = flushed.outputs[0].checks[0].worst[0]
    assert (worst.got, worst.want) == (0.0, 64 * 2.0**-15)
    assert cases["product-allowed", "tiny"].verdict is not REFUTED
    (said,) = [one.source for one in found.non_claims if "flushing them to zero" in one.text]
    assert said == "variant product-allowed"


def test_case_10_special_values(field: Any) -> None:
    names = ["row-max", "row-max-without-nan"]
    _, cases = field(names, ["normal", "special"], rows=64, columns=3)
    assert [cases[names[0], profile].verdict for profile in ("normal", "special")] == [VERIFIED] * 2
    assert cases[names[1], "normal"].verdict is VERIFIED
    dropped = cases[names[1], "special"]
    assert dropped.verdict is REFUTED
    assert "a number where the reference is NaN" in dropped.reason
    _, cases = field(["zero-value", "zero-exact"], ["normal", "special"], n=4096)
    assert cases["zero-value", "special"].verdict is VERIFIED
    by_bits = cases["zero-exact", "special"]
    assert by_bits.verdict is REFUTED
    assert "bitwise: -0.0 and +0.0 differ" in by_bits.outputs[0].checks[0].note


def test_case_11_strides_are_refused_on_their_key(tmp_path: Path) -> None:
    text = example("spec.yaml").replace(
        "a: {dtype: float32, shape: [n]}", "a: {dtype: float32, shape: [n], strides: [2]}"
    )
    code, error = command(tmp_path, text)
    assert code == 2
    assert "variants.main.inputs.a.strides" in error


def test_case_13_no_aggregate_hides_rows(field: Any) -> None:
    found, cases = field(["some-rows"], ["normal"], rows=64, columns=32)
    assert found.verdict is REFUTED
    output = cases["some-rows", "normal"].outputs[0]
    assert output.metrics is not None
    assert output.metrics.worst_row in {7 * row for row in range(9)}
    assert output.checks[0].exceeding is not None
    assert 270 < output.checks[0].exceeding <= 9 * 32
    assert output.pattern is not None
    assert "(9 of 64)" in output.pattern.detail


def test_case_14_one_ulp_under_a_finer_limit(field: Any) -> None:
    _, cases = field(["next-ulp", "next-abs"], ["normal"], n=128)
    assert cases["next-ulp", "normal"].verdict is VERIFIED
    finer = cases["next-abs", "normal"]
    assert finer.verdict is REFUTED
    assert "finer than one float16 ulp" in finer.outputs[0].checks[0].note


def test_case_15_contraction(field: Any) -> None:
    names = ["fused", "unfused", "fused-exact", "unfused-exact"]
    found, cases = field(names, ["normal", "contraction"], n=128)
    # The bound takes both, and nothing of that constant output can be told within it.
    for name, verdict in zip(names, (Verdict.VACUOUS, Verdict.VACUOUS, VERIFIED), strict=False):
        assert cases[name, "contraction"].reads is verdict, cases[name, "contraction"].reason
    unfused = cases["unfused-exact", "contraction"]
    assert unfused.verdict is REFUTED
    worst = unfused.outputs[0].checks[0].worst[0]
    assert (worst.got, worst.want) == (0.0, 2.0**-24)
    (build,) = found.builds.values()
    assert any(word.startswith("-ffp-contract") for word in build.command)


def test_case_16_the_oracle_does_not_saturate(field: Any) -> None:
    names = ["column-sum", "column-sum-half"]
    _, cases = field(names, ["normal", "ones"], rows=3000, columns=8)
    assert cases["column-sum", "ones"].verdict is VERIFIED
    half = cases["column-sum-half", "ones"]
    assert half.verdict is REFUTED
    worst = half.outputs[0].checks[0].worst[0]
    assert (worst.got, worst.want) == (2048.0, 3000.0)
    _, cases = field(["column-sum", "column-mean"], ["normal", "ones"], rows=70_000, columns=8)
    # The bound of so long a sum leaves room for other outputs, so no more than this is claimed.
    for name in ("column-sum", "column-mean"):
        assert cases[name, "ones"].outputs[0].passed
        assert cases[name, "ones"].verdict in (VERIFIED, INCONCLUSIVE)


def test_case_20_an_index_that_overflows(field: Any) -> None:
    _, cases = field(["gather", "gather-short"], ["normal"])
    assert cases["gather", "normal"].verdict is VERIFIED
    assert cases["gather-short", "normal"].verdict in (REFUTED, Verdict.CRASHED)


def test_case_20_a_shape_that_does_not_fit_is_not_run(
    field: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tokitai_cli.run.child.available_bytes", lambda: 1 << 30)
    found, cases = field(["gather"], ["normal"], rows=262144, columns=8960, count=8)
    assert found.verdict is Verdict.NOT_RUN
    case = cases["gather", "normal"]
    assert case.shape["rows"] == 262144
    assert "needs about" in case.reason
    assert "1.0 GiB are free" in case.reason
    assert not case.inputs


def test_case_21_no_rows_and_then_some(spec: Path, tmp_path: Path) -> None:
    found = run(spec, tmp_path, suite="rows")
    nothing, some, one = found.cases
    assert nothing.shape["rows"] == 0
    assert not sum(check.elements for output in nothing.outputs for check in output.checks)
    assert some.verdict is VERIFIED
    # One element leaves too little to tell a wrong kernel by.
    assert one.verdict in (VERIFIED, INCONCLUSIVE)
    assert one.outputs[0].checks[0].elements == 1
    text = (tmp_path / "field.md").read_text(encoding="utf-8")
    assert "rows=0" in text


def test_case_27_a_kernel_that_says_it_passed(field: Any, tmp_path: Path) -> None:
    found, _ = field(["not-numbers"], ["normal"], n=64)
    assert found.verdict is REFUTED

    def refuse(token: str) -> None:
        raise AssertionError(token)

    text = (tmp_path / "field.json").read_text(encoding="utf-8")
    tree = json.loads(text, parse_constant=refuse)
    assert tree["verdict"] == "refuted"
    (log,) = tree["volatile"]["kernel_logs"].values()
    assert '{"status":"pass"}' in log
    assert "all good" in log
    report = (tmp_path / "field.md").read_text(encoding="utf-8")
    assert "\033" not in report
    (worst, *_) = tree["cases"][0]["outputs"][0]["structure"]
    assert worst["got"] in ("inf", "nan")


# --- 28: YAML ------------------------------------------------------------------------------------


def command(folder: Path, spec: str, *words: str) -> tuple[int, str]:
    """Exit code and stderr of `show` (or other words) on a spec with this text."""
    import contextlib
    import io

    path = write_example(folder, spec=spec)
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        code = app.run([*(words or ("show",)), str(path)])
    return code, said.getvalue()


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("default: 1000", "default: 010", "params.n.default"),
        ("default: 1000", "default: 08", "params.n.default"),
        ("default: 1000", "default: 1:30", "params.n.default"),
        ("default: 1000", "default: 1_000", "params.n.default"),
        ("default: 1000", "default: no", "params.n.default"),
        ("formula:", "on:", "on"),
        ("limit: 1}", "limit: 1, limit: 2}", "limit"),
        ("limit: 1}", "limt: 1}", "limt"),
        ("limit: 1}", "limit: no}", "limit"),
    ],
)
def test_case_28_surprises_of_yaml_are_errors_with_their_place(
    old: str, new: str, key: str, tmp_path: Path
) -> None:
    text = example("spec.yaml")
    assert old in text
    code, error = command(tmp_path, text.replace(old, new, 1))
    assert code == 2
    line = text.replace(old, new, 1)[: text.index(old)].count("\n") + 1
    assert f"spec.yaml:{line}:" in error
    assert key in error
    assert "Traceback" not in error


@pytest.mark.parametrize(("written", "meant"), [("1e-2", 0.01), ("1e5", 1e5), ("2.5e0", 2.5)])
def test_case_28_numbers_are_read_as_meant(written: str, meant: float, tmp_path: Path) -> None:
    text = example("spec.yaml").replace("limit: 1}", f"limit: {written}}}")
    loaded = load_op(str(write_example(tmp_path, spec=text)))
    limits = {check.metric: check.limit for check in loaded.spec.variants["main"].checks}
    assert limits["ulp"] == meant


# --- 23: the cache -------------------------------------------------------------------------------


@pytest.mark.slow
def test_case_23_every_change_builds_anew_and_damage_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKITAI_CACHE", str(tmp_path / "cache"))
    wrapper = tmp_path / "c++"
    version = tmp_path / "version"
    version.write_text("wrapped 1.0")
    wrapper.write_text(
        "#!/bin/sh\n"
        f'if [ "$1" = --version ]; then cat {version}; exec c++ --version; fi\n'
        'exec c++ "$@"\n'
    )
    wrapper.chmod(0o755)
    monkeypatch.setenv("CXX", str(wrapper))
    path = write_example(tmp_path / "mine")

    def cached() -> bool:
        found = run(path, tmp_path, shapes={"n": 64}, profile=["normal"])
        assert found.verdict is VERIFIED, found.reason
        (fresh,) = found.volatile.build_cached.values()
        return fresh

    assert not cached()
    assert cached()
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("    oracle:", "    flags: [-DX=1]\n    oracle:", 1))
    assert not cached()
    assert cached()
    version.write_text("wrapped 1.1")
    os.utime(wrapper)
    assert not cached()
    assert cached()
    artifacts = [
        file
        for file in (tmp_path / "cache").rglob("*")
        if file.is_file() and os.access(file, os.X_OK) and file.stat().st_size > 10_000
    ]
    for artifact in artifacts:
        artifact.chmod(0o755)
        artifact.write_bytes(artifact.read_bytes()[:5000])
    assert not cached()
    notes = evidence_in(tmp_path, "vector-add")["volatile"]["notes"]
    assert any("damaged" in note for note in notes)
    assert cached()


@pytest.mark.parametrize(
    ("variant", "words"),
    [("shared-100000", "100000 bytes of static and 0"),
     ("shared-64000-and-more", "64000 bytes of static and 4096")],
)  # fmt: skip
def test_static_and_dynamic_shared_memory_count_together(
    variant: str, words: str, spec: Path, tmp_path: Path
) -> None:
    evidence = run(spec, tmp_path, variant=[variant], profile=["normal"])
    assert evidence.verdict is Verdict.CRASHED
    assert f"{words} bytes of dynamic shared memory; the limit is 65536" in evidence.reason
    small = run(spec, tmp_path, variant=["shared-64000"], profile=["normal"])
    assert small.verdict is not Verdict.CRASHED
