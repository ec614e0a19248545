"""The terminal: streams, escaping, colours, and what is not imported."""

from __future__ import annotations

import io
import itertools
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests import evidence_samples as samples
from tests import support
from tokitai_cli import evidence as stage
from tokitai_cli.cli import terminal
from tokitai_cli.cli.terminal import streams
from tokitai_cli.cli.terminal.pace import Pace
from tokitai_cli.cli.terminal.run_summary import summary
from tokitai_cli.cli.terminal.styled_blocks import BAD, Block, Column, Line, Table
from tokitai_cli.cli.typer_options import param_help
from tokitai_cli.core.errors import BuildError, Location, SpecError
from tokitai_cli.core.model.case import LoadedSpec
from tokitai_cli.core.model.device import DeviceClass, Fact, Probe
from tokitai_cli.core.model.diagnosis import CacheListing, CacheRow, Diagnosis, Lack
from tokitai_cli.core.model.events import (
    AllPlanned,
    BuildFinished,
    BuildRunning,
    BuildStarted,
    CaseFinished,
    CaseStarted,
    Event,
    Note,
    RunPlanned,
)
from tokitai_cli.core.model.evidence import CaseRecord, NonClaimRecord
from tokitai_cli.core.model.judged import FindingRecord, StructureRecord
from tokitai_cli.core.model.spec import (
    Buffer,
    Check,
    Launch,
    Param,
    Profile,
    Spec,
    SuiteShape,
    Variant,
)
from tokitai_cli.core.model.verdict import Stage, Verdict
from tokitai_cli.core.model.wording import (
    Placed,
    error_line,
    from_folder,
    placed,
    visible,
    visible_block,
)
from tokitai_cli.evidence.queries import GUESSED

HOSTILE = "[bold red]x[/] \x1b[2J\x9b31m\x07 :smile: \u202e\r\nnext"
RECORD = samples.refuted(reason=HOSTILE)
EVENTS: list[Event] = [
    RunPlanned(2, ("cpu",), 1),
    BuildStarted("cpu", "k.hip", "the first build takes two minutes"),
    BuildFinished("cpu", "k.hip", cached=False, seconds=1.25, note=""),
    CaseStarted(RECORD.id, "cpu", 1, 2),
    CaseFinished(RECORD, 1, 2),
    Note(HOSTILE),
]


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return Terminal()


@pytest.mark.parametrize("verdict", list(Verdict))
def test_every_verdict_has_a_summary(verdict: Verdict, capsys: pytest.CaptureFixture[str]) -> None:
    evidence = samples.sample(verdict)
    terminal.show_summary(evidence, [Path("reports/gemm-bw.md")])
    shown = capsys.readouterr()
    assert f"gemm-bw: {verdict}" in shown.out
    case, _, reason = evidence.reason.partition(": ")
    assert case in shown.out
    assert shown.out.count(reason or case) == 1  # a failure is said once
    assert "reports/gemm-bw.md" in shown.out
    assert shown.err == ""


def test_a_refuted_case_shows_index_numbers_and_commands(
    capsys: pytest.CaptureFixture[str],
) -> None:
    terminal.show_summary(stage.assemble(samples.parts([samples.refuted()])))
    shown = capsys.readouterr().out
    for words in (
        "index: [3, 17]",
        "got:   -0.000243902206",
        "want:  2.515625",
        "error: 2.51587",
        "limit: 0.00122849",
        "4090 of 4096 exceed 1",
        "pattern: every-element",
        f"run it again: {samples.refuted().rerun}",
        "debug it: gdb",
        "run again in a new process: the same result",
    ):
        assert words in shown


