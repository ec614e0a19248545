"""Reports: one golden file per verdict, hostile text, and nothing that is not in the evidence."""

from __future__ import annotations

import itertools
import json
import os
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from markdown_it import MarkdownIt

from tests import evidence_samples as samples
from tokitai_cli import evidence as stage
from tokitai_cli.core.errors import UsageError
from tokitai_cli.core.model.evidence import Evidence, FactRecord, SourceRecord
from tokitai_cli.core.model.verdict import Stage, Verdict
from tokitai_cli.core.model.wording import number
from tokitai_cli.report import ReportOptions, render
from tokitai_cli.report.formats import markdown

GOLDEN = Path(__file__).parents[1] / "golden"
HOSTILE = (
    "| a | b |\n# head\n<script>alert(1)</script> [x](http://evil.example) ![i](y) `tick` ``` "
    "*b* _i_ ~~s~~ $m$ &lt; @all www.evil.example \x1b[31mred\x9b1m \u202egnp.exe\r\n- item"
)


@pytest.mark.parametrize("verdict", list(Verdict))
def test_golden(verdict: Verdict) -> None:
    """Set TOKITAI_UPDATE_GOLDEN=1 to write the files anew, and read the difference."""
    path = GOLDEN / f"{verdict}.md"
    evidence = samples.sample(verdict)
    text = render(evidence, "md").decode().replace(evidence.digest, "DIGEST")
    if os.environ.get("TOKITAI_UPDATE_GOLDEN") == "1":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_a_report_comes_out_of_the_json_alone(tmp_path: Path) -> None:
    evidence = samples.sample(Verdict.REFUTED)
    path = tmp_path / "run.json"
    stage.write(evidence, path)
    assert render(stage.read(path), "md") == render(evidence, "md")
    assert json.loads(render(evidence, "json"))["digest"] == evidence.digest
    with pytest.raises(UsageError, match="unknown report format"):
        render(evidence, "pdf")


def test_templates_are_compiled_once_and_a_damaged_cache_does_no_harm(tmp_path: Path) -> None:
    evidence = samples.sample(Verdict.REFUTED)
    want = render(evidence, "md")
    folder = tmp_path / "templates"
    folder.mkdir()
    assert render(evidence, "md", ReportOptions(folder)) == want
    kept = sorted(folder.iterdir())
    assert kept
    assert {path.suffix for path in kept} == {".template"}
    for path in kept:
        path.write_bytes(path.read_bytes()[:-7])
    from tokitai_cli.report.templates import _environment

    _environment.cache_clear()
    assert render(evidence, "md", ReportOptions(folder)) == want
    file = tmp_path / "file"
    file.write_text("", encoding="utf-8")
    _environment.cache_clear()
    assert render(evidence, "md", ReportOptions(file)) == want


def hostile_evidence() -> Evidence:
    """Evidence in which every text that a stranger may choose is hostile."""
    array = msgspec.structs.replace(samples.saved_array(), file=HOSTILE, dtype=HOSTILE)
    case = samples.refuted(
        reason=HOSTILE, rerun=HOSTILE, saved_arrays=[array], known_bug=HOSTILE, debug=HOSTILE
    )
    crashed = samples.not_judged(Verdict.CRASHED, Stage.RUN, HOSTILE, profile="large")
    build = samples.build(source=HOSTILE, command=["g++", HOSTILE], notes=[HOSTILE])
    parts = samples.parts(
        [case, crashed],
        name=HOSTILE,
        contract=samples.contract(HOSTILE),
        builds={samples.BUILD: build},
        specs={samples.SPEC: SourceRecord(path=HOSTILE, bytes=1, text=HOSTILE)},
        devices={
            "cpu": samples.device(
                facts=[FactRecord(name=HOSTILE, value=HOSTILE, source=HOSTILE)],
                non_claims=[HOSTILE],
            )
        },
        volatile=samples.volatile(
            kernel_logs={HOSTILE: HOSTILE},
            build_logs={samples.BUILD: HOSTILE},
            environment={"X": HOSTILE},
            notes=[HOSTILE],
        ),
    )
    return stage.assemble(parts)


def hostile_report() -> str:
    return render(hostile_evidence(), "md").decode()


def outside_of_code(report: str) -> str:
    """The report without fenced blocks and inline code, where nothing is interpreted."""
    lines, fence = [], ""
    for line in report.splitlines():
        ticks = re.match("`{3,}", line)
        if not fence and ticks:
            fence = ticks.group()
        elif fence and line == fence:
            fence = ""
        elif not fence:
            lines.append(line)
    assert not fence, "a fence is left open"
    return re.sub(r"(?<!\\)`[^`\n]*`", "", "\n".join(lines))


def test_hostile_text_stays_text() -> None:
    report = hostile_report()
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", report)
    text = outside_of_code(report)
    assert "<script" not in text
    assert not re.search(r"(?<!\\)\]\(", text)
    assert "http://" not in text
    assert "@all" not in text
    assert not re.search(r"(?<!\\)\*b", text)
    headings = {line for line in text.splitlines() if line.startswith("#")}
    assert not any(line.startswith("# head") for line in headings)
    assert not any(line.startswith("- item") for line in text.splitlines())
    assert "x1b" in report


def test_hostile_text_makes_no_markup() -> None:
    """A parser of Markdown (the one that Rich uses) must see the same structure as without it."""
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    kinds = {
        token.type
        for block in parser.parse(hostile_report())
        for token in (block, *(block.children or ()))
    }
    markup = {
        "html_block",
        "link_open",
        "image",
        "s_open",
        "em_open",
        "strong_open",
        "code_block",
        "hr",
    }
    assert "table_open" in kinds
    assert not kinds & markup
    tags = {
        token.content
        for block in parser.parse(hostile_report())
        for token in block.children or ()
        if token.type == "html_inline"
    }
    assert tags <= {"<code>", "</code>"}


