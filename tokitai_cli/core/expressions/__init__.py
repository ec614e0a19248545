"""The language of sizes (see `parser` for its grammar), and its values."""

from tokitai_cli.core.expressions.evaluation import (
    MAX_VALUE,
    evaluate,
    evaluate_exactly,
    evaluate_real,
    holds,
)
from tokitai_cli.core.expressions.parser import (
    FUNCTIONS,
    KEYWORDS,
    MAX_DEPTH,
    MAX_LENGTH,
    caps_of,
    is_comparison,
    names_in,
)

__all__ = [
    "FUNCTIONS",
    "KEYWORDS",
    "MAX_DEPTH",
    "MAX_LENGTH",
    "MAX_VALUE",
    "caps_of",
    "evaluate",
    "evaluate_exactly",
    "evaluate_real",
    "holds",
    "is_comparison",
    "names_in",
]
