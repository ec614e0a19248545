"""Judging what a kernel gave back: one case by itself, and the vacuity of groups of cases."""

from __future__ import annotations

from tokitai_cli.compare.judgement import Judgement, judge, judge_another
from tokitai_cli.compare.vacuity import groups, settle
from tokitai_cli.compare.values import number

__all__ = ["Judgement", "groups", "judge", "judge_another", "number", "settle"]
