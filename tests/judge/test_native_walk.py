"""The compiled loops: what numpy's code gives, to the bit, and an error where they do not."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from tests.judge.test_walk import SHAPE, drawn
from tests.support import judge_array, make_case
from tokitai_cli import judge, spec
from tokitai_cli.core import native, parallel, resources, rounding
from tokitai_cli.core.errors import BuildError
from tokitai_cli.core.model.device import Recipe
from tokitai_cli.core.model.expectation import Replay
from tokitai_cli.core.model.spec import Check
from tokitai_cli.core.numerics import round_to
from tokitai_cli.devices import cpu
from tokitai_cli.judge import element_walk, native_walk
from tokitai_cli.oracles import compiled_rules, sequential
from tokitai_cli.run import native_loops
from tokitai_cli.spec import inputs, plan

SOURCES = resources.kernels_dir() / "native"
CHECKS = (
    Check(metric="bound"),
    Check(metric="abs", limit=0.01),
    Check(metric="ulp", limit=8),
    Check(metric="bias", limit=0.4),
    Check(metric="exact", against="replay"),
)


def built(folder: Path = SOURCES) -> native.Library:
    found = native_loops.built(folder)
    return native.Library(found.path, found.sha256)


@pytest.fixture(scope="module")
def library() -> native.Library:
    return built()


@pytest.mark.parametrize("kind", ["right", "wrong", "special"])
def test_evidence_is_the_same_by_both_walks(kind: str, library: native.Library) -> None:
    expectation, first, second = drawn(kind)
    rng = np.random.default_rng(5)
    assert expectation.error is not None
    below = expectation.error * rng.random(SHAPE)
    expectation = msgspec.structs.replace(
        expectation, error_below=below, error_above=expectation.error, error_probable=below
    )
    case = make_case((*CHECKS, Check(metric="bound-prob")), shape=SHAPE)
    replay = Replay(round_to(expectation.reference, "float16"))
    found = []
    for used, threads in ((None, 1), (library, 1), (library, 3), (library, 16)):
        with native.by(used), parallel.sharing(threads):
            judged = judge_array(case, expectation, first, second, replay=replay)
            found.append(msgspec.json.encode(judged))
    assert found == found[:1] * 4


def test_the_library_is_what_numpy_is_on_drawn_and_special_values(library: native.Library) -> None:
    judge.check_native(library)
    compiled_rules.check_native(library)
    rounding.check_native(library)
    sequential.check_native(library)
    inputs.check_native(library)


@pytest.mark.parametrize("op", ["softmax", "gemm-bw"])
def test_inputs_are_the_same_by_both(op: str, library: native.Library) -> None:
    shape = {"softmax": {"rows": 300, "cols": 1001}, "gemm-bw": {"m": 304, "n": 304, "k": 208}}
    chosen = plan.Selection(shapes={name: (extent,) for name, extent in shape[op].items()})
    cases = [
        case
        for case in plan.plan(spec.load(spec.find(op)), chosen).cases
        if case.variant_name in ("fwd", "grad-a")
    ]
    assert len(cases) > 5
    for case in cases:
        found = []
        for used, threads in ((None, 1), (library, 1), (library, 3)):
            with native.by(used), parallel.sharing(threads):
                found.append({name: one.sha256 for name, one in inputs.draw(case).items()})
        assert found == found[:1] * 3, case


@pytest.fixture
def built_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Builds take a fifth of the time without vectors, and compute the same."""
    recipe = cpu.library_recipe

    def fast() -> Recipe:
        made = recipe()
        assert "-O3" in made.command
        command = tuple("-O1" if word == "-O3" else word for word in made.command)
        return msgspec.structs.replace(made, command=command)

    monkeypatch.setattr(cpu, "library_recipe", fast)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("right", "wrong", "named"),
    [
        ("BOUNDS_OWN = 0x1p-50", "BOUNDS_OWN = 0x1p-40", "rule of the bound"),
        ("const double v = a / b;", "const double v = a * (1 / b);", "rule of divide"),
        ("sq[i] = x * x;", "sq[i] = x * size;", "summary of"),
        ("q = a == 0 ? 0.0 : q;", "q = a == 0 ? 0.0 : q * (1 + 0x1p-52);", "metrics of"),
        ("897, 1151>", "898, 1151>", "rounding to bfloat16"),
        ("TAIL_SHIFT = 1.6,", "TAIL_SHIFT = 1.6000000001,", "normal numbers"),
    ],
)
def test_a_library_that_is_not_numpy_is_named(
    right: str, wrong: str, named: str, tmp_path: Path, built_fast: None
) -> None:
    with pytest.raises(native.MismatchError, match=named):
        built(changed(tmp_path, right, wrong))


@pytest.mark.slow
def test_a_library_that_is_not_numpy_is_not_kept(tmp_path: Path, built_fast: None) -> None:
    folder = changed(tmp_path, "897, 1151>", "898, 1151>")
    for _ in range(2):  # the second time it is built and checked again
        with pytest.raises(native.MismatchError, match="rounding to bfloat16"):
            built(folder)


def changed(folder: Path, right: str, wrong: str) -> Path:
    """The library's sources with one of them changed."""
    made = folder / "native"
    shutil.copytree(SOURCES, made)
    texts = {file: file.read_text() for file in made.iterdir()}
    assert any(right in text for text in texts.values())
    for file, text in texts.items():
        file.write_text(text.replace(right, wrong))
    return made


def test_a_sampled_chunk_that_differs_is_an_error(
    library: native.Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    expectation, first, second = drawn("right")
    measured = native_walk.measured

    def wrong(*args: Any, **more: Any) -> native_walk.Measures | None:
        found = measured(*args, **more)
        if found is None:
            return None
        return found._replace(metrics=found.metrics._replace(exact=found.metrics.exact + 1))

    monkeypatch.setattr(native_walk, "measured", wrong)
    with native.by(library), pytest.raises(native.MismatchError, match="metrics of repetition 0"):
        judge_array(make_case(CHECKS, shape=SHAPE), expectation, first, second)


def test_worst_elements_of_chunks_in_between_are_no_difference(
    library: native.Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is among the worst hangs on the chunks that other threads have finished by then."""
    expectation, first, second = drawn("right")
    by_numpy = element_walk._Look._by_numpy

    def later(look: Any, chunk: Any) -> Any:
        for repetition in look.repetitions:
            for tally in repetition.tallies:
                tally.floor = 1e300
        return by_numpy(look, chunk)

    monkeypatch.setattr(element_walk._Look, "_by_numpy", later)
    with native.by(library):
        judge_array(make_case(CHECKS, shape=SHAPE), expectation, first, second)


def test_a_library_is_built_and_checked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, built_fast: None
) -> None:
    checked: list[str] = []
    monkeypatch.setenv("TOKITAI_CACHE", str(tmp_path))
    monkeypatch.setattr(native_loops, "check", lambda path, digest: checked.append(digest))
    assert [native_loops.built(SOURCES).cached for _ in range(2)] == [False, True]
    (file,) = tmp_path.rglob("library.so")
    file.unlink()
    file.write_bytes(b"damaged")
    assert not native_loops.built(SOURCES).cached
    assert len(checked) == 2


def test_without_a_compiler_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "/nowhere/c++")
    with pytest.raises(BuildError, match="no C\\+\\+ compiler"):
        built()
