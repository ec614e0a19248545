"""Functions that formulas of users import: the public name of `tokitai_cli.oracles.formula`."""

from tokitai_cli.oracles.formula import (
    Bounds,
    Decision,
    NoRuleError,
    Precision,
    Tracked,
    allowing,
    bounds,
    erf,
    known_input,
    loosen,
    rsqrt,
    sigmoid,
    stored,
    track,
)

__all__ = [
    "Bounds",
    "Decision",
    "NoRuleError",
    "Precision",
    "Tracked",
    "allowing",
    "bounds",
    "erf",
    "known_input",
    "loosen",
    "rsqrt",
    "sigmoid",
    "stored",
    "track",
]
