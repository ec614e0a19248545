r"""LaTeX for pdflatex: a table (package booktabs), and a file of numbers that a text can \input."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tokitai_cli.core.model.wording import number, visible
from tokitai_cli.core.model.words import CLAIM_STATES
from tokitai_cli.report.raw import Raw, printer

if TYPE_CHECKING:
    from tokitai_cli.core.model.evidence import Evidence
    from tokitai_cli.core.model.judged import Number
    from tokitai_cli.report.format import ReportOptions
    from tokitai_cli.report.outline import Outline
    from tokitai_cli.report.templates import Target

_SPECIAL = {
    **{letter: f"\\{letter}" for letter in "{}#$%&_"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"{\char34}",
    "`": r"\textasciigrave{}",
    "'": "{'}",
    ",": ",{}",
    "?": "?{}",
    "!": "!{}",
    "[": "{[}",  # no option of a line break
    "]": "{]}",
    "*": "{*}",
}
# Letters beyond ASCII that pdflatex has without a package, as symbols or as a letter with an accent.
_NAMES = {
    "αβγδεζηθικλμνξπρστυφχψω": "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu "
    "xi pi rho sigma tau upsilon phi chi psi omega",
    "ΓΔΘΛΞΠΣΦΨΩ": "Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega",
    "×·±÷≤≥≠≈∞∑∏∈→←√∂∇": "times cdot pm div leq geq neq approx infty sum prod in rightarrow leftarrow "
    "surd partial nabla",
}
_SYMBOLS = {
    letter: name
    for letters, names in _NAMES.items()
    for letter, name in zip(letters, names.split(), strict=True)
}
_ACCENTS = {
    "\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0308": '"', "\u0304": "=",
    "\u0306": "u", "\u0307": ".", "\u030a": "r", "\u030b": "H", "\u030c": "v", "\u0327": "c",
}  # fmt: skip
_HYPHENS = re.compile("-(?=-)")  # two of them would be a dash
_EXPONENT = re.compile(r"e([+-])0*(\d+)$")


def table(evidence: Evidence, report_options: ReportOptions) -> Iterator[bytes]:
    r"""A tabular of variants and profiles, for \input inside a table environment."""
    from tokitai_cli.report.outline import context
    from tokitai_cli.report.templates import rendered

    yield rendered(_target(), "table.tex.j2", report_options, context(evidence)).encode()


def macros(evidence: Evidence, report_options: ReportOptions) -> Iterator[bytes]:
    """Numbers by key, each with a macro behind it."""
    from tokitai_cli.report.outline import context
    from tokitai_cli.report.templates import rendered

    told = context(evidence)
    told["numbers"] = list(_unique(_numbers(evidence, told["outline"])))
    yield rendered(_target(), "macros.tex.j2", report_options, told).encode()


@functools.cache
def _target() -> Target:
    from tokitai_cli.report.templates import Target

    return Target(__file__, printed, number=numeral, key=Raw)


def escape(text: str) -> Raw:
    """`text` as text: no command, no comment, and nothing that pdflatex has no letter for."""
    return Raw(_HYPHENS.sub("-{}", "".join(map(_letter, visible(text)))))


def _letter(letter: str) -> str:
    if letter.isascii():
        return _SPECIAL.get(letter, letter)
    if name := _SYMBOLS.get(letter):
        return f"\\ensuremath{{\\{name}}}"
    import unicodedata

    base, *marks = list(unicodedata.normalize("NFD", letter))
    if base.isascii() and base.isalpha() and len(marks) == 1 and marks[0] in _ACCENTS:
        return f"\\{_ACCENTS[marks[0]]}{{{base}}}"
    return f"{{[}}U+{ord(letter):04X}{{]}}"


def numeral(value: Number | None, digits: int = 4) -> Raw:
    """A number in mathematical form, as 4.9 x 10^-5."""
    if value is None:
        return Raw("--")
    text = number(value, digits)
    if text.lstrip("-") == "inf":
        return Raw(f"\\ensuremath{{{text.replace('inf', chr(92) + 'infty')}}}")
    if isinstance(value, str):
        return escape(text)
    power = _EXPONENT.sub(r"\\times10^{\1\2}", text).replace("{+", "{")
    return Raw(f"\\ensuremath{{{power}}}")


printed = printer(escape, numeral, "--")


def _numbers(evidence: Evidence, outline: Outline) -> Iterator[tuple[str, object]]:
    """Keys of letters, digits, - . and / with their values."""
    import statistics

    name = evidence.name
    yield f"{name}/verdict", str(evidence.verdict)
    yield f"{name}/cases", len(evidence.cases)
    for verdict, count in evidence.counts.items():
        yield f"{name}/cases/{verdict}", count
    yield f"{name}/digest", evidence.digest
    yield f"{name}/command", evidence.rerun
    for claim in evidence.claims:
        yield f"{name}/claim/{claim.name}", CLAIM_STATES[claim.supported]
    for device in outline.places:
        yield f"{name}/device/{device.name}/class", device.device_class
        yield f"{name}/device/{device.name}/compiler", device.compiler
    yield from _largest(evidence)
    for kernel, one in outline.kernels:
        yield f"{name}/{kernel}/source-sha256", one.source_sha256
        yield f"{name}/{kernel}/lowering", one.lowering
    for tally in outline.tallies:
        place = f"{name}/{tally.variant}/{tally.profile}/{tally.device}"
        yield f"{place}/cases", tally.cases
        yield f"{place}/verdict", str(tally.verdict)
        if tally.worst.output is not None and (metrics := tally.worst.output.metrics) is not None:
            yield f"{place}/max-abs", numeral(metrics.max_abs)
            yield f"{place}/max-ulp", numeral(metrics.max_ulp)
            yield f"{place}/over-bound", numeral(metrics.over_bound)
    for case in evidence.cases:
        if times := evidence.volatile.case_times_ns.get(case.key):
            yield f"{name}/time/{case.key}/median-us", numeral(statistics.median(times) / 1000)


def _largest(evidence: Evidence) -> Iterator[tuple[str, object]]:
    """The largest errors of each variant on each device, over all its cases."""
    from tokitai_cli.evidence import (
        queries,  # as in the formats beside it: `--help` needs their names
    )

    sizes: dict[str, list[Number | None]] = {}
    for case in queries.cases(evidence):
        for one in (output.metrics for output in case.outputs if output.metrics is not None):
            place = f"{evidence.name}/{case.variant}/{case.device}"
            sizes.setdefault(f"{place}/max-ulp", []).append(one.max_ulp)
            sizes.setdefault(f"{place}/over-bound", []).append(one.over_bound)
    for key, values in sizes.items():
        yield key, numeral(max(values, key=queries.magnitude))


def _unique(numbers: Iterator[tuple[str, object]]) -> Iterator[tuple[str, object]]:
    """Keys that TeX reads as they are; where two come out alike, each later one has a number."""
    seen: set[str] = set()
    for name, value in numbers:
        plain = key = re.sub(r"[^A-Za-z0-9./=@+-]+", "-", name)
        for count in itertools.count(2):
            if key not in seen:
                break
            key = f"{plain}/{count}"
        seen.add(key)
        yield key, value
