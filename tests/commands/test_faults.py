"""Every known fault is refuted on the shipped specs, or said to be beyond them; its twin is verified.

The verdicts are written into reports/generated/faults.md, with TOKITAI_UPDATE_GOLDEN=1; otherwise
they must be those that stand there.
"""

from __future__ import annotations

import fcntl
import functools
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from tests.fault_specs import LONGEST_ROW, NUMBERS, OWN_FAULTS, every_fault, profiles_of, write_spec
from tests.fault_table import OWN_WORDS, SHAPES, TRIALS, WORDS, Trial
from tests.runs import run
from tests.support import slow
from tokitai_cli import devices
from tokitai_cli.core.model.device import DeviceOptions
from tokitai_cli.core.model.evidence import CaseRecord, Evidence
from tokitai_cli.core.model.verdict import Verdict, worst
from tokitai_cli.devices import nvidia

DOCUMENT = Path(__file__).parents[2] / "reports" / "generated" / "faults.md"
UPDATE = os.environ.get("TOKITAI_UPDATE_GOLDEN") == "1"
INTRODUCTION = """\
# Wrong kernels and their verdicts

Written by `TOKITAI_UPDATE_GOLDEN=1 python -m pytest tests/commands/test_faults.py`, from runs on the cpu
device; the tests compare. The kernels are `tests/kernels/faulty_*.hip`: each does the work of a
shipped kernel, with one fault. What the tool could not see is here too: `verified` beside a fault.

Tables of a quick suite hold the shipped spec with the kernel replaced, nothing else: the shapes of that
suite, all profiles, checks and properties. The verdict is the run's, the worst of its cases; then come
the cases by verdict. In a case that is not refuted the fault changes nothing, or less than the bound
allows: one element has no other to be taken for, a row of zeros no sign.

Tables of single faults name the device. A GPU's shared memory cannot be filled in front of a launch, its
blocks run in an order that nobody chooses, and the size of a wave is its own: a fault that shows by
chance has two verdicts. What is expected of a GPU is not run where there is none.
"""
FEW_PROFILES = {("layernorm", "fwd"): ["normal", "tiny-variance"],
                ("layernorm", "fwd-eps"): ["tiny-variance"],
                ("embedding", "bwd"): ["normal", "exact-int"]}  # fmt: skip
COUNTED = (Verdict.REFUTED, Verdict.INCONCLUSIVE, Verdict.VERIFIED, Verdict.VACUOUS)
OPS = tuple(dict.fromkeys(trial.op for trial in TRIALS))
LONG = ("softmax", "layernorm")  # of these every test run tries what is small
Specs = Callable[[str], Path]


@pytest.fixture(scope="module")
def specs(tmp_path_factory: pytest.TempPathFactory) -> Specs:
    """Path of an op's spec with all its wrong kernels."""
    folder = tmp_path_factory.mktemp("faults")
    return functools.cache(lambda op: write_spec(op, folder))


def documented(heading: str, table: Sequence[str]) -> None:
    """Compare a section of reports/generated/faults.md with `table`, or write it."""
    if UPDATE:
        with Path(__file__).open("rb") as lock:  # workers write one after the other
            fcntl.flock(lock, fcntl.LOCK_EX)
            sections = dict(_sections()) | {heading: "\n".join(table)}
            text = [f"## {name}\n\n{sections[name]}\n" for name in sorted(sections)]
            DOCUMENT.write_text("\n".join([INTRODUCTION, *text]), encoding="utf-8")
    found = dict(_sections())
    assert heading in found, "write the page with TOKITAI_UPDATE_GOLDEN=1"
    assert found[heading].split("\n") == list(table)


def _sections() -> Iterator[tuple[str, str]]:
    if not DOCUMENT.exists():
        return
    for section in DOCUMENT.read_text(encoding="utf-8").split("\n## ")[1:]:
        heading, _, text = section.partition("\n")
        yield heading, text.strip()


def heading_of(op: str, variant: str) -> str:
    """Section of a variant's quick suite."""
    shapes = f", up to {LONGEST_ROW} columns" if op == "layernorm" else ""
    return f"{op} {variant}: quick suite{shapes}"


def shown(sizes: Mapping[str, object]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in sizes.items())


@pytest.mark.skipif(UPDATE, reason="the page is being written")
def test_the_page_holds_its_introduction_and_no_section_of_the_past() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert text.startswith(INTRODUCTION + "\n## ")
    headings = {heading_of(op, variant) for op, variant in OWN_FAULTS}
    headings |= {f"{op}: single faults" for op in OPS}
    assert [heading for heading, _ in _sections()] == sorted(headings)


