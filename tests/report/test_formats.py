"""Report formats: each is what its readers expect, and none is broken by text of strangers."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
import shutil
import subprocess
import time
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest
from matplotlib.figure import Figure as MplFigure
from matplotlib.patches import Rectangle

from tests import evidence_samples as samples
from tests.report.test_report import HOSTILE, hostile_evidence
from tokitai_cli import evidence as stage
from tokitai_cli.cli.app import run
from tokitai_cli.core.errors import UsageError
from tokitai_cli.core.model.evidence import CaseRecord, Evidence
from tokitai_cli.core.model.judged import HeatRecord
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.report import (
    EVIDENCE_FORMATS,
    ReportOptions,
    canvas,
    card,
    columns,
    figures,
    file_name,
    listing,
    render,
)
from tokitai_cli.report.card import allowance_words
from tokitai_cli.report.formats import latex, latex_page

VOID = {"meta", "wbr"}
TEXTS = [name for name in EVIDENCE_FORMATS if name != "figures"]
NAMES = 'a<b>|c_d%e&f#g{h}\\i $j ~k ^l \u00e9\u4e2d\u03b1 "m" --n [o] *p `q`'


class Page(HTMLParser):
    """Checks that every element is closed in order, and keeps text, tags and attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.text += data


@pytest.mark.parametrize("verdict", list(Verdict))
@pytest.mark.parametrize("kind", TEXTS)
def test_every_format_tells_of_every_verdict(kind: str, verdict: Verdict) -> None:
    text = render(samples.sample(verdict), kind).decode()
    if kind in ("sarif", "intoto", "json", "codequality"):
        json.loads(text)
    if kind == "junit":
        root = ET.fromstring(text)
        fine = verdict in (Verdict.VERIFIED, Verdict.EXPECTED_FAILURE, Verdict.BUILT)
        bad = int(root.get("failures", "")) + int(root.get("errors", ""))
        assert (bad == 0) == fine
        assert len(root.findall(".//testcase")) == int(root.get("tests", ""))
    if kind == "html":
        Page(text)
    if kind == "intoto":
        want = {"verified": "PASSED", "expected-failure": "WARNED"}.get(verdict, "FAILED")
        assert json.loads(text)["predicate"]["result"] == want
    if kind == "sarif":
        results = json.loads(text)["runs"][0]["results"]
        told = [case for case in samples.sample(verdict).cases if case.reads != "verified"]
        assert len(results) == len(told)
    if kind == "codequality":
        found = json.loads(text)
        assert bool(found) == bool(verdict.exit_code)
        for one in found:
            assert one["severity"] in ("info", "minor", "major", "critical")
            assert one["location"]["lines"]["begin"] >= 1


def test_html_holds_nothing_that_acts_or_loads() -> None:
    page = Page(render(hostile_evidence(), "html").decode())
    tags = {tag for tag, _ in page.tags}
    assert not tags & {"script", "img", "link", "iframe", "b", "object"}
    assert not any(name.startswith("on") for _, attrs in page.tags for name in attrs)
    links = [attrs["href"] for tag, attrs in page.tags if tag == "a"]
    assert links
    assert all(link is not None and link.startswith("#") for link in links)
    assert "<script>alert(1)</script>" in page.text
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", page.text)


def test_html_can_be_read_aloud() -> None:
    page = Page(render(samples.sample(Verdict.REFUTED), "html").decode())
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(below - above <= 1 for above, below in itertools.pairwise(levels))
    assert ("html", {"lang": "en"}) in page.tags
    assert all(attrs.get("scope") for tag, attrs in page.tags if tag == "th")
    ids = {attrs["id"] for _, attrs in page.tags if "id" in attrs}
    assert {f"#{name}" for name in ids} == {a["href"] for tag, a in page.tags if tag == "a"}


