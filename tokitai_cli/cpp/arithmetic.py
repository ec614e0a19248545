"""Expressions of C++ as polynomials, each name a number of its own."""

from __future__ import annotations

import functools
from pathlib import Path

from tokitai_cli.cpp.body.polynomial import Polynomial
from tokitai_cli.cpp.body.reader import READERS
from tokitai_cli.cpp.body.walk import BudgetError, Walk
from tokitai_cli.cpp.preprocessed_unit import preprocess
from tokitai_cli.cpp.program import Program
from tokitai_cli.cpp.tree import parsed_expression


@functools.lru_cache(maxsize=1 << 12)
def polynomial_of(text: str) -> Polynomial | None:
    """The polynomial of an expression; None where the text is none, or no number that is known."""
    node = parsed_expression(text)
    if node is None:
        return None
    walk = Walk(_nothing(), READERS)
    try:
        value = walk.evaluate(node)
    except (BudgetError, RecursionError):
        return None
    known = isinstance(value, Polynomial) and not any("#" in name for name in value.names())
    return value if known and isinstance(value, Polynomial) else None


@functools.cache
def _nothing() -> Program:
    return Program(preprocess(Path("-"), text=""))