# --- every variant on its shipped spec -----------------------------------------------------------


def table_of(evidence: Evidence, op: str, variant: str) -> list[str]:
    """Rows: output, fault, verdict of the run, cases by verdict."""
    rows = [
        "| output | fault | verdict | refuted | inconclusive | verified | vacuous |",
        "|---|---|---|--:|--:|--:|--:|",
    ]
    for name, (output, fault) in every_fault(op, variant).items():
        found = [case.reads for case in evidence.cases if case.variant == name]
        counts = [found.count(one) for one in COUNTED]
        assert sum(counts) == len(found) > 0, (name, found)
        words = OWN_WORDS.get((op, variant, fault), WORDS[fault])
        cells = (f"`{output}`" if output else "", words, worst(found), *counts)
        rows.append(f"| {' | '.join(map(str, cells))} |")
    return rows


def judge(evidence: Evidence, op: str, variant: str) -> None:
    """Every fault is refuted in some case, and the right kernel verified in all."""
    names = every_fault(op, variant)
    found = {
        name: worst(case.verdict for case in evidence.cases if case.variant == name)
        for name in names
    }
    right = f"{variant}-right"
    wanted = {name: Verdict.VERIFIED if name == right else Verdict.REFUTED for name in names}
    reasons = [
        (case.id, case.reason)
        for case in evidence.cases
        if case.variant == right and case.verdict is not Verdict.VERIFIED
    ]
    assert found == wanted, reasons


@pytest.mark.parametrize(
    ("op", "variant"),
    [slow(*one) if one[0] == "layernorm" and one[1] != "fwd-eps" else one for one in OWN_FAULTS],
)
def test_every_fault_shows_in_few_profiles(
    op: str, variant: str, specs: Specs, tmp_path: Path
) -> None:
    names = list(every_fault(op, variant))
    profiles = FEW_PROFILES.get((op, variant), ["normal"])
    evidence = run(specs(op), tmp_path, shapes=SHAPES[op], variant=names, profile=profiles)
    for name in names:
        found = worst(case.verdict for case in evidence.cases if case.variant == name)
        right = name == f"{variant}-right"
        # So few profiles leave some wrong outputs open, which a verdict on the right one says.
        wanted = (Verdict.VERIFIED, Verdict.INCONCLUSIVE) if right else (Verdict.REFUTED,)
        assert found in wanted, name


@pytest.mark.slow
@pytest.mark.parametrize(("op", "variant"), OWN_FAULTS)
def test_no_fault_is_verified_on_the_quick_suite(
    op: str, variant: str, specs: Specs, tmp_path: Path
) -> None:
    names = list(every_fault(op, variant))
    profiles = profiles_of(op, variant)
    evidence = run(specs(op), tmp_path, suite="quick", variant=names, profile=profiles)
    judge(evidence, op, variant)
    documented(heading_of(op, variant), table_of(evidence, op, variant))


# --- single faults -------------------------------------------------------------------------------


def outcome(trial: Trial, specs: Specs, folder: Path, device: str = "cpu") -> Evidence:
    """Evidence of a trial."""
    profiles = list(trial.profiles) or profiles_of(trial.op, trial.variant)
    return run(
        specs(trial.op),
        folder,
        shapes=dict(trial.shape),
        variant=[trial.variant],
        profile=profiles,
        device=device,
        **trial.options,
    )


def row_of(trial: Trial) -> str:
    either = [" or ".join(trial.allowed(device)) for device in ("cpu", "cuda")]
    if "warp_size" in trial.options:
        either[1] = "no such option"
    told = shown({**trial.shape, **trial.options}).replace("warp_size", "--warp-size")
    profiles = ", ".join(trial.profiles) or "all"
    return f"| {' | '.join((trial.fault, trial.variant, told, profiles, *either))} |"


@pytest.mark.parametrize("op", LONG)
def test_single_faults_of_small_shapes(op: str, specs: Specs, tmp_path: Path) -> None:
    """One of each fault."""
    trials = {
        trial.fault: trial
        for trial in TRIALS
        if trial.op == op and trial.profiles and math.prod(trial.shape.values()) <= 4096
    }
    found = {name: str(outcome(one, specs, tmp_path).verdict) for name, one in trials.items()}
    assert len(found) >= 4
    assert all(found[name] in one.allowed("cpu") for name, one in trials.items()), found