def test_the_first_page_says_what_a_reviewer_needs() -> None:
    text = render(samples.sample(Verdict.VERIFIED), "md").decode()
    first = text[: text.index("## Variants and profiles")]
    for words in (
        "verified on cpu (host-simt)", "Backward of a product", "grad_A[m,k] = sum over n",
        samples.SOURCE[:16], "hip.gemm_bw.grad_a", "worst case over every rounding of the sum",
        "numerical-agreement | supported", "memory-safe | not supported", "## Not claimed",
        "--device cpu",
    ):  # fmt: skip
        assert words in first, words
    order = [
        "What was judged",
        "Limits",
        "Claims",
        "Not claimed",
        "Run it again",
        "Cases",
        "Appendix",
    ]
    places = [text.index(f"\n## {name}\n") for name in order]
    assert places == sorted(places)


SPELLED = NAMES + "\x1b[31m\x00\x9b\u202e]]><!--</testcase>"


def _named_by_strangers() -> Evidence:
    """Cases that failed, crashed and passed, with names and reasons of every kind of character."""
    hostile = hostile_evidence()
    cases = [
        msgspec.structs.replace(case, variant=SPELLED, profile=SPELLED, id=f"{SPELLED}{at}")
        for at, case in enumerate(hostile.cases)
    ]
    return msgspec.structs.replace(hostile, name=SPELLED, cases=cases)


def _plain(text: str) -> bool:
    """Whether no character of a text moves the cursor or the reading direction."""
    return not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)


def test_junit_keeps_hostile_names_as_text() -> None:
    evidence = _named_by_strangers()
    text = render(evidence, "junit").decode()
    assert _plain(text)
    root = ET.fromstring(text)
    tests = root.findall(".//testcase")
    assert len(tests) == len(evidence.cases) == int(root.get("tests", ""))
    assert {one.tag for one in root.iter()} <= {
        *("testsuites", "testsuite", "properties", "property", "testcase", "failure", "error"),
        *("skipped", "system-out", "system-err"),
    }
    for at, test in enumerate(tests):
        whole = " ".join(filter(None, (*test.attrib.values(), *test.itertext())))
        assert f"{NAMES}" in whole, at


def test_json_for_other_programs_keeps_hostile_names_as_text() -> None:
    evidence = _named_by_strangers()
    found = json.loads(render(evidence, "sarif"))["runs"][0]
    assert len(found["results"]) == len([one for one in evidence.cases if one.reads != "verified"])
    for one in found["results"]:
        assert _plain(one["message"]["text"])
        assert one["ruleId"] in {rule["id"] for rule in found["tool"]["driver"]["rules"]}
        for place in one["locations"]:
            uri = place["physicalLocation"]["artifactLocation"]["uri"]
            assert re.fullmatch(r"[A-Za-z0-9._~!$&'()*+,;=:@/%-]+", uri), uri
    told = json.loads(render(evidence, "intoto"))
    assert told["_type"] == "https://in-toto.io/Statement/v1"
    assert all(set(one) == {"name", "digest"} for one in told["subject"])
    predicate = told["predicate"]
    tests = [*predicate["passedTests"], *predicate["failedTests"], *predicate["warnedTests"]]
    assert len(tests) == len(evidence.cases)


def test_csv_is_read_back_and_computes_nothing() -> None:
    evidence = hostile_evidence()
    rows = list(csv.reader(io.StringIO(render(evidence, "csv").decode(), newline="")))
    assert len(rows) == 1 + sum(max(len(case.outputs), 1) for case in evidence.cases)
    assert {len(row) for row in rows} == {len(rows[0])}
    one = samples.case(profile="=1+1", reason='@x, "y"', id="-z")
    told = render(stage.assemble(samples.parts([one])), "csv").decode()
    row = next(csv.DictReader(io.StringIO(told.partition("\n")[0] + "\n" + told.splitlines()[1])))
    assert (row["profile"], row["reason"]) == ("'=1+1", '\'@x, "y"')
    assert float(row["over_bound"]) == 0.4981


