"""A case has one verdict, whichever verb runs it and in whatever company."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.devices.gpu.stand_in_device import StandIn
from tests.devices.gpu.test_sanitize import CLEAN, PROGRAM, TOOLS
from tests.pytest_plugin import test_plugin as plugin
from tests.runs import KERNELS
from tokitai_cli import batch, verify
from tokitai_cli.core.model.events import CaseStarted
from tokitai_cli.core.model.evidence import CaseRecord
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.devices import registry
from tokitai_cli.evidence import read
from tokitai_cli.run.loop import verify as verify_options
from tokitai_cli.run.run_options import run_options
from tokitai_cli.run.sanitizing import sanitize

SOURCE = """
#include <hip/hip_runtime.h>
#define I const int i = blockIdx.x * blockDim.x + threadIdx.x
__global__ void right(const float* x, float* y, int n) { I; if (i < n) y[i] = x[i]; }
__global__ void wrong(const float* x, float* y, int n) { I; if (i < n) y[i] = x[i] + (i == 7); }
__global__ void null(const float* x, float* y, int n) { if (x[0] != y[0]) *(volatile int*)8 = n; }
"""
ORACLE = """
def copy(params, inputs, scalars):
    return {"y": inputs["x"].astype("float64")}
def fails(params, inputs, scalars):
    raise ValueError("no reference")
