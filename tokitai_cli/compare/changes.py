"""Changes of a formula before the checks: what they reject, and what nothing here can tell.

Unlike a mutant, a change may be none: the maximum that softmax subtracts can be any number. So one
that is nowhere far enough from the reference is told of, and holds no verdict up.
"""

from __future__ import annotations

import numpy as np

from tokitai_cli.compare.checks import ResolvedCheck
from tokitai_cli.compare.mutant_trial import FIRST_CHUNK, Given, MutantTrial
from tokitai_cli.compare.mutants import Mutant
from tokitai_cli.compare.target import Target
from tokitai_cli.model.case import Expectation
from tokitai_cli.model.judged import ChangesRecord


def try_changes(
    reference: Target, expectation: Expectation, checks: list[ResolvedCheck], given: Given
) -> ChangesRecord | None:
    """What becomes of each change of the formula; None where the oracle is no formula."""
    if not expectation.changes:
        return None
    found: dict[str, list[str]] = {"accepted": [], "not-eligible": []}
    for words, values in expectation.changes.items():
        mutant = Mutant(words, words, values.reshape(-1).__getitem__)
        trial = MutantTrial(mutant, checks, reference.form is None, given)
        with np.errstate(all="ignore"):
            for chunk in reference.chunks(FIRST_CHUNK):
                trial.reference_chunk(chunk)
                if trial.settled:
                    break
        trial.close()
        found.setdefault(trial.record(reference.name).status, []).append(words)
    return ChangesRecord(
        output=reference.name,
        tried=len(expectation.changes),
        accepted=found["accepted"],
        untold=found["not-eligible"],
    )
