"""Cases made by hand, for tests that need no spec file, no oracle and no kernel."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from tokitai_cli.core.dtypes import numpy_dtype
from tokitai_cli.core.fills import fills_of
from tokitai_cli.core.model.case import BufferPlan, Case, LaunchPlan, LoadedSpec, Role, RunResult
from tokitai_cli.core.model.evidence import CaseRecord
from tokitai_cli.core.model.expectation import Expectation, Replay
from tokitai_cli.core.model.spec import Buffer, Check, Draw, Launch, Param, Profile, Spec, Variant
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.core.numerics import round_to
from tokitai_cli.evidence import groups, mark_vacuous
from tokitai_cli.judge import Judgement, judge
from tokitai_cli.oracles.output_parts import ArrayParts

PROFILES = {
    "normal": Profile(draw="normal"),
    "constant": Profile(draw=Draw(kind="constant", value=1.0)),
    "uniform": Profile(draw=Draw(kind="uniform", lo=0.0, hi=1.0)),
    "biased": Profile(draw=Draw(kind="uniform", lo=10.0, hi=11.0)),
    "cancelling": Profile(draw="cancelling"),
    "special": Profile(draw="special"),
}


def slow(*values: Any) -> Any:
    """A row of a table that `make test-all` alone tries; others of its kind say the same."""
    return pytest.param(*values, marks=pytest.mark.slow)


def program(folder: Path, name: str, prints: str = "") -> Path:
    """A program that prints a text whatever it is asked."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{prints}\nEND\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def bare_path(folder: Path, monkeypatch: pytest.MonkeyPatch, unset: Sequence[str]) -> Path:
    """A PATH with nothing but cat and sh, and without the variables `unset`; returns its folder."""
    place = folder / "bin"
    place.mkdir()
    for name in ("cat", "sh"):
        found = shutil.which(name)
        assert found is not None
        (place / name).symlink_to(found)
    monkeypatch.setenv("PATH", str(place))
    for name in unset:
        monkeypatch.delenv(name, raising=False)
    return place


def changed_spec(folder: Path, spec: str, changes: Mapping[str, str], **files: str) -> Path:
    """A spec with other text in some places, each of which it has, beside files by their stems."""
    for old, new in changes.items():
        assert old in spec
        spec = spec.replace(old, new)
    for stem, text in files.items():
        suffix = "hip" if stem == "kernel" else "py"
        (folder / f"{stem}.{suffix}").write_text(text, encoding="utf-8")
    (folder / "spec.yaml").write_text(spec, encoding="utf-8")
    return folder / "spec.yaml"


def errors_of(parts: ArrayParts) -> tuple[NDArray[Any], NDArray[Any]]:
    """Errors of values below and above the reference, which there are."""
    errors = parts.errors()
    assert errors is not None
    return errors


def make_spec(
    checks: Sequence[Check] = (Check(metric="bound"),),
    *,
    outputs: Mapping[str, Buffer] | None = None,
    inout: Mapping[str, Buffer] | None = None,
    inputs: Mapping[str, Buffer] | None = None,
    **variant: Any,
) -> LoadedSpec:
    """Return a spec `op` with one variant `only` and the profiles PROFILES."""
    settings: dict[str, Any] = {
        "source": "op.hip",
        "given_oracle": "none",
        "launches": [Launch(kernel="op_kernel", grid=[1], block=[64], args=[])],
        "checks": list(checks),
        "inputs": inputs or {"x": Buffer(dtype="float32", shape=["n"])},
        "outputs": outputs or {},
        "inout": inout or {},
    }
    spec = Spec(
        schema="tokitai/spec/v1",
        op="op",
        title="an op",
        params={"n": Param(default=64)},
        variants={"only": Variant(**(settings | variant))},
        profiles=PROFILES,
    )
    return LoadedSpec(spec=spec, path=Path("op.yaml"), text="", digest="0" * 64)


def make_case(
    checks: Sequence[Check] = (Check(metric="bound"),),
    *,
    shape: tuple[int, ...] = (4, 8),
    dtype: str = "float16",
    outputs: Mapping[str, tuple[str, tuple[int, ...]]] | None = None,
    role: Role = Role.OUTPUT,
    init: str = "sentinel",
    profile: str = "normal",
    expect_empty: bool = False,
    constant: float | None = None,
    **variant: Any,
) -> Case:
    """Return a case with one output `y` of `shape` and `dtype`, or with `outputs`; one input x.

    `variant` takes further fields of the variant, such as deterministic or flush_to_zero.
    """
    sizes = outputs or {"y": (dtype, shape)}
    described = {
        name: Buffer(dtype=kind, shape=list(extents), init=init)  # type: ignore[arg-type]
        for name, (kind, extents) in sizes.items()
    }
    where = "inout" if role is Role.INOUT else "outputs"
    loaded = make_spec(checks, **{where: described}, **variant)
    buffers = [BufferPlan("x", Role.INPUT, "float32", (16, 4))]
    buffers += [
        BufferPlan(name, role, kind, extents, init, constant)
        for name, (kind, extents) in sizes.items()
    ]
    return Case(
        loaded=loaded,
        variant_name="only",
        shape={"n": 64},
        profile=profile,
        seed=1,
        buffers=tuple(buffers),
        launches=(LaunchPlan(0, "op_kernel", (1, 1, 1), (64, 1, 1), 0, ()),),
        expect_empty=expect_empty,
    )