"""
EXACT = [{"metric": "exact"}]
# Kernel and what else makes the case come to its verdict; `outside` accepts a wrong output that no
# other profile has, so that `normal`, whose own checks reject all of its own, cannot stand alone.
VARIANTS: dict[str, tuple[str, dict[str, Any], Verdict]] = {
    "right": ("right", {}, Verdict.VERIFIED),
    "wrong": ("wrong", {}, Verdict.REFUTED),
    "null": ("null", {}, Verdict.CRASHED),
    "broken": ("right", {"source": "broken.hip"}, Verdict.BUILD_FAILED),
    "loose": ("right", {"checks": [{"metric": "abs", "limit": 1e9}]}, Verdict.INCONCLUSIVE),
    "unjudged": ("right", {"oracle": "ways.py:fails"}, Verdict.INCONCLUSIVE),
    "bug": ("wrong", {}, Verdict.EXPECTED_FAILURE),
    "no-bug": ("right", {}, Verdict.UNEXPECTED_PASS),
}
Found = dict[tuple[str, str], tuple[str, str, str]]


def specs_in(folder: Path) -> list[Path]:
    """Specs with a case for each verdict, and one whose group settles what its cases do not."""
    folder.mkdir(parents=True)
    (folder / "ways.hip").write_text(SOURCE, encoding="utf-8")
    (folder / "broken.hip").write_text("no C++", encoding="utf-8")
    (folder / "ways.py").write_text(ORACLE, encoding="utf-8")
    variants = {
        name: {
            "source": "ways.hip",
            "inputs": {"x": {"dtype": "float32", "shape": ["n"]}},
            "outputs": {"y": {"dtype": "float32", "shape": ["n"]}},
            "launches": [
                {"kernel": kernel, "grid": ["ceil_div(n, 64)"], "block": [64],
                 "args": ["x", "y", "n"]}
            ],
            "oracle": "ways.py:copy",
            "checks": EXACT,
            **more,
        }
        for name, (kernel, more, _) in VARIANTS.items()
    }  # fmt: skip
    bugs = [{"reason": "known", "variant": name} for name in ("bug", "no-bug")]
    ways = spec("ways", {"n": 64}, variants, {"normal": {"draw": "normal"}}, known_bugs=bugs)
    lookup = {
        "source": str(KERNELS.parent.parent / "kernels" / "embedding.hip"),
        "inputs": {
            "indices": {"dtype": "int32", "shape": ["n"], "draw": index("uniform")},
            "weight": {"dtype": "float16", "shape": ["vocab", "n"]},
        },
        "inout": {"output": {"dtype": "float16", "shape": ["n", "n"]}},
        "launches": [
            {"kernel": "embedding_lookup_fwd_fp16_kernel", "grid": ["n", 1], "block": [256],
             "args": ["indices", "weight", "output", "n", "vocab"]}
        ],
        "oracle": "embedding.fwd",
        "checks": [
            {"metric": "exact", "profiles": ["normal"]},
            {"metric": "abs", "limit": 1000, "profiles": ["outside"]},
        ],
    }  # fmt: skip
    profiles = {
        "normal": {"draw": "normal"},
        "outside": {"draw": "normal", "inputs": {"indices": index("out-of-range")}},
    }
    together = spec("together", {"n": 48, "vocab": 48}, {"lookup": lookup}, profiles)
    paths = []
    for document in (ways, together):
        paths.append(folder / f"{document['op']}.yaml")
        paths[-1].write_text(json.dumps(document), encoding="utf-8")
    return paths


def index(kind: str) -> dict[str, Any]:
    return {"kind": f"index-{kind}", "below": "vocab"}


def spec(
    op: str, params: dict[str, int], variants: Any, profiles: Any, **more: Any
) -> dict[str, Any]:
    return {
        "schema": "tokitai/spec/v1",
        "op": op,
        "title": op,
        "params": {name: {"default": value} for name, value in params.items()},
        "variants": variants,
        "profiles": profiles,
        **more,
    }


def found(cases: list[CaseRecord]) -> Found:
    return {(one.op, one.id): (one.verdict, one.stage, one.reason) for one in cases}


@pytest.fixture(scope="module")
def specs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return specs_in(tmp_path_factory.mktemp("ways") / "project" / "specs")


@pytest.fixture(scope="module")
def verified(specs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Found:
    out = tmp_path_factory.mktemp("verified")
    runs = [verify(str(path), device="cpu", out=out).evidence for path in specs]
    return {key: what for evidence in runs for key, what in found(evidence.cases).items()}


def test_verify_gives_each_verdict(verified: Found) -> None:
    given = {id.split("/")[1]: verdict for (op, id), (verdict, _, _) in verified.items()}
    assert given == {
        **{name: verdict for name, (_, _, verdict) in VARIANTS.items()},
        "lookup": Verdict.INCONCLUSIVE,
    }
    assert sum(op == "together" for op, _ in verified) == 2


def test_batch_gives_the_same(specs: list[Path], verified: Found, tmp_path: Path) -> None:
    options = batch.batch_options(
        [str(specs[0].parent)], device="cpu", out=str(tmp_path / "out"), jobs=1
    )
    outcome = batch.run(options, batch.collect(options), lambda event: None)
    files = [
        options.out / name
        for one in outcome.index.specs
        for name in one.evidence
        if name.endswith(".json")
    ]
    assert {k: w for path in files for k, w in found(read(path).cases).items()} == verified


@pytest.mark.parametrize("words", [[], ["-k", "lookup and normal"]], ids=["whole", "alone"])
def test_pytest_gives_the_same(
    words: list[str], specs: list[Path], verified: Found, tmp_path: Path
) -> None:
    junit = tmp_path / "junit.xml"
    plugin.run(
        specs[0].parent.parent, "--tokitai-specs", "specs", "--junit-xml", str(junit), *words
    )
    given = {
        case.attrib["name"].removesuffix("@cpu"): one.attrib["value"]
        for case in ET.parse(junit).iter("testcase")
        for one in case.iter("property")
        if one.attrib["name"] == "verdict"
    }
    wanted = {id: verdict for (_, id), (verdict, _, _) in verified.items()}
    assert given == (wanted if not words else {id: wanted[id] for id in given})
    assert given


@pytest.mark.slow
def test_sanitize_gives_the_same_where_it_finds_nothing(
    specs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for tool in TOOLS:
        (tmp_path / tool).write_text(CLEAN)
    program = tmp_path / "bin" / "compute-sanitizer"
    program.parent.mkdir()
    program.write_text(PROGRAM.replace("{reports}", str(tmp_path)))
    program.chmod(0o755)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    monkeypatch.setitem(registry._DEVICES, "cuda", StandIn(name="cuda"))
    for path in specs:
        options = run_options(str(path), device="cuda", out=tmp_path / "plain")
        plain = verify(options.loaded, device="cuda", out=tmp_path / "plain").evidence
        watched = msgspec.structs.replace(options, out=tmp_path / "watched", verb="sanitize")
        assert found(sanitize(watched).evidence.cases) == found(plain.cases)


@pytest.mark.parametrize("what", ["ways.py", "ways.hip"])
def test_what_is_changed_under_a_run_gives_no_verdict(what: str, tmp_path: Path) -> None:
    """As in a batch: the evidence names what the run began with."""
    path, _ = specs_in(tmp_path / "specs")
    changed = path.parent / what
    before = changed.read_bytes()

    def change(event: object) -> None:
        if isinstance(event, CaseStarted) and event.position == (2 if what == "ways.py" else 1):
            changed.write_bytes(before + b"\n")

    options = run_options(str(path), device="cpu", out=tmp_path, variant=["right", "no-bug"])
    evidence = verify_options(options, change).evidence
    told = [case.reason for case in evidence.cases if case.verdict is Verdict.NOT_RUN]
    assert told == [
        f"ways.yaml: {one} was changed while it was verified (run it again)"
        for one in (["ways.py:copy"] if what == "ways.py" else ["ways.hip"] * 2)
    ]
