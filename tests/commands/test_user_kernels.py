"""Kernels of users: every dtype, argument, memory and launch that a spec can describe."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import venv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.runs import KERNELS, evidence_in, run, tokitai, verdicts
from tests.spec_example import write_example
from tokitai_cli.core.model.evidence import CaseRecord, Evidence
from tokitai_cli.core.model.verdict import Verdict

ROOT = Path(__file__).parents[2]
ORACLES = Path(__file__).parents[1] / "oracle_fixtures"
INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
FLOATS = {
    "float16": "__half",
    "bfloat16": "__hip_bfloat16",
    "float32": "float",
    "float64": "double",
}
EXACT = [{"metric": "exact"}]
BOUND = [{"metric": "bound"}]


def variant(kernel: str, oracle: str, checks: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """One launch over n elements in blocks of 64, unless `more` says otherwise."""
    found = {
        "source": os.path.relpath(KERNELS / "signatures.hip", ROOT),
        "oracle": f"signatures.py:{oracle}",
        "checks": checks,
        **more,
    }
    if "launches" not in found:
        args = found.pop("args")
        grid = found.pop("grid", ["ceil_div(n, 64)"])
        found["launches"] = [{"kernel": kernel, "grid": grid, "block": [64], "args": args}]
    return found


def arrays(dtype: str, *names: str, shape: str | int = "n") -> dict[str, Any]:
    return {name: {"dtype": dtype, "shape": [shape]} for name in names}


Variants = dict[str, dict[str, Any]]
INT32, SINGLE = arrays("int32", "x"), arrays("float32", "x")
SYMBOLS = arrays("float32", "coefficients", shape=4) | arrays("int32", "offsets", shape=4)


def _of_every_type() -> Variants:
    found: Variants = {}
    for dtype, name in FLOATS.items():
        found[f"product-{dtype}"] = variant(
            f"product<{name}>",
            "product_float64" if dtype == "float64" else "product",
            BOUND + ([{"metric": "exact"}] if dtype == "float64" else []),
            inputs=arrays(dtype, "x"),
            outputs=arrays(dtype, "y"),
            scalars={"a": {"dtype": dtype, "value": 0.3}},
            args=["x", "y", "a", "n"],
        )
    for dtype in INTEGERS:
        top = np.iinfo(dtype).max
        found[f"shifted-{dtype}"] = variant(
            f"shifted<{dtype}_t>",
            "shifted",
            EXACT,
            inputs=arrays(dtype, "x"),
            outputs=arrays(dtype, "y"),
            scalars={"a": {"dtype": dtype, "value": int(top) - 2}},
            args=["x", "y", "a", "n"],
        )
    return found


def _of_every_kind() -> Variants:
    found: Variants = {}
    found["inverted"] = variant(
        "inverted",
        "inverted",
        EXACT,
        inputs=arrays("bool", "x"),
        outputs=arrays("bool", "y"),
        scalars={"invert": {"dtype": "bool", "value": True}},
        args=["x", "y", "invert", "n"],
    )
    found["accumulate"] = variant(
        "accumulate",
        "accumulate",
        BOUND,
        inputs=SINGLE,
        inout=arrays("float32", "total"),
        args=["x", "total", "n"],
    )
    return found


def _of_several_blocks() -> Variants:
    found: Variants = {}
    found["total"] = variant(
        "",
        "total",
        EXACT,
        inputs=INT32,
        outputs=arrays("int32", "total", shape=1),
        workspaces={
            "partial": {
                "dtype": "int32",
                "shape": ["ceil_div(n, 64)"],
                "scratch": "the sum of each block",
            }
        },
        launches=[
            {
                "kernel": "block_sums",
                "grid": ["ceil_div(n, 64)"],
                "block": [64],
                "args": ["x", "partial", "n"],
            },
            {
                "kernel": "last_sum",
                "grid": [1],
                "block": [1],
                "args": ["partial", "total", "ceil_div(n, 64)"],
            },
        ],
    )
    found["reversed"] = variant(
        "",
        "reversed_blocks",
        EXACT,
        requires=["n % 64 == 0"],
        inputs=arrays("int16", "x"),
        outputs=arrays("int16", "y"),
        launches=[
            {"kernel": "reversed", "grid": ["n // 64"], "block": [64], "shared": "2 * 64",
             "args": ["x", "y"]}
        ],
    )  # fmt: skip
    return found


def _of_settings_and_symbols() -> Variants:
    found: Variants = {}
    for name, times in {"once": 1, "thrice": 3}.items():
        found[name] = variant(
            "multiplied",
            name,
            EXACT,
            defines={"TIMES": times},
            inputs=INT32,
            outputs=arrays("int32", "y"),
            args=["x", "y", "n"],
        )
    found["scale"] = variant(
        "scale<float, 4>",
        "scale",
        BOUND,
        inputs=SINGLE,
        outputs=arrays("float32", "y"),
        scalars={"a": {"dtype": "float32", "value": 1.7}},
        grid=["ceil_div(n, 256)"],
        args=["x", "y", "a", "n"],
    )
    found["looked-up"] = variant(
        "looked_up",
        "looked_up",
        BOUND,
        outputs=arrays("float32", "y"),
        symbols=SYMBOLS,
        args=["y", "n"],
    )
    found["kept"] = variant(
        "kept_in_symbols",
        "kept_in_symbols",
        [{"metric": "bound", "output": "y"}, {"metric": "exact", "output": "remainders"},
         {"metric": "exact", "output": "counted"}],
        outputs=arrays("float32", "y")
        | {"remainders": {"dtype": "int32", "shape": [4], "symbol": "kept::remainders"}},
        inout={"counted": {"dtype": "uint64", "shape": [1], "symbol": "counted"}},
        symbols=SYMBOLS,
        args=["y", "n"],
    )  # fmt: skip
    return found


def _of_three() -> Variants:
    found: Variants = {}
    for name, kernel, oracle in (
        ("three", "sum_of_three", "sum_of_three"),
        ("three-narrow", "sum_of_three_narrow", "sum_of_three"),
        ("three-plain", "sum_of_three", "sum_of_three_plain"),
        ("three-unnormalized", "sum_of_three", "sum_of_three_unnormalized"),
    ):
        found[name] = variant(
            kernel,
            oracle,
            [{"metric": "ulp", "limit": 4}] if oracle.endswith("plain") else BOUND,
            inputs=arrays("float64", "a", "b", "c"),
            outputs=arrays("float64", "y"),
            args=["a", "b", "c", "y", "n"],
        )
    return found


def variants() -> Variants:
    """Variants by name, in the order of the spec."""
    return {
        **_of_every_type(),
        **_of_every_kind(),
        **_of_several_blocks(),
        **_of_settings_and_symbols(),
        **_of_three(),
    }


GOOD = [name for name in variants() if not name.startswith("three-")]


def write_spec(folder: Path) -> Path:
    spec = {
        "schema": "tokitai/spec/v1",
        "op": "signatures",
        "title": "every kind of signature",
        "params": {"n": {"default": 200}},
        "variants": variants(),
        "profiles": {"normal": {"draw": "normal"}, "uniform": {"draw": "uniform"}},
    }
    for one in spec["variants"].values():  # type: ignore[attr-defined]
        one["source"] = os.path.relpath(KERNELS / "signatures.hip", folder)
        one["oracle"] = os.path.relpath(ORACLES, folder) + "/" + one["oracle"]
    path = folder / "signatures.yaml"
    # JSON is YAML, without the anchors that a dump would use for what is shared.
    path.write_text(json.dumps(spec, indent=1), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    folder = tmp_path_factory.mktemp("signatures")
    return run(write_spec(folder), folder, shapes={"n": 192}, profile=["normal"])


def case_of(evidence: Evidence, name: str) -> CaseRecord:
    (found,) = [case for case in evidence.cases if case.variant == name]
    return found


@pytest.mark.parametrize("name", GOOD)
def test_a_right_kernel_of_every_signature_is_verified(name: str, evidence: Evidence) -> None:
    case = case_of(evidence, name)
    assert case.verdict is Verdict.VERIFIED, case.reason
    elements = sum(check.elements for output in case.outputs for check in output.checks)
    assert elements >= (1 if name == "total" else case.shape["n"])


def test_variants_of_one_source_share_an_artifact_but_for_defines(evidence: Evidence) -> None:
    builds = {case.variant: case.build for case in evidence.cases}
    assert len({builds["once"], builds["thrice"], builds["scale"]}) == 3
    others = {builds[name] for name in GOOD if name not in ("once", "thrice", "looked-up", "kept")}
    assert others == {builds["scale"]}


def test_a_float64_output_is_judged_beyond_float64(evidence: Evidence) -> None:
    case = case_of(evidence, "product-float64")
    bound = next(one for one in case.outputs[0].checks if one.metric == "bound")
    # A rounded product is off by less than half an ulp, and exactly by what the oracle says.
    assert bound.value == 1.0
    assert case_of(evidence, "three-narrow").verdict is Verdict.REFUTED


def test_a_float64_output_without_a_better_reference_is_inconclusive(evidence: Evidence) -> None:
    for name, words in (
        ("three-plain", "neither `error` nor `low`"),
        ("three-unnormalized", "above half an ulp"),
    ):
        case = case_of(evidence, name)
        assert case.verdict is Verdict.INCONCLUSIVE
        assert words in case.reason


def test_an_integer_argument_that_does_not_fit_is_no_verdict_on_the_kernel(tmp_path: Path) -> None:
    path = write_spec(tmp_path)
    spec = json.loads(path.read_text(encoding="utf-8"))
    spec["variants"]["total"]["launches"][1]["args"][2] = "n * 4294967296"
    path.write_text(json.dumps(spec), encoding="utf-8")
    found = run(path, tmp_path, shapes={"n": 64}, variant=["total"], profile=["normal"])
    assert found.verdict is not Verdict.VERIFIED
    assert found.verdict is not Verdict.REFUTED
    assert "274877906944" in found.reason


# --- the example of docs/spec.md -------------------------------------------------------------------


def test_the_example_of_the_documentation_is_verified_from_another_folder(tmp_path: Path) -> None:
    path = write_example(tmp_path / "mine")
    found = run(path, tmp_path, shapes={"n": [1, 100, 257]})
    assert found.verdict is Verdict.VERIFIED, found.reason
    assert verdicts(found) == ["verified"] * 9


def test_template_arguments_of_any_kind_and_paths_from_the_specs_folder(tmp_path: Path) -> None:
    path = write_example(tmp_path / "mine")
    (path.parent / "own").mkdir()
    (path.parent / "own" / "sign.h").write_text("template <int s, class P> constexpr P of = s;\n")
    kernel = path.with_name("vector_add.hip")
    text = kernel.read_text().replace("c[i] = a[i] + ", "c[i] = a[i] - of<s, float> * ")
    text = text.replace("(const float* a", "(P a")
    header = '#include "sign.h"\ntemplate <int s, class P>\n__global__'
    kernel.write_text(text.replace("__global__", header))
    text = path.read_text().replace("kernel: vector_add", 'kernel: "vector_add<-1, const float*>"')
    path.write_text(text.replace("    oracle:", "    flags: [-Iown]\n    oracle:"))
    found = run(path, tmp_path / "out", shapes={"n": 100}, profile=["normal"])
    assert found.verdict is Verdict.VERIFIED, found.reason


def test_folders_and_headers_that_a_spec_includes(tmp_path: Path) -> None:
    path = write_example(tmp_path / "mine" / "op")
    common = tmp_path / "mine" / "common"
    common.mkdir()
    (common / "signs.h").write_text('#include "plus.h"\n')
    (common / "plus.h").write_text("#define PLUS +\n")
    (path.parent / "first.h").write_text("#define LAST (n - 0)\n")
    kernel = path.with_name("vector_add.hip")
    text = kernel.read_text().replace("a[i] + b[i]", "a[i] PLUS b[i]").replace("i < n", "i < LAST")
    kernel.write_text("#include <signs.h>\n" + text)
    spec = path.read_text()
    path.write_text(spec.replace("    oracle:", "    include: [../common, first.h]\n    oracle:"))

    def verdict() -> tuple[Verdict, set[str]]:
        found = run(path, tmp_path / "out", shapes={"n": 100}, profile=["normal"])
        (record,) = found.builds.values()
        return found.verdict, {Path(name).name for name in record.header_texts}

    assert verdict() == (Verdict.VERIFIED, {"signs.h", "plus.h", "first.h"})
    (common / "plus.h").write_text("#define PLUS -\n")
    assert verdict()[0] is Verdict.REFUTED
    (common / "plus.h").write_text("#define PLUS +\n")
    (path.parent / "first.h").write_text("#define LAST (n - 1)\n")
    assert verdict()[0] is Verdict.REFUTED
    (path.parent / "first.h").unlink()
    found = run(path, tmp_path / "out", shapes={"n": 100}, profile=["normal"])
    assert found.verdict is Verdict.BUILD_FAILED
    assert "a file or folder under `include` does not exist: first.h" in found.reason


def test_a_wrong_example_is_refuted(tmp_path: Path) -> None:
    path = write_example(tmp_path)
    kernel = tmp_path / "vector_add.hip"
    kernel.write_text(kernel.read_text().replace("i < n", "i < n - 1"), encoding="utf-8")
    found = run(path, tmp_path, shapes={"n": 257}, profile=["normal"])
    assert found.verdict is Verdict.REFUTED
    assert "1 element never written, first index [256]" in found.reason


@pytest.mark.slow
def test_the_example_runs_with_the_installed_wheel(tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input"]
    subprocess.run(
        [*pip, "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", wheels, ROOT], check=True
    )
    (wheel,) = wheels.glob("tokitai-*.whl")
    venv.create(tmp_path / "venv", with_pip=False)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([*pip, "--python", python, "install", "-q", "--no-deps", wheel], check=True)
    write_example(tmp_path / "mine")
    # The packages that tokitai needs come from here; tokitai itself from the wheel alone.
    libraries = Path(np.__file__).parent.parent
    done = subprocess.run(
        [python.with_name("tokitai"), "verify", "./spec.yaml", "--n", "100", "--device", "cpu"],
        cwd=tmp_path / "mine",
        env={**os.environ, "PYTHONPATH": str(libraries)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = evidence_in(tmp_path / "mine" / "reports", "vector-add")
    assert found["verdict"] == "verified"
    assert found["tool"]["commit"] == ""


@pytest.mark.slow
def test_the_source_distribution_holds_no_tests(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (archive,) = tmp_path.glob("tokitai-*.tar.gz")
    with tarfile.open(archive) as file:
        tops = {Path(name).parts[1] for name in file.getnames()}
    assert {"tokitai_cli", "kernels", "formulas", "specs", "README.md"} <= tops
    assert not tops & {"tests", "docs", "bench"}


def test_help_names_the_params_of_a_users_spec(tmp_path: Path) -> None:
    done = tokitai("verify", write_example(tmp_path), "--help")
    assert done.returncode == 0
    assert "--n N[,N...]" in done.stdout
    assert "elements of each vector [default 1000; at least 1]" in " ".join(done.stdout.split())