@pytest.mark.parametrize("op", [slow(op) if op in LONG else op for op in OPS])
def test_single_faults(op: str, specs: Specs, tmp_path: Path) -> None:
    """The table's verdicts on the cpu device are those that come out."""
    trials = [trial for trial in TRIALS if trial.op == op]
    found = {trial.name: str(outcome(trial, specs, tmp_path).verdict) for trial in trials}
    wrong = {t.name: found[t.name] for t in trials if found[t.name] not in t.allowed("cpu")}
    assert not wrong
    assert len(found) == len(trials)
    head = "| fault | kernel | shape and options | profiles | cpu | cuda, expected |"
    documented(f"{op}: single faults", [head, "|---|---|---|---|---|---|", *map(row_of, trials)])


@pytest.mark.skipif(
    not devices.get("cuda").probe(DeviceOptions()).available, reason="no NVIDIA GPU here"
)
@pytest.mark.parametrize("op", OPS)
def test_single_faults_on_an_nvidia_gpu(
    op: str, specs: Specs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(nvidia.VISIBLE, raising=False)
    trials = [t for t in TRIALS if t.op == op and "warp_size" not in t.options]
    found = {trial.name: str(outcome(trial, specs, tmp_path, "cuda").verdict) for trial in trials}
    wrong = {t.name: found[t.name] for t in trials if found[t.name] not in t.allowed("cuda")}
    assert not wrong


def test_every_fault_of_the_kernels_is_in_a_table() -> None:
    used = {fault for op, variant in OWN_FAULTS for _, fault in every_fault(op, variant).values()}
    tried = {trial.variant for trial in TRIALS}
    missing = [
        name for name in NUMBERS if name not in used and not any(v.endswith(name) for v in tried)
    ]
    assert not missing


# --- what the evidence says of them --------------------------------------------------------------


def trial_of(variant: str, *profiles: str, **shape: int) -> Trial:
    (found,) = (
        trial
        for trial in TRIALS
        if (trial.variant, trial.profiles) == (variant, profiles)
        and shape.items() <= trial.shape.items()
        and "warp_size" not in trial.options
    )
    return found


def non_claims(evidence: Evidence) -> str:
    return "\n".join(one.text for one in evidence.non_claims)


@pytest.mark.parametrize("profile", ["hot-ones", "hot-constant"])
def test_rounding_at_each_step_is_refuted_by_naming_the_hot_row(
    profile: str, specs: Specs, tmp_path: Path
) -> None:
    evidence = outcome(trial_of("bwd-half-steps", profile), specs, tmp_path)
    (case,) = evidence.cases
    (row,) = (
        one.generator.partition("row=")[2].rstrip(")")
        for one in case.inputs
        if one.name == "indices"
    )
    measured = evidence.volatile.measured[case.key]
    assert f"grad_weight[{row}, " in measured.reason
    assert measured.outputs[0].metrics is not None
    assert measured.outputs[0].metrics.worst_row == int(row)
    assert f"grad\\_weight\\[{row}, " in (tmp_path / "embedding.md").read_text(encoding="utf-8")
    if profile == "hot-ones":
        worst_element = measured.outputs[0].checks[0].worst[0]
        assert worst_element.got == 2048.0
        assert float(worst_element.want) > 4000


def test_float32_atomics_are_verified_without_a_claim_of_equal_bits(
    specs: Specs, tmp_path: Path
) -> None:
    trial = trial_of("bwd-right", "hot", "hot-ones", "hot-constant")
    evidence = outcome(trial, specs, tmp_path)
    gates = {gate.name: gate.supported for gate in evidence.claims}
    assert gates["numerical-agreement"]
    assert not gates["bitwise-reproducible"]
    assert "no claim of bit-identical repeats" in non_claims(evidence)


def test_a_float16_sum_is_refuted_where_a_flat_limit_passes(specs: Specs, tmp_path: Path) -> None:
    shape = {"rows": 1, "cols": 4096}
    evidence = run(
        specs("softmax"), tmp_path, shapes=shape, variant=["fwd-both-half-sum"], profile=["equal"]
    )
    (case,) = evidence.cases
    assert case.verdict is Verdict.REFUTED
    passed = {check.metric: check.passed for check in case.outputs[0].checks}
    assert passed == {"bound": False, "abs": True}
    worst_element = case.outputs[0].checks[0].worst[0]
    assert worst_element.got == 2 * float(worst_element.want)


def test_zeros_under_a_flat_limit_are_inconclusive_and_say_why(
    specs: Specs, tmp_path: Path
) -> None:
    evidence = outcome(trial_of("fwd-flat-zeros", "normal"), specs, tmp_path)
    (case,) = evidence.cases
    assert "zeros" in case.reason
    assert "would pass an output of zeros" in case.outputs[0].checks[0].note


def test_nine_rows_of_64_are_named(specs: Specs, tmp_path: Path) -> None:
    (case,) = outcome(trial_of("fwd-nine-rows", "normal"), specs, tmp_path).cases
    output = case.outputs[0]
    assert output.pattern is not None
    assert "(9 of 64)" in output.pattern.detail
    assert output.metrics is not None
    assert output.metrics.worst_row in range(0, 63, 7)


@pytest.mark.parametrize(
    ("op", "variant", "shapes", "said"),
    [
        ("gemm-bw", "grad-a-tail", {"n": [1024, 1152], "m": 16, "k": 16}, "n = 1024, 1152 "),
        ("softmax", "fwd-tail", {"cols": [768, 769], "rows": 8}, "modulo 256: 0, 1)"),
    ],
)
def test_a_verdict_per_shape_and_the_residues_tried(
    op: str,
    variant: str,
    shapes: dict[str, int | list[int]],
    said: str,
    specs: Specs,
    tmp_path: Path,
) -> None:
    profiles = profiles_of(op, variant)
    evidence = run(specs(op), tmp_path, shapes=shapes, variant=[variant], profile=profiles)
    (name,) = (name for name, values in shapes.items() if isinstance(values, list))

    def verdict(size: int) -> Verdict:
        return worst(case.verdict for case in evidence.cases if case.shape[name] == size)

    good, bad = (verdict(size) for size in shapes[name])  # type: ignore[union-attr]
    assert (good, bad) == (Verdict.VERIFIED, Verdict.REFUTED)
    assert f"shapes of {op} {variant} other than those tried" in non_claims(evidence)
    assert said in non_claims(evidence)
    assert "other than those tried" in (tmp_path / f"{op}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("variant", "profiles"),
    [("scaled-rows-right", ["normal"]), ("wave-sums-short-shuffle", ["normal"])],
)
def test_what_one_schedule_and_one_wave_leave_open_is_said(
    variant: str, profiles: list[str], specs: Specs, tmp_path: Path
) -> None:
    evidence = run(specs("blocks"), tmp_path, variant=[variant], profile=profiles)
    assert evidence.verdict is Verdict.VERIFIED
    report = (tmp_path / "blocks.md").read_text(encoding="utf-8")
    for words in ("races not tested", "wave sizes other than 32"):
        assert words in non_claims(evidence)
        assert words in report


def test_a_race_shows_without_more_repetitions(specs: Specs, tmp_path: Path) -> None:
    """The cpu device runs the first threads of a block first, the order that such races need."""
    evidence = run(
        specs("blocks"), tmp_path, variant=["scaled-rows-no-barrier"], profile=["normal"]
    )
    (case,) = evidence.cases
    assert case.verdict is Verdict.REFUTED
    assert case.reproduced is True


def test_a_read_far_outside_is_named(specs: Specs, tmp_path: Path) -> None:
    (case,) = outcome(trial_of("warmed-up-outside", "normal"), specs, tmp_path).cases
    assert "SIGSEGV: read of 0x" in case.reason
    assert "past the end of array `" in case.reason
    assert "in kernel warmed_up" in case.reason


def test_fast_math_stands_in_the_report_and_masked_rows_are_judged(
    specs: Specs, tmp_path: Path
) -> None:
    shape = {"rows": 8, "cols": 65}
    profiles = ["normal", "masked", "all-masked"]
    evidence = run(
        specs("softmax"), tmp_path, shapes=shape, variant=["fwd-fast-math"], profile=profiles
    )
    (build,) = evidence.builds.values()
    assert "-ffast-math" in build.command
    assert "-ffast-math" in (tmp_path / "softmax.md").read_text(encoding="utf-8")

    def judged(case: CaseRecord) -> int:
        return sum(one.count for one in case.outputs[0].structure) + max(
            check.elements for check in case.outputs[0].checks
        )

    found = {case.profile: case for case in evidence.cases}
    assert found["masked"].inputs[0].nonfinite > 0
    assert judged(found["masked"]) >= judged(found["normal"]) - found["masked"].inputs[0].nonfinite
    assert {case.verdict for case in evidence.cases} <= {Verdict.VERIFIED, Verdict.REFUTED}
