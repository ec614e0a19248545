"""Judging what a kernel gave back in one case."""

from __future__ import annotations

from tokitai_cli.checks.values import number
from tokitai_cli.compare.approximation import APPROXIMATIONS, judge_approximation
from tokitai_cli.compare.flat import covered
from tokitai_cli.compare.judgement import (
    Judgement,
    judge,
    judge_another,
    judge_other_inputs,
    judge_right,
)

__all__ = [
    "APPROXIMATIONS",
    "Judgement",
    "covered",
    "judge",
    "judge_another",
    "judge_approximation",
    "judge_other_inputs",
    "judge_right",
    "number",
]