def test_a_json_payload_has_stdout_to_itself(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.show_summary(samples.sample(Verdict.VERIFIED), to_stderr=True)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "gemm-bw: verified" in shown.err


def test_values_of_not_deterministic_variants_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.show_summary(stage.assemble(samples.parts([samples.not_deterministic(0.3125)])))
    assert "0.3125" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("hidden", "escape"),
    [
        ("\x07", r"\x07"),
        ("\x85", r"\x85"),
        ("\xad", r"\xad"),  # a hyphen that most viewers do not show
        ("\xa0", r"\xa0"),  # a space that is none
        ("\u115f", r"\u115f"),  # a letter without a picture
        ("\u180e", r"\u180e"),
        ("\u200d", r"\u200d"),
        ("\u2028", r"\u2028"),
        ("\u202e", r"\u202e"),
        ("\ufe0f", r"\ufe0f"),
        ("\uffff", r"\uffff"),
        ("\udcff", r"\udcff"),
        ("\U000e0041", r"\U000e0041"),  # a tag: text inside text
    ],
)
def test_what_no_reader_sees_is_escaped(hidden: str, escape: str) -> None:
    assert visible(f"a{hidden}é b\r\nc\td") == f"a{escape}é b  c d"
    assert visible_block(f"a{hidden}é b\r\nc\td") == f"a{escape}é b\nc\td"
    assert error_line(ValueError(f"a{hidden}é\n b")) == f"ValueError: a{escape}é b"
    spec = support.make_spec().spec
    params = {"n": Param(default=1, help=f"red{hidden}")}
    helped = param_help(msgspec.structs.replace(spec, params=params), "n")
    assert helped.startswith(f"red{escape} [default 1; ")


def test_hostile_text_reaches_no_stream(capsys: pytest.CaptureFixture[str]) -> None:
    evidence = stage.assemble(samples.parts([RECORD], name=HOSTILE))
    terminal.show_summary(evidence, [Path("a[red]b")])
    terminal.show_error(SpecError(HOSTILE, where=Location(Path(HOSTILE), 1, 2), hint=HOSTILE))
    with terminal.Progress() as progress:
        for event in EVENTS:
            progress(event)
    for text in capsys.readouterr():
        assert "[bold red]x[/]" in text
        assert not any(ord(letter) < 32 and letter != "\n" for letter in text)
        assert "\x9b" not in text
        assert "\u202e" not in text
        assert "\nnext" not in text


def test_hostile_text_reaches_no_terminal(screen: Terminal) -> None:
    blocks: list[Block] = [Line(HOSTILE, "bad", label=HOSTILE), Table([Column("a")], [[HOSTILE]])]
    streams.emit(blocks, screen)
    with terminal.Progress(screen) as progress:
        for event in EVENTS:
            progress(event)
    text = screen.getvalue()
    assert "\x1b[2J" not in text
    assert "\x9b" not in text
    assert "\x07" not in text
    assert re.sub(r"\x1b\[[0-9;]*m", "", text).count("[bold red]x[/]") >= 4
    assert ":smile:" in text
    assert text.endswith(("\x1b[2K", "\x1b[?25h")) or "\x1b[?25h" in text


