"""Which wrong outputs each shipped check rejects, on each profile: reports/generated/vacuity.md."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest

from tests.runs import KERNELS, run
from tests.support import make_result, slow
from tokitai_cli import judge, spec
from tokitai_cli.core.dtypes import numpy_dtype
from tokitai_cli.core.model.case import Case, Role
from tokitai_cli.core.model.judged import MutantRecord
from tokitai_cli.core.model.spec import Check
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.core.model.wording import shape_text
from tokitai_cli.core.numerics import round_to
from tokitai_cli.oracles import references
from tokitai_cli.spec import inputs, plan

PAGE = Path(__file__).parents[2] / "reports" / "generated" / "vacuity.md"
MARK = "<!-- generated from here on"
TOGETHER = "together"
# Those that are named by a word have limits beside bounds; each run counts the changes of formulas.
VARIANTS = [
    (op, name)
    for op, path in spec.builtin()
    for name, variant in spec.load(path).spec.variants.items()
    if isinstance(variant.given_oracle, str)
]
LONG = {("layernorm", "fwd"), ("layernorm", "bwd"), ("softmax", "grad")}
ROWS = [slow(*one) if one in LONG else one for one in VARIANTS]


class Row(msgspec.Struct, frozen=True):
    """What became of the mutants of one output under one check, on one profile."""

    output: str
    check: str
    profile: str
    mutants: tuple[MutantRecord, ...]


@functools.cache
def cases_of(op: str, variant: str) -> tuple[Case, ...]:
    """A case for each profile of the variant, at the default shape."""
    loaded = spec.load(spec.find(op))
    return plan.plan(loaded, plan.Selection(variants=(variant,))).cases


def with_checks(case: Case, checks: list[Check]) -> Case:
    """The case as if its variant had these checks only."""
    document = case.loaded.spec
    changed = msgspec.structs.replace(case.variant, checks=checks)
    document = msgspec.structs.replace(
        document, variants={**document.variants, case.variant_name: changed}
    )
    loaded = msgspec.structs.replace(case.loaded, spec=document)
    return msgspec.structs.replace(case, loaded=loaded)


@functools.cache
def rows_of(op: str, variant: str) -> tuple[Row, ...]:
    """Each check by itself, then all together, on each profile. The output is the rounded reference."""
    found: list[Row] = []
    for case in cases_of(op, variant):
        arrays = {name: drawn.array for name, drawn in inputs.draw(case).items()}
        expectations = references.expect(case, arrays, timeout=60)
        replays = references.replay(case, arrays)
        right = {}
        for buffer in case.buffers_of(Role.OUTPUT, Role.INOUT):
            reference = expectations[buffer.name].reference
            floats = numpy_dtype(buffer.dtype).kind not in "iub"
            with np.errstate(over="ignore"):
                right[buffer.name] = (
                    round_to(reference, buffer.dtype) if floats else reference
                ).reshape(buffer.shape)
        for name, checks in choices(case):
            judgement = judge.judge(
                with_checks(case, checks), expectations, replays, make_result(right)
            )
            for output in judgement.outputs:
                if not any(check.judges for check in output.checks):
                    continue
                made = (one for one in judgement.mutants if not one.shown_only)
                mutants = tuple(one for one in made if one.output == output.name)
                found.append(Row(output.name, name, case.profile, mutants))
    return tuple(sorted(found, key=lambda row: row.output))


def choices(case: Case) -> Iterator[tuple[str, list[Check]]]:
    """Each of the variant's checks, and all of them."""
    checks = case.variant.checks
    for check in checks:
        limit = f" {check.limit:g}" if check.metric in ("abs", "rel", "ulp", "bias") else ""
        replay = " against the replay" if check.against == "replay" else ""
        yield f"{check.metric}{limit}{replay}", [check]
    yield TOGETHER, list(checks)


def cell(mutant: MutantRecord | None) -> str:
    if mutant is None or mutant.status == "not-applicable":
        return ""
    if mutant.status == "rejected":
        return "NaN" if "rejected by non-finite" in mutant.detail else "yes"
    return "**no**" if mutant.status == "accepted" else "-"


def section(op: str, variant: str) -> str:
    """The tables of a variant, one an output."""
    case = cases_of(op, variant)[0]
    lines = []
    for output in dict.fromkeys(row.output for row in rows_of(op, variant)):
        rows = [row for row in rows_of(op, variant) if row.output == output]
        kinds = list(dict.fromkeys(one.kind for row in rows for one in row.mutants))
        shape = shape_text(case.shape)
        lines += [f"## {op}, {variant}: {output} at {shape}", ""]
        lines += ["| profile | check | " + " | ".join(kinds) + " |"]
        lines += ["|---|---|" + ":-:|" * len(kinds)]
        for row in rows:
            by_kind = {one.kind: one for one in row.mutants}
            cells = " | ".join(cell(by_kind.get(kind)) for kind in kinds)
            lines.append(f"| {row.profile} | {row.check} | {cells} |")
        lines.append("")
    return "\n".join(lines)


