"""Error bounds as a consequence of a formula in numpy.

    from tokitai_cli.formula import bounds, erf, loosen, rsqrt, sigmoid, stored, track
 `track(x)` starts: plain numpy on its result carries, beside the float64 value, what a float32 kernel
may give. `bounds(y)` ends: the reference, and the error in front of the last rounding. `erf`, `rsqrt`,
`sigmoid` work on plain arrays too. `stored` and `loosen` say what a formula cannot know.
"""

from __future__ import annotations

from tokitai_cli.oracles.formula import relations
from tokitai_cli.oracles.formula.bounds import Bounds, bounds
from tokitai_cli.oracles.formula.known import NoRuleError
from tokitai_cli.oracles.formula.named import erf, rsqrt, sigmoid
from tokitai_cli.oracles.formula.precision import Precision, allowing
from tokitai_cli.oracles.formula.tracked import Decision, Tracked, known_input, track
from tokitai_cli.oracles.formula.twofold import on_both

loosen, stored = on_both(relations.loosen), on_both(relations.stored)

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