@pytest.mark.parametrize(
    ("width", "left_out"),
    [
        (60, "worst check, value, limit, max ulp"),
        (80, "max ulp"),
        (100, ""),
    ],
)
def test_a_narrow_terminal_leaves_columns_out_before_it_crops(
    width: int, left_out: str, screen: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("NO_COLOR", "1")
    record = samples.refuted(
        variant="grad-a-with-a", profile="exact-int-ramp", shape={"m": 16, "n": 64}
    )
    streams.emit(summary(stage.assemble(samples.parts([record])), []), screen)
    text = re.sub("\x1b\\[[0-9;]*m", "", screen.getvalue())
    table = text[: text.index("refuted: ")]
    for name in ("grad-a-with-a", "exact-int-ramp", "m=16,n=64", "refuted"):
        assert name in table
    assert ("too narrow for: " in table) == bool(left_out)
    assert left_out in table
    assert max(map(len, table.splitlines())) <= width


def test_what_is_left_over_goes_to_the_columns_that_can_use_it() -> None:
    columns = [Column("a"), Column("b", wide=True), Column("c", wide=True, spare=1)]
    rows = [["name", "four words of five", "and some more"]]
    assert streams.fitting(columns, rows, 60) == {0: 4, 1: 18, 2: 13}
    assert streams.fitting(columns, rows, 30) == {0: 4, 1: 10, 2: 8}
    assert streams.fitting(columns, rows, 17) == {0: 4, 1: 8}
    assert streams.fitting(columns, rows, 10) == {0: None, 1: None}


def test_no_color_is_honoured(screen: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    streams.emit([Line("x", "bad")], screen)
    assert "\x1b[1;31m" in screen.getvalue()
    monkeypatch.setenv("NO_COLOR", "1")
    other = Terminal()
    streams.emit([Line("x", "bad")], other)
    assert "31m" not in other.getvalue()


def test_colors_are_forced_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a pipe too, as CI systems show them; NO_COLOR goes before, and progress stays plain lines."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    shown = []
    for name, value in (
        *(("FORCE_COLOR", ""), ("FORCE_COLOR", "0"), ("FORCE_COLOR", "1"), ("NO_COLOR", "1")),
    ):
        monkeypatch.setenv(name, value)
        stream = io.StringIO()
        streams.emit([Line("refuted", BAD)], stream)
        shown.append("\x1b[" in stream.getvalue())
    assert shown == [False, False, True, False]


def test_a_dumb_terminal_gets_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    stream = Terminal()
    streams.emit([Line("x", "bad")], stream)
    assert stream.getvalue() == "x\n"


def test_an_ascii_stream_gets_escapes() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    streams.emit([Line("≤ é")], stream)
    stream.flush()
    assert raw.getvalue() == b"\\u2264 \\xe9\n"


def test_progress_is_plain_lines_off_a_terminal() -> None:
    stream = io.StringIO()
    with terminal.Progress(stream) as progress:
        for event in EVENTS:
            progress(event)
    lines = stream.getvalue().splitlines()
    assert lines[0] == "2 cases on cpu, 1 left out"
    assert lines[1] == "building k.hip for cpu (the first build takes two minutes)"
    assert lines[2] == "k.hip for cpu: built in 1.2 s"
    assert lines[3] == f"[1/2] refuted: {RECORD.id} on cpu"
    assert len(lines) == 5


def test_guesses_that_nobody_confirmed_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    evidence = samples.sample(Verdict.VERIFIED)
    guesses = [NonClaimRecord(text=f"guess {number}", source=GUESSED) for number in range(2)]
    marked = msgspec.structs.replace(evidence, non_claims=[*evidence.non_claims, *guesses])
    for one, line in ((evidence, ""), (marked, "guesses: 2 guesses not confirmed")):
        terminal.show_summary(one)
        text = capsys.readouterr().out
        assert ("guesses:" in text) == bool(line)
        assert line in text


def _progress_of_many(cases: int, *, many: bool = False, runs: int = 1) -> list[str]:
    """Lines off a terminal of runs whose events come a second apart."""
    stream, seconds = io.StringIO(), itertools.count()
    with terminal.Progress(stream, many=many, clock=lambda: float(next(seconds))) as progress:
        for _ in range(runs):
            progress(RunPlanned(cases, ("cpu",), 0))
            progress(Note("auto took cpu"))
            for position in range(1, cases + 1):
                progress(CaseFinished(RECORD, position, cases))
    return stream.getvalue().splitlines()


def test_a_run_of_many_cases_says_a_line_in_ten_seconds_off_a_terminal() -> None:
    lines = _progress_of_many(30)
    assert lines == [
        "30 cases on cpu",
        "auto took cpu",
        f"[10/30] refuted: {RECORD.id} on cpu, 10 not passed so far",
        f"[20/30] refuted: {RECORD.id} on cpu, 20 not passed so far",
        f"[30/30] refuted: {RECORD.id} on cpu, 30 not passed so far",
    ]
    assert len(_progress_of_many(19)) == 21
    assert len(_progress_of_many(4, many=True, runs=5)) == 4


def _paced(*planned: AllPlanned | RunPlanned, done: int) -> str:
    """Time left after cases that took 10 s each."""
    seconds = itertools.count(step=10)
    pace = Pace(lambda: float(next(seconds)))
    for event in planned:
        pace.add(event)
    pace.add(CaseStarted("first", "cpu", 1, 4))
    for position in range(done):
        pace.add(CaseFinished(RECORD, position + 1, 4))
    return pace.remaining()


def test_the_time_left_is_at_the_pace_of_the_cases_that_ended() -> None:
    one = RunPlanned(4, ("cpu",), 0)
    assert _paced(one, done=0) == ""
    assert _paced(one, done=1) == ", 0:30 left"
    assert _paced(RunPlanned(2, ("cpu", "gfx"), 0), done=1) == ", 0:30 left"
    assert _paced(one, done=4) == ""
    # Of several runs, all cases count, not those of the run at work.
    assert _paced(AllPlanned(21, 3), one, done=1) == ", 3:20 left"


def test_a_long_build_is_told_every_15_seconds_off_a_terminal() -> None:
    stream = io.StringIO()
    with terminal.Progress(stream) as progress:
        for source in ("first.hip", "second.hip"):
            progress(BuildStarted("cpu", source, ""))
            for second in range(1, 35):
                progress(BuildRunning("cpu", source, second + 0.1))
    lines = [line for line in stream.getvalue().splitlines() if line.endswith(" s")]
    assert lines == [
        f"building {source} for cpu: {seconds} s"
        for source in ("first.hip", "second.hip")
        for seconds in (15, 30)
    ]


def test_a_build_shows_its_seconds_on_a_terminal(screen: Terminal) -> None:
    with terminal.Progress(screen) as progress:
        progress(BuildStarted("cpu", "k.hip", ""))
        for second in range(1, 4):
            progress(BuildRunning("cpu", "k.hip", second + 0.1))
    for second in range(1, 4):
        assert f"building k.hip for cpu: {second} s" in screen.getvalue()


def test_quiet_progress_says_nothing(screen: Terminal) -> None:
    with terminal.Progress(screen, quiet=True) as progress:
        for event in EVENTS:
            progress(event)
    assert screen.getvalue() == ""


def test_a_closed_stderr_does_not_end_a_run() -> None:
    stream = io.StringIO()
    with terminal.Progress(stream) as progress:
        stream.close()
        for event in EVENTS:
            progress(event)


def test_errors_name_place_key_and_mend() -> None:
    stream = io.StringIO()
    where = Location(Path("a.yaml"), 3, 7, "variants.x")
    terminal.show_error(SpecError("unknown key", where=where, hint="did you mean y?"), stream)
    assert stream.getvalue() == "error: a.yaml:3:7: variants.x: unknown key\n  did you mean y?\n"
    stream = io.StringIO()
    error = BuildError("g++ failed", first_errors=("k.hip:1:1: no",), log_path=Path("log.txt"))
    terminal.show_error(error, stream)
    assert stream.getvalue() == "error: g++ failed\n    k.hip:1:1: no\n  full log: log.txt\n"


def spec() -> LoadedSpec:
    variant = Variant(
        source="k.hip",
        launches=[Launch(kernel="k", grid=["n"], block=[64], args=["x", "y"])],
        given_oracle="copy",
        checks=[Check(metric="abs", limit=0.5, profiles=["normal"], why="because")],
        formula="y = x",
        inputs={"x": Buffer(dtype="float32", shape=["n"])},
        outputs={"y": Buffer(dtype="float32", shape=["n"])},
        non_claims=["not fast"],
    )
    text = Spec(
        schema="tokitai/spec/v1",
        op="copy",
        title="Copies [bold]x",
        params={"n": Param(default=5, multiple_of=4, help="length")},
        variants={"fwd": variant},
        profiles={"normal": Profile(help="N(0,1)")},
        suites={"quick": [SuiteShape(shape={"n": 4}, why="one block")]},
    )
    return LoadedSpec(text, Path("copy.yaml"), "", "ab" * 32)


def test_ops_and_specs_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.show_ops([spec()])
    assert "copy  fwd      n=5         Copies [bold]x" in capsys.readouterr().out
    terminal.show_spec(spec())
    shown = capsys.readouterr().out
    for words in (
        "formula: y = x",
        "input x: float32 [n]",
        "launch: k, grid n, block 64",
        "check: abs <= 0.5 against the reference, profiles normal: because",
        "not claimed: not fast",
        "n=4  one block",
        "length",
    ):
        assert words in shown


def test_doctor_and_cache_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    cpu = Probe("cpu", DeviceClass.HOST_SIMT, True, True, "x86-64", (Fact("cores", "2", "nproc"),))
    rocm = Probe("rocm", DeviceClass.AMD_GPU, False, False, "", (), "no /dev/kfd", "get a GPU")
    lacks = (Lack("ziglang", "pip install tokitai[cpu]"),)
    terminal.show_doctor(Diagnosis((cpu, rocm), (Fact("cache", "/x", "TOKITAI_CACHE"),), lacks))
    shown = capsys.readouterr().out
    assert "rocm: no /dev/kfd\n  get a GPU" in shown
    assert "cpu     cores  2      nproc" in shown
    assert "ziglang: missing\n  pip install tokitai[cpu]" in shown
    row = CacheRow("k" * 64, "cpu", "k.hip", 3 << 20, 0.0, "digest differs")
    terminal.show_cache(CacheListing("/x", 3 << 20, (row,)))
    shown = capsys.readouterr().out
    assert "holds: 1 artifact, 3.0 MiB in all" in shown
    assert "1970-01-01 00:00  3.0  digest differs" in shown
    terminal.show_cleared(1 << 20)
    assert capsys.readouterr().out == "1.0 MiB freed\n"


def test_a_run_off_a_terminal_imports_neither_rich_nor_jinja() -> None:
    code = (
        "import sys\nfrom tests import evidence_samples as s\n"
        "from tokitai_cli.cli import terminal as console; from tokitai_cli import evidence, report\n"
        "from tokitai_cli.core.model.verdict import Verdict\n"
        "with console.Progress() as p: pass\n"
        "e = s.sample(Verdict.REFUTED)\n"
        "console.show_summary(e)\n"
        "evidence.to_json(e)\n"
        "sys.exit(' '.join({'rich', 'jinja2', 'numpy', 'yaml'} & set(sys.modules)) or 0)\n"
    )
    tests = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(tests.parent), "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 0, done.stderr


def test_crashed_and_left_out_cases_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    crashed = [
        samples.not_judged(Verdict.CRASHED, Stage.RUN, f"SIGSEGV {seed}", id=f"c{seed}")
        for seed in range(5)
    ]
    terminal.show_summary(stage.assemble(samples.parts(crashed)))
    assert "2 more such cases are in the evidence" in capsys.readouterr().out
    alike = [
        samples.not_judged(Verdict.CRASHED, Stage.RUN, "SIGSEGV", id=f"c{seed}")
        for seed in range(5)
    ]
    terminal.show_summary(stage.assemble(samples.parts(alike)))
    shown = capsys.readouterr().out
    assert shown.count("crashed: c") == 1
    assert "4 more such cases are in the evidence" in shown
    terminal.show_summary(samples.sample(Verdict.REFUTED))
    assert "skipped: 1 pair of variant and shape" in capsys.readouterr().out


def refuted_by(profile: str, over: float, **changes: Any) -> CaseRecord:
    """A refuted case whose largest error is `over` bounds."""
    worst = samples.output(
        passed=False,
        checks=[samples.check(value=over, passed=False)],
        metrics=msgspec.structs.replace(samples.METRICS, over_bound=over),
        **changes,
    )
    return samples.case(profile, verdict=Verdict.REFUTED, reason=f"{over} bounds", outputs=[worst])


def test_the_case_that_shows_the_fault_best_leads(capsys: pytest.CaptureFixture[str]) -> None:
    everywhere = StructureRecord(
        kind="nan-unexpected", count=4096, first=[0, 0], got="nan", want="1", message="NaN"
    )
    cases = [
        refuted_by("first", 3.0),
        refuted_by("plain", 900.0),
        refuted_by("nan", 2.0, structure=[everywhere]),
        refuted_by("last", 5.0),
    ]
    for chosen, lead in ((cases, "nan"), (cases[:2], "plain")):
        found = stage.assemble(samples.parts(chosen))
        assert f"/{lead}/" in found.reason
        terminal.show_summary(found)
        told = [
            line for line in capsys.readouterr().out.splitlines() if line.startswith("refuted:")
        ]
        assert f"/{lead}/" in told[0]
        assert "/first/" in told[1]


def test_the_table_shows_what_decided(capsys: pytest.CaptureFixture[str]) -> None:
    nan = StructureRecord(
        kind="nan-unexpected", count=56, first=[0, 0], got="nan", want="1", message="NaN"
    )
    outside = FindingRecord(
        tool="guards",
        kind="out-of-bounds-write",
        message="",
        kernel="k",
        location="y[64]",
        threads="",
    )
    fields: dict[str, Any] = {"verdict": Verdict.REFUTED, "reason": "wrong"}
    cases = [
        samples.case("nan", outputs=[samples.output(passed=False, structure=[nan])], **fields),
        samples.case("guard", findings=[outside], **fields),
        refuted_by("bound", 3.0),
    ]
    terminal.show_summary(stage.assemble(samples.parts(cases)))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("all cases: variant grad-a")
    rows = {line.split()[0]: " ".join(line.split()) for line in lines[2:5]}
    assert rows["nan"] == "nan nan-unexpected of grad_a 56 -"
    assert rows["guard"] == "guard out-of-bounds-write at y[64] - -"
    assert rows["bound"].startswith("bound bound of grad_a 3 1")


def test_a_run_of_empty_cases_alone_claims_no_check(capsys: pytest.CaptureFixture[str]) -> None:
    empty = samples.case(
        outputs=[samples.output(shape=[0, 64], elements=0, checks=[], metrics=None)]
    )
    terminal.show_summary(stage.assemble(samples.parts([empty], groups=[])))
    out = capsys.readouterr().out
    assert "nothing was compared" in out
    assert "every check" not in out


@pytest.mark.parametrize(
    ("text", "spec", "shown"),
    [
        ("./k.cu:3:15: error: x", "specs/one/spec.yaml", "specs/one/k.cu:3:15: error: x"),
        (
            "../lib/a.h:3: y (see ./b.h:4)",
            "specs/one/s.yaml",
            "specs/lib/a.h:3: y (see specs/one/b.h:4)",
        ),
        ("./k.cu:3: x", "spec.yaml", "./k.cu:3: x"),
        ("./k.cu:3: x", "softmax", "./k.cu:3: x"),
        ("/usr/x/../a.h:3: x; a/./b:3", "specs/s.yaml", "/usr/x/../a.h:3: x; a/./b:3"),
        ("value ./5 of 3", "specs/s.yaml", "value ./5 of 3"),
    ],
)
def test_places_are_named_from_where_the_command_runs(text: str, spec: str, shown: str) -> None:
    assert from_folder(text, spec) == shown


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("a/k.cu:3:15: x: y", Placed("a/k.cu", 3, 15), "x: y"),
        ("k.cu:3: x", Placed("k.cu", 3), "x"),
        ("a/spec.yaml: no such key", Placed("a/spec.yaml"), "no such key"),
        ("bound of y: 3 of 4", None, "bound of y: 3 of 4"),
        ("y: 3 of 4", None, "y: 3 of 4"),
        ("killed", None, "killed"),
    ],
)
def test_the_place_that_a_text_begins_with(text: str, place: Placed | None, said: str) -> None:
    assert placed(text) == (place, said)