@pytest.mark.parametrize(("op", "variant"), ROWS)
def test_the_page_says_what_each_check_rejects(op: str, variant: str) -> None:
    """Set TOKITAI_UPDATE_GOLDEN=1 to write the page anew, and read the difference."""
    page = PAGE.read_text(encoding="utf-8")
    if os.environ.get("TOKITAI_UPDATE_GOLDEN") == "1" and (op, variant) == VARIANTS[0]:
        head = page[: page.index("\n", page.index(MARK)) + 1]
        page = "\n".join([head, *(section(*one) for one in VARIANTS)])
        PAGE.write_text(page.rstrip("\n") + "\n", encoding="utf-8")
    assert section(op, variant).rstrip("\n") in page


@pytest.mark.parametrize(("op", "variant"), ROWS)
def test_together_the_checks_reject_every_kind_on_some_profile(op: str, variant: str) -> None:
    whole = [row for row in rows_of(op, variant) if row.check == TOGETHER]
    for output in {row.output for row in whole}:
        seen: dict[str, set[str]] = {}
        for row in whole:
            for one in row.mutants if row.output == output else ():
                seen.setdefault(one.kind, set()).add(one.status)
        open_kinds = {
            kind
            for kind, statuses in seen.items()
            if "rejected" not in statuses and statuses != {"not-applicable"}
        }
        assert not open_kinds, (output, seen)


@pytest.mark.parametrize(("op", "variant"), ROWS)
def test_every_check_that_judges_rejects_something(op: str, variant: str) -> None:
    for name in {row.check for row in rows_of(op, variant)}:
        rows = [row for row in rows_of(op, variant) if row.check == name]
        assert any(cell(one) == "yes" for row in rows for one in row.mutants), name


def test_the_page_has_no_other_variants() -> None:
    page = PAGE.read_text(encoding="utf-8")
    headings = {line for line in page.splitlines() if line.startswith("## ")}
    starts = tuple(f"## {op}, {variant}: " for op, variant in VARIANTS)
    assert all(heading.startswith(starts) for heading in headings)


# --- whole runs


def flat_spec(folder: Path, checks: list[dict[str, object]], scale: float) -> Path:
    """A right copy, and a kernel that writes zeros, of numbers below `scale`."""
    variants = {
        name: {
            "source": str(KERNELS / "wrongs.hip"),
            "inputs": {"x": {"dtype": "float32", "shape": ["n"]}},
            "outputs": {"y": {"dtype": "float32", "shape": ["n"]}},
            "oracle": "wrongs.py:copy",
            "checks": checks,
            "launches": [
                {"kernel": kernel, "grid": ["n // 64"], "block": [64], "args": ["x", "y", "n"]}
            ],
        }
        for name, kernel in {"right": "copy<float>", "zeros": "zeros"}.items()
    }
    document = {
        "schema": "tokitai/spec/v1",
        "op": "flat",
        "title": "Flat tolerances",
        "params": {"n": {"default": 1536}},
        "variants": variants,
        "profiles": {"uniform": {"draw": {"kind": "uniform", "lo": 0, "hi": scale}}},
    }
    (folder / "wrongs.py").write_bytes((KERNELS / "wrongs.py").read_bytes())
    path = folder / "flat.yaml"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_flat_tolerances_on_tiny_outputs_end_inconclusive_with_the_reason(tmp_path: Path) -> None:
    checks: list[dict[str, object]] = [{"metric": "abs", "limit": 1e-2}]
    evidence = run(flat_spec(tmp_path, checks, 1e-3), tmp_path)
    assert evidence.verdict is Verdict.INCONCLUSIVE
    assert evidence.verdict.exit_code == 6
    for case in evidence.cases:  # the zeros pass, and so the right kernel's pass is worth nothing
        assert case.verdict is Verdict.INCONCLUSIVE
        assert "would also have passed a wrong output (zeros, constant-mean, " in case.reason
        assert "no profile here rejects it" in case.reason
    text = (tmp_path / "flat.md").read_text(encoding="utf-8")
    assert "would also have passed a wrong output" in text
    assert not any(gate.supported for gate in evidence.claims)


def test_a_relative_tolerance_beside_it_tells_zeros_from_numbers(tmp_path: Path) -> None:
    checks: list[dict[str, object]] = [
        {"metric": "abs", "limit": 1e-2},
        {"metric": "rel", "limit": 1e-6},
    ]
    evidence = run(flat_spec(tmp_path, checks, 1e-3), tmp_path)
    assert [str(case.verdict) for case in evidence.cases] == ["verified", "refuted"]
