"""Judging what a kernel gave back in one case."""

from __future__ import annotations

from tokitai_cli.judge.approximation import APPROXIMATIONS, judge_approximation
from tokitai_cli.judge.checks.numbers import number
from tokitai_cli.judge.compiled_walk import check_native
from tokitai_cli.judge.failures import STEP_FINDINGS, Failure, Kind, failure_of
from tokitai_cli.judge.flat import covered
from tokitai_cli.judge.hanging import (
    CONFIRM,
    GuessedSize,
    Hanging,
    guessed_sizes,
    hanging,
    in_light_of_guesses,
)
from tokitai_cli.judge.judgement import (
    Judgement,
    judge,
    judge_another,
    judge_other_inputs,
    judge_right,
)
from tokitai_cli.judge.other_seed import judge_other_seed
from tokitai_cli.judge.roundings import HALF_UP

__all__ = [
    "APPROXIMATIONS",
    "CONFIRM",
    "HALF_UP",
    "STEP_FINDINGS",
    "Failure",
    "GuessedSize",
    "Hanging",
    "Judgement",
    "Kind",
    "check_native",
    "covered",
    "failure_of",
    "guessed_sizes",
    "hanging",
    "in_light_of_guesses",
    "judge",
    "judge_another",
    "judge_approximation",
    "judge_other_inputs",
    "judge_other_seed",
    "judge_right",
    "number",
]