def make_result(
    *repetitions: NDArray[Any] | Mapping[str, NDArray[Any]], **fields: Any
) -> RunResult:
    """Return a run whose repetitions gave these outputs (an array is output `y`); one is doubled."""
    given = repetitions * 2 if len(repetitions) == 1 else repetitions
    outputs = tuple(one if isinstance(one, Mapping) else {"y": one} for one in given)
    settings: dict[str, Any] = {"fills": fills_of(len(outputs)), "times_ns": (1,) * len(outputs)}
    return RunResult(outputs=outputs, **(settings | fields))


def judge_array(
    case: Case,
    expectation: Expectation,
    *repetitions: NDArray[Any],
    replay: Replay | None = None,
    **fields: Any,
) -> Judgement:
    """Judge the output `y` of `case`."""
    replays = {} if replay is None else {"y": replay}
    return judge(case, {"y": expectation}, replays, make_result(*repetitions, **fields))


def case_record(case: Case, judgement: Judgement, device: str = "cpu") -> CaseRecord:
    """Return the case as evidence holds it."""
    return CaseRecord(
        id=case.id,
        op=case.loaded.spec.op,
        variant=case.variant_name,
        shape=dict(case.shape),
        profile=case.profile,
        seed=case.seed,
        device=device,
        spec="",
        build="",
        verdict=judgement.verdict,
        stage=judgement.stage,
        reason=judgement.reason,
        inputs=[],
        launches=[],
        outputs=judgement.outputs,
        properties=[],
        mutants=judgement.mutants,
        repeats=judgement.repeats,
        findings=judgement.findings,
        replay_fraction=judgement.replay_fraction,
        known_bug="",
        rerun="",
        debug="",
        saved_arrays=[],
    )


def settled(*judged: tuple[Case, Judgement]) -> list[CaseRecord]:
    """Return the cases of one run after vacuity."""
    records = [case_record(case, judgement) for case, judgement in judged]
    return mark_vacuous(records, groups(records))


def mutant_status(judgement: Judgement) -> dict[str, str]:
    """Return what became of each mutant kind of a case with one output."""
    return {mutant.kind: mutant.status for mutant in judgement.mutants if not mutant.shown_only}


@dataclasses.dataclass(frozen=True)
class Gemm:
    """y = a b in f16 from f16 inputs, with what an oracle says and what a right kernel gives."""

    a: NDArray[np.float64]
    b: NDArray[np.float64]

    @property
    def expectation(self) -> Expectation:
        """Return reference, e = gamma_n sum |a| |b| (bounds.md) and the dropped terms."""
        terms = self.a.shape[1]
        unit = terms * 2.0**-24
        reference = self.a @ self.b
        heaviest = int(np.argmax(np.linalg.norm(self.a, axis=0) * np.linalg.norm(self.b, axis=1)))

        def without(term: int) -> NDArray[np.float64]:
            return np.asarray(reference - np.outer(self.a[:, term], self.b[term]))

        error = unit / (1 - unit) * (np.abs(self.a) @ np.abs(self.b))
        return Expectation(
            reference=reference,
            error=error,
            error_probable=0.25 * error,
            terms=terms,
            dropped={
                "last-term-dropped": lambda: without(terms - 1),
                "heaviest-term-dropped": lambda: without(heaviest),
            },
        )

    @property
    def right(self) -> NDArray[Any]:
        """Return the f32 sum in index order, rounded once to f16."""
        total = np.zeros((self.a.shape[0], self.b.shape[1]), dtype=np.float32)
        for term in range(self.a.shape[1]):
            column, row = self.a[:, term].astype(np.float32), self.b[term].astype(np.float32)
            total += np.outer(column, row)
        return total.astype(np.float16)


def make_gemm(rows: int = 16, terms: int = 24, columns: int = 16, *, seed: int = 1) -> Gemm:
    """Return a product of normal f16 matrices."""
    random = np.random.default_rng(seed)
    a = random.standard_normal((rows, terms)).astype(np.float16).astype(np.float64)
    b = random.standard_normal((terms, columns)).astype(np.float16).astype(np.float64)
    return Gemm(a, b)


def exact_expectation(values: ArrayLike, **fields: Any) -> Expectation:
    """Return an expectation of these values with e = 0 for floats."""
    reference = np.asarray(values)
    error = np.zeros(reference.shape) if reference.dtype.kind == "f" else None
    return Expectation(reference=reference, **({"error": error} | fields))


def rounded(values: ArrayLike, dtype: str = "float16") -> NDArray[Any]:
    """Return float values in a spec's dtype."""
    return round_to(np.asarray(values, dtype=np.float64), dtype)


def as_dtype(values: Sequence[Any], dtype: str) -> NDArray[Any]:
    """Return integers or bools in a spec's dtype."""
    return np.array(values, dtype=numpy_dtype(dtype))


def with_verdict(record: CaseRecord, verdict: Verdict) -> CaseRecord:
    """Return the case under another verdict."""
    return msgspec.structs.replace(record, verdict=verdict)