def test_tables_keep_their_columns_under_hostile_text() -> None:
    lines = hostile_report().splitlines()
    for above, rule in itertools.pairwise(lines):
        if re.fullmatch(r"\|(-+:?\|)+", rule.replace(":", "-")):
            at = lines.index(rule)
            for row in lines[at + 1 :]:
                if not row.startswith("|"):
                    break
                bars = len(re.findall(r"(?<!\\)\|", row))
                assert bars == len(re.findall(r"(?<!\\)\|", above)), row


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("plain words - and 1. more", "plain words - and 1. more"),
        ("# head", "&#35; head"),
        ("- item", "&#45; item"),
        ("12. item", "&#49;2. item"),
        ("---", "&#45;--"),
        ("-0.5", "-0.5"),
        ("a|b", "a\\|b"),
        ("<b>&", "&lt;b&gt;&amp;"),
        ("a\nb\x1b", "a b\\\\x1b"),
        ("http://x", "http&#58;//x"),
    ],
)
def test_escape(text: str, want: str) -> None:
    assert markdown.escape(text) == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("grad_a", "`grad_a`"),
        ("", "-"),
        ("a`b", "<code>a&#96;b</code>"),
        ("a|b<", "<code>a&#124;b&#60;</code>"),
        ("a\nb", "`a b`"),
    ],
)
def test_code(text: str, want: str) -> None:
    assert markdown.code(text) == want


def test_a_fence_is_longer_than_any_inside() -> None:
    block = markdown.fence("```\n````x\n", "sh")
    assert block.startswith("\n`````sh\n")
    assert block.endswith("\n`````\n")


def test_a_template_prints_nothing_by_accident() -> None:
    with pytest.raises(TypeError, match="prints dict"):
        markdown.printed({})
    assert [markdown.printed(value) for value in (None, True, 3, 0.5, "nan")] == [
        "-",
        "yes",
        "3",
        "0.5",
        "nan",
    ]


def test_a_large_run_stays_readable() -> None:
    good = [samples.case(seed=seed, id=f"good {seed}") for seed in range(240)]
    bad = [samples.refuted(seed=seed, id=f"bad {seed}") for seed in range(25)]
    report = render(stage.assemble(samples.parts([*good, *bad])), "md").decode()
    assert report.index("bad 0") < report.index("good 0")
    assert report.count("### refuted:") == 20
    assert "5 more such cases are in the JSON file." in report
    assert len(report.splitlines()) < 2000


def test_rows_that_are_not_shown_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tokitai_cli.report.outline.MOST_ROWS", 30)
    good = [samples.case(seed=seed, id=f"good {seed}") for seed in range(40)]
    report = render(stage.assemble(samples.parts([samples.refuted(), *good])), "md").decode()
    rows = report[report.index("## Cases\n") : report.index("## Appendix")]
    assert rows.count("| verified |") == 29
    assert rows.index("| refuted |") < rows.index("| verified |")
    assert "11 more rows are in the JSON file and in CSV." in rows


def test_the_smallest_failing_shape_is_named() -> None:
    shapes = [{"m": size, "n": 64, "k": 64} for size in (64, 16, 32)]
    cases = [samples.refuted(shape=shape) for shape in shapes]
    cases.append(samples.case(shape={"m": 8, "n": 64, "k": 64}))
    report = render(stage.assemble(samples.parts(cases)), "md").decode()
    assert (
        "Smallest of the shapes at which `grad-a` fails on cpu: `m=16,n=64,k=64` "
        "(3 of 4 shapes fail)." in report
    )
    alone = render(stage.assemble(samples.parts(cases[:1])), "md").decode()
    assert "Smallest of the shapes" not in alone


def test_headers_of_the_system_are_a_count_and_one_digest() -> None:
    def page(**changes: Any) -> str:
        build = samples.build(**changes)
        return render(
            stage.assemble(samples.parts([samples.case()], builds={samples.BUILD: build})), "md"
        ).decode()

    own = {"own.h": "1" * 64}
    system = {f"/usr/include/h{at}.h": "2" * 64 for at in range(200)}
    text = page(headers=own | system, header_texts={"own.h": "int x;"})
    assert "header: `own.h`, sha256" in text
    assert "headers of compiler, system and tool: 200, sha256 over" in text
    assert "/usr/include" not in text
    other = page(headers=own | system | {"/usr/include/h3.h": "3" * 64}, header_texts={"own.h": ""})
    line = re.compile("headers of compiler.*")
    assert line.findall(text) != line.findall(other)


def test_the_share_of_correctly_rounded_elements_stands_beside_the_worst() -> None:
    text = render(stage.assemble(samples.parts([samples.case()])), "md").decode()
    assert "correctly rounded |" in text
    assert "| 0.1 % |" in text  # 3 of 4096


@pytest.mark.parametrize(
    ("value", "digits", "shown"),
    [
        (0.999999993, 3, "0.99999999"),
        (0.9996, 3, "0.9996"),
        (1.0000001, 6, "1.0000001"),
        (1.0, 3, "1"),
        (-0.99999999, 3, "-0.99999999"),
        (9.9996, 3, "10"),
        (1 - 2**-53, 3, "0.9999999999999999"),
    ],
)
def test_what_is_near_one_is_not_shown_as_one(value: float, digits: int, shown: str) -> None:
    assert number(value, digits) == shown