def test_github_is_told_each_cause_once_beside_the_code(capsys: pytest.CaptureFixture[str]) -> None:
    built = [
        samples.not_judged(Verdict.BUILD_FAILED, Stage.BUILD, reason, profile=profile)
        for profile, reason in (
            ("normal", "./k.cu:3:15: 50%, bad\nx"),
            ("wide", "./k.cu:3:15: 50%, bad\nx"),
            ("other", "../h.h:1: no"),
        )
    ]
    found = stage.assemble(samples.parts([*built, samples.case(), samples.refuted(profile="r")]))
    terminal.annotate_run(found, "specs/one/spec.yaml", {})
    assert capsys.readouterr().out == ""
    terminal.annotate_run(found, "specs/one/spec.yaml", {"GITHUB_ACTIONS": "true"})
    lines = capsys.readouterr().out.splitlines()
    case = built[0].id.replace(",", "%2C")
    assert lines[0] == (
        f"::error file=specs/one/k.cu,line=3,col=15,title=build-failed%3A {case}::"
        "50%25, bad%0Ax (and 1 more case)"
    )
    assert lines[1].startswith("::error file=specs/h.h,line=1,title=build-failed%3A ")
    assert lines[2].startswith("::error file=specs/one/gemm_bw.hip,title=refuted%3A ")
    assert len(lines) == 3


