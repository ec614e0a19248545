"""Judging what a kernel gave back in one case."""

from __future__ import annotations

from tokitai_cli.judge.approximation import APPROXIMATIONS, judge_approximation
from tokitai_cli.judge.checks.numbers import number
from tokitai_cli.judge.flat import covered
from tokitai_cli.judge.judgement import (
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
