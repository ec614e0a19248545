"""Arrays from anywhere against the bound that follows from a formula, for test suites.

    from tokitai_cli.testing import assert_matches, bound

    def softmax(x):
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)

    assert_matches(my_softmax(x), softmax, {"x": x})

No kernel is built and no process started; the formula runs in this one.
"""

from __future__ import annotations

from tokitai_cli.testing.allowances import Unit
from tokitai_cli.testing.arrays import as_numpy
from tokitai_cli.testing.check import assert_matches, bound
from tokitai_cli.testing.outcome import Bound, Match, MismatchError, VacuousError

__all__ = [
    "Bound",
    "Match",
    "MismatchError",
    "Unit",
    "VacuousError",
    "as_numpy",
    "assert_matches",
    "bound",
]