def test_sarif_points_at_the_kernel() -> None:
    (one, *_) = json.loads(render(samples.sample(Verdict.REFUTED), "sarif"))["runs"][0]["results"]
    assert one["level"] == "error"
    place = one["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "gemm_bw.hip"


def test_templates_of_a_user_go_before_the_shipped_ones(tmp_path: Path) -> None:
    evidence = samples.sample(Verdict.VERIFIED)
    report_options = ReportOptions(templates=tmp_path)
    (tmp_path / "device.j2").write_text("{{ li('mine: ' ~ device.device_class) }}\n", "utf-8")
    assert "- mine: host-simt" in render(evidence, "md", report_options).decode()
    (tmp_path / "table.tex.j2").write_text("{{ evidence.name ~ '_' }}", "utf-8")
    assert render(evidence, "latex", report_options) == b"gemm-bw\\_"
    for fault in ("{{ nothing }}", "{% for %}", "{{ evidence.__class__.__mro__ }}", "{{ 1/0 }}"):
        (tmp_path / "table.tex.j2").write_text(fault, "utf-8")
        with pytest.raises(UsageError, match="template cannot be used"):
            render(evidence, "latex", ReportOptions(templates=tmp_path, plots=fault == "{% for %}"))


def test_a_list_of_formats_goes_to_a_folder(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    stage.write(samples.sample(Verdict.VERIFIED), path)
    kinds = ",".join(EVIDENCE_FORMATS)
    assert run(["report", str(path), "--format", kinds]) == 2
    assert run(["report", str(path), "--format", kinds, "--out", str(tmp_path)]) == 0
    made = {file_name("run", kind) for kind in EVIDENCE_FORMATS}
    assert {one.name for one in tmp_path.iterdir()} == made


def test_macros_hold_the_largest_of_all_profiles() -> None:
    text = render(samples.sample(Verdict.REFUTED), "macros").decode()
    assert "gemm-bw/grad-a/cpu/over-bound\\endcsname{\\ensuremath{2048}}" in text
    assert "gemm-bw/grad-a/normal/cpu/over-bound\\endcsname{\\ensuremath{0.4981}}" in text
    keys = re.findall(r"tokitai:(\S+)\\endcsname\{", text)
    assert len(set(keys)) == len(keys)


def test_latex_escapes_everything() -> None:
    assert latex.escape("a_b%c&d#e$f{g}") == r"a\_b\%c\&d\#e\$f\{g\}"
    assert latex.escape("\\input|x") == r"\textbackslash{}input\textbar{}x"
    assert latex.escape("\u00e9\u03b1\u4e2d--") == r"\'{e}\ensuremath{\alpha}{[}U+4E2D{]}-{}-"
    assert latex.numeral(4.9e-05) == r"\ensuremath{4.9\times10^{-5}}"
    assert latex.numeral("inf") == r"\ensuremath{\infty}"


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex here")
def test_latex_compiles(tmp_path: Path) -> None:
    """Table and macros of hostile evidence, with names of every character that TeX reads."""
    hostile = hostile_evidence()
    cases = [
        msgspec.structs.replace(case, variant=NAMES, profile=HOSTILE) for case in hostile.cases
    ]
    evidence = msgspec.structs.replace(hostile, cases=cases)
    for kind in ("latex", "macros", "appendix"):
        (tmp_path / file_name("t", kind)).write_bytes(render(evidence, kind))
    key = re.search(r"tokitai:(\S+/digest)", (tmp_path / "t.macros.tex").read_text("utf-8"))
    assert key is not None
    text = (
        "\\documentclass{article}\\usepackage[T1]{fontenc}\n"
        "\\usepackage{booktabs,longtable,array,xcolor}\\input{t.macros}\\begin{document}\n"
        f"\\input{{t}} \\tokitai{{{key[1]}}} \\input{{t.appendix}}\\end{{document}}\n"
    )
    (tmp_path / "main.tex").write_text(text, "utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "main.tex"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:]
    if shutil.which("pdftotext"):
        told = subprocess.run(
            ["pdftotext", "main.pdf", "-"], cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout
        assert evidence.digest[:30] in told.replace("\n", "")


@pytest.mark.skipif(
    not (shutil.which("pdflatex") and shutil.which("pdftotext")), reason="no pdflatex here"
)
def test_the_authors_own_heading_stays_with_the_appendix(tmp_path: Path) -> None:
    """A section right before the part, at several heights of a page; and long names of the picture."""
    whole = samples.sample(Verdict.VERIFIED)
    cases = [
        msgspec.structs.replace(
            case, profile="a profile with a long name on a device of a long name"
        )
        for case in whole.cases
    ]
    evidence = msgspec.structs.replace(whole, cases=cases)
    (tmp_path / file_name("t", "appendix")).write_bytes(render(evidence, "appendix"))
    tries = "".join(
        f"\\newpage\\mbox{{}}\\vspace*{{{height}\\textheight}}\\section{{Mine}}\\input{{t.appendix}}\n"
        for height in (0.55, 0.6, 0.65, 0.7, 0.75, 0.8)
    )
    text = (
        "\\documentclass{article}\\usepackage[T1]{fontenc}\n"
        "\\usepackage{booktabs,longtable,array,xcolor}\\begin{document}\n"
        f"{tries}\\end{{document}}\n"
    )
    (tmp_path / "main.tex").write_text(text, "utf-8")
    for command in (
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "main.tex"],
        ["pdftotext", "main.pdf", "main.txt"],
    ):
        subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120, check=True)
    pages = (tmp_path / "main.txt").read_text("utf-8").split("\f")
    below = [page.split("Mine", 1)[1] for page in pages if "Mine" in page]
    assert len(below) == 6
    assert all(f"{evidence.name}: " in one for one in below)
    log = (tmp_path / "main.log").read_text("latin-1")
    wide = [float(one) for one in re.findall(r"Overfull \\hbox \(([\d.]+)pt", log)]
    assert max(wide, default=0.0) < 20


def test_code_in_words_is_code_in_latex() -> None:
    said = str(latex_page.row("write `a_b`", "one ` alone"))
    assert "write \\texttt{a\\_" in said
    assert "one \\textasciigrave{} alone" in said


def test_no_word_of_the_appendix_is_wider_than_its_column() -> None:
    rows = "".join(
        latex_page.row(*cells)
        for cells in (
            ["grad-a", "reference", "a sentence that takes most of the line " * 3, "7"],
            ["b", "x_y", "short", "12"],
        )
    )
    text = str(latex_page.table("variant", "against", "why", ">cases", caller=lambda: rows))
    widths = [float(one) for one in re.findall(r"p\{([\d.]+)\\linewidth\}", text)]
    letters = [80 * one for one in widths]
    assert letters[0] > len("variant") - 0.1
    assert letters[1] > len("reference") - 0.1
    assert sum(widths) + 3 * 0.025 <= 1
    assert max(widths) == widths[2]


def test_tables_lose_columns_of_nothing_and_of_zeros() -> None:
    rows = "".join(
        columns.joined(cells) for cells in (["a", "-", "0", "0", "7"], ["b", "", "0", "-", "-"])
    )
    heads, cells = columns.table(["x", "none", ">zeros", "+>kept", ">some"], rows)
    assert [(head.name, head.number) for head in heads] == [
        ("x", False),
        ("kept", True),
        ("some", True),
    ]
    assert cells == [["a", "0", "7"], ["b", "-", "-"]]


def test_listings_are_whole_lines() -> None:
    code = 'def f(x):\n    """Two\n    lines."""\n    return x + 1  # why\n'
    rows = listing.pieces(code)
    assert ["".join(text for _, text in row) for row in rows] == code.splitlines()
    assert ("keyword", "def") in rows[0]
    assert ("text", '    lines."""') in rows[2]
    assert ("comment", "# why") in rows[3]
    assert listing.pieces("def (:\n'") == [[("", "def (:")], [("", "'")]]


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [(0, 7, "0 %"), (7, 7, "100 %"), (999_999, 1_000_000, "99.9999 %"), (1, 3, "33.3 %")],
)
def test_shares_are_all_or_none_only_where_they_are(part: int, whole: int, text: str) -> None:
    assert card.percent(part, whole) == text


def test_the_first_page_says_what_was_executed_and_what_it_ignores() -> None:
    output = samples.output(
        metrics=msgspec.structs.replace(samples.METRICS, allowance=0.123), independent=["eps"]
    )
    parts = samples.parts([samples.case(outputs=[output])])
    assert parts.contract is not None
    variants = {
        name: msgspec.structs.replace(one, code="def f(p, i, s):\n    return {}")
        for name, one in parts.contract.variants.items()
    }
    contract = msgspec.structs.replace(parts.contract, variants=variants)
    evidence = stage.assemble(msgspec.structs.replace(parts, contract=contract))
    for kind in ("md", "html", "appendix"):
        text = re.sub(r"<[^>]*>|\\\w+|[{}]", "", render(evidence, kind).decode())
        assert "12.3" in text
        assert "does not depend on eps" in text
        assert "return" in text
    told = dict(card.card(evidence, evidence.cases))
    assert told["error allowance"] == "12.3 % of it is used"
    assert allowance_words(2.5) == "exceeded 2.5 times"
    assert allowance_words("inf") == "exceeded: no multiple of it would be enough"
    assert told["reference ignores"] == "eps (grad-a)"


def test_formats_of_500_cases_take_seconds() -> None:
    cases = [samples.case(seed=seed, id=f"case {seed}") for seed in range(500)]
    evidence = stage.assemble(samples.parts(cases))
    start = time.process_time()
    for kind in TEXTS:
        render(evidence, kind)
    assert time.process_time() - start < 5


def test_pictures_stand_in_the_page_with_words(tmp_path: Path) -> None:
    """Names are text in them; ids of one are not those of another; the same twice."""
    pytest.importorskip("matplotlib")
    heat = HeatRecord(unit="bound", rows=64, columns=64, levels=["am", ".z"])
    metrics = msgspec.structs.replace(
        samples.METRICS, heat=heat, bound_histogram={"0.5": 4000, "1": 96}
    )
    cases = [
        samples.case(variant=name, outputs=[samples.output(metrics=metrics)], id=f"{name}/1")
        for name in ("$x^{", "<b>&")
    ]
    evidence = stage.assemble(samples.parts(cases))
    text = render(evidence, "html", ReportOptions(plots=True))
    assert text == render(evidence, "html", ReportOptions(plots=True))
    page = Page(text.decode())
    pictures = [attrs for tag, attrs in page.tags if tag == "figure" and "role" in attrs]
    assert len(pictures) == 5
    assert all(attrs["role"] == "img" and attrs["aria-label"] for attrs in pictures)
    ids = [attrs["id"] for tag, attrs in page.tags if "id" in attrs]
    assert len(set(ids)) == len(ids)
    assert "<b>&" in page.text
    assert "$x^{" in page.text
    assert "mathdefault" not in page.text
    assert b"currentColor" in text
    assert canvas._INK.encode() not in text
    assert render(evidence, "figures").count(b"/Type /Page ") == 5


def test_pictures_hold_every_count_and_leave_out_what_shows_nothing() -> None:
    heat = HeatRecord(unit="bound", rows=1, columns=1, levels=["m"])
    bins = {"0": 7, "1": 3, format(2.0**900, ".17g"): 2, "inf": 1}
    metrics = msgspec.structs.replace(samples.METRICS, heat=heat, ulp_histogram=bins)
    single = msgspec.structs.replace(samples.output(metrics=metrics), elements=1, shape=[1])
    evidence = stage.assemble(samples.parts([samples.case(outputs=[single])]))
    drawn = {one.caption: MplFigure().add_subplot() for one in figures.figures_of(evidence)}
    for one in figures.figures_of(evidence):
        one.draw(drawn[one.caption])
    assert not any("largest error of each cell" in caption for caption in drawn)
    (ulp,) = [axes for caption, axes in drawn.items() if "error in ulp" in caption]
    bars = [bar.get_height() for bar in ulp.patches if isinstance(bar, Rectangle)]
    assert sum(bars) == sum(bins.values())
    labels = [label.get_text() for label in ulp.get_xticklabels()]
    assert labels[0] == "0"


def test_several_formats_make_their_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stage.write(samples.sample(Verdict.VERIFIED), tmp_path / "r.json")
    words = ["report", str(tmp_path / "r.json"), "--format", "md,csv", "--out"]
    assert run([*words, str(tmp_path / "new" / "deep")]) == 0
    assert {one.name for one in (tmp_path / "new" / "deep").iterdir()} == {"r.md", "r.csv"}
    (tmp_path / "file").write_text("")
    assert run([*words, str(tmp_path / "file")]) == 2
    assert "is a file" in capsys.readouterr().err


def chromium() -> list[str]:
    """Command of a browser without a window."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("no chromium here")
    quiet = ["background-networking", "component-update", "sync", "gpu", "quic"]
    return [
        program,
        "--headless",
        "--no-sandbox",
        "--no-first-run",
        *(f"--disable-{one}" for one in quiet),
    ]


def twenty() -> list[CaseRecord]:
    shapes = [{"m": 16 * at, "n": 64, "k": 64} for at in range(1, 21)]
    return [samples.case(shape=shape) for shape in shapes]


@pytest.mark.slow
def test_a_report_of_20_cases_is_three_pages_on_paper(tmp_path: Path) -> None:
    (tmp_path / "r.html").write_bytes(render(stage.assemble(samples.parts(twenty())), "html"))
    command = [*chromium(), f"--user-data-dir={tmp_path / 'profile'}", "--no-pdf-header-footer"]
    command += [f"--print-to-pdf={tmp_path / 'r.pdf'}", (tmp_path / "r.html").as_uri()]
    subprocess.run(command, capture_output=True, check=True, timeout=120)
    data = (tmp_path / "r.pdf").read_bytes()
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", data)) <= 3
    if shutil.which("pdftotext") is None:
        pytest.skip("no pdftotext here to read the first page")
    first = ["pdftotext", "-l", "1", str(tmp_path / "r.pdf"), "-"]
    text = subprocess.run(first, capture_output=True, check=True, text=True).stdout
    wanted = ("What was judged", "Limits", "Claims", "Not claimed", "Run it again", "--device")
    assert [one for one in wanted if one not in text] == []


@pytest.mark.slow
def test_500_cases_are_painted_within_a_second(tmp_path: Path) -> None:
    """By the browser's own clock, which a script beside the page asks: the page itself has none."""
    cases = [samples.case(seed=seed, id=f"case {seed}") for seed in range(500)]
    page = render(stage.assemble(samples.parts(cases)), "html").decode()
    page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
    asked = (
        "<script>new PerformanceObserver(list => { for (const one of list.getEntries()) "
        "console.log(`painted ${one.startTime}`); })"
        ".observe({type: 'paint', buffered: true});</script></body>"
    )
    (tmp_path / "r.html").write_text(page.replace("</body>", asked), "utf-8")
    command = [*chromium(), f"--user-data-dir={tmp_path / 'profile'}", "--enable-logging=stderr"]
    command += [f"--screenshot={tmp_path / 'r.png'}", (tmp_path / "r.html").as_uri()]
    times = []
    for _ in range(3):  # others may be at work
        done = subprocess.run(command, capture_output=True, check=True, timeout=120, text=True)
        painted = re.search(r"painted ([\d.]+)", done.stderr)
        assert painted is not None
        times.append(float(painted[1]))
    assert min(times) < 1000
