"""What came of a comparison, in words and as a table for notebooks."""

from __future__ import annotations

import html
from typing import Any

import msgspec
from numpy.typing import NDArray

from tokitai_cli.core.errors import UsageError
from tokitai_cli.core.model.judged import ChangesRecord, MutantRecord, OutputRecord
from tokitai_cli.core.model.wording import number, plural

_MOST = 8


class Bound(msgspec.Struct, frozen=True, eq=False):
    """What a right kernel may give for one output, element by element."""

    #: The formula's value, float64 for floats, not rounded to the output's dtype.
    reference: NDArray[Any]
    #: Largest |got - reference| of a right kernel, the last rounding included; 0 for integers.
    limit: NDArray[Any]


class Match(msgspec.Struct, frozen=True, eq=False):
    """A comparison in which every element was within the bound, and which would have seen others."""

    #: A record of each output: checks, errors, worst elements.
    outputs: list[OutputRecord]
    #: Wrong outputs that the comparison was tried on, and what became of each.
    mutants: list[MutantRecord]
    #: Changes of the formula that it was tried on, by output.
    changes: list[ChangesRecord]

    def __repr__(self) -> str:
        return "; ".join(map(_line, self.outputs)) + f"; {noticed(self.mutants, self.changes)}"

    def _repr_html_(self) -> str:
        """A table, for notebooks."""
        heads = ("output", "dtype", "elements", "error / bound", "max ulp", "correctly rounded")
        rows = [[html.escape(cell) for cell in _cells(one)] for one in self.outputs]
        body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
        head = "".join(f"<th>{one}</th>" for one in heads)
        told = html.escape(noticed(self.mutants, self.changes))
        return f"<table><tr>{head}</tr>{body}</table><p>{told}</p>"


class MismatchError(AssertionError):
    """An array is not what a right kernel may give. `outputs` are the records of the comparison."""

    def __init__(self, message: str, outputs: list[OutputRecord]) -> None:
        super().__init__(message)
        self.outputs = outputs


class VacuousError(UsageError):
    """The comparison would also pass wrong arrays, so that passing it means nothing."""


def mismatch(
    reason: str,
    outputs: list[OutputRecord],
    mutants: list[MutantRecord],
    changes: list[ChangesRecord],
) -> str:
    """The words of a failure: what failed where, the worst elements, what would have been noticed."""
    lines = [reason]
    for output in outputs:
        if output.pattern is not None:
            lines.append(f"  {output.name}: {output.pattern.kind}, {output.pattern.words}")
        for check in output.checks:
            lines += [
                f"  {output.name}{one.index}: got {number(one.got)} (bits {one.got_bits}), right is "
                f"{number(one.want)}, off by {number(one.error)}, at most {number(one.limit)} allowed"
                for one in check.worst[:_MOST]
                if not check.passed and not float(one.error) <= float(one.limit)
            ]
    return "\n".join([*lines, f"  {noticed(mutants, changes)}"])


def noticed(mutants: list[MutantRecord], changes: list[ChangesRecord]) -> str:
    """Wrong outputs that the comparison refuses, in a sentence."""
    kinds = dict.fromkeys(one.kind for one in mutants if one.status == "rejected")
    names = ", ".join([*kinds][:_MOST]) + (", ..." if len(kinds) > _MOST else "")
    tried = sum(one.tried for one in changes)
    seen = sum(one.tried - len(one.accepted) - len(one.undetected) for one in changes)
    words = f"wrong outputs that it would detect: {names or 'none'}"
    return f"{words}; {seen} of {plural(tried, 'change')} of the formula" if tried else words


def _line(output: OutputRecord) -> str:
    name, _, elements, over, ulp, exact = _cells(output)
    told = f", {over} of the bound at most" if over != "-" else ""
    return (
        f"{name} matches: {elements} elements{told}, {ulp} ulp at most, {exact} correctly rounded"
    )


def _cells(output: OutputRecord) -> list[str]:
    metrics = output.metrics
    if metrics is None:
        return [output.name, output.dtype, str(output.elements), "-", "-", "-"]
    finite = sum(metrics.ulp_histogram.values())
    share = f"{metrics.exact_elements / finite:.1%}" if finite else "-"
    over = "-" if metrics.over_bound is None else number(metrics.over_bound, 3)
    return [
        *(output.name, output.dtype, str(output.elements)),
        *(over, number(metrics.max_ulp, 3), share),
    ]