def test_github_drops_what_is_beyond_ten(capsys: pytest.CaptureFixture[str]) -> None:
    cases = [
        samples.not_judged(Verdict.BUILD_FAILED, Stage.BUILD, f"./k.cu:{at}: x", profile=f"p{at}")
        for at in range(1, 15)
    ]
    terminal.annotate_run(
        stage.assemble(samples.parts(cases)), "s.yaml", {"GITHUB_ACTIONS": "true"}
    )
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 10
    assert lines[-1] == "::error::5 more causes"


@pytest.mark.parametrize("width", [60, 80, 120])
def test_lines_are_wrapped_between_words_on_a_terminal(
    width: int, screen: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    words = [f"word-{number}" for number in range(40)] + ["x" * 130, "end"]
    command = " ".join(f"--option {number}" for number in range(40))
    lines = [
        Line(" ".join(words), label="note:", indent=2),
        Line(command, label="run it again:", indent=2, verbatim=True),
    ]
    streams.emit(lines, screen)
    shown = re.sub(r"\x1b\[[0-9;]*m", "", screen.getvalue()).splitlines()
    assert shown[-1] == f"  run it again: {command}"
    note = shown[:-1]
    assert " ".join(note).split() == ["note:", *words]
    assert all(len(line) <= width for line in note if "x" * 130 not in line)
    assert 3 < len(note) < len(" ".join(words)) / (width - 12) + 4
    assert note[0].startswith("  note: word-0 ")
    assert all(line.startswith("    ") for line in note[1:])
