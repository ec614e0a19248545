"""Likely values of a kernel's numbers, by their names."""

from __future__ import annotations

import re

# By the name in lower case, without underscores and what a struct of settings is called.
_LIKELY = (
    (r"lr|learningrate|stepsize", "1e-3"),
    (r"beta1|b1", "0.9"),
    (r"beta2|b2", "0.999"),
    (r"eps|epsilon", ""),
    (r"weightdecay|wd|decay|l2", "0.01"),
    (r"momentum|mom|rho", "0.9"),
    (r"ignoreindex|ignorelabel|ignoreidx", "-100"),
    (r"base|theta|ropetheta|ropebase", "10000"),
    (r"labelsmoothing|smoothing|dropout\w*|pdrop", "0.1"),
    (r"negativeslope|slope", "0.01"),
    (r"(?:logits?)?softcap\w*", "30"),
    (r"(?:bc|biascorrection)1|(?:beta|b)1correction", "0.1"),
    (r"(?:bc|biascorrection)2|(?:beta|b)2correction", "0.001"),
    (r"(?:max)?(?:grad)?norm|clip\w*", "1.0"),
)


def likely(name: str, dtype: str, kernel: str, others: set[str]) -> str:
    """A value as YAML: of `name` in a kernel of that name, beside other numbers."""
    if dtype == "bool":
        return "true"
    bare = {one.lower().replace("_", "") for one in (name, name.partition("_")[2]) if one}
    for words, value in _LIKELY:
        if any(re.fullmatch(words, one) for one in bare):
            return value or _epsilon(kernel, others)
    return "0.5" if "float" in dtype else "1"


def _epsilon(kernel: str, others: set[str]) -> str:
    """Of optimizers, of norms without a mean, of the others."""
    if any("beta2" in one or "lr" in one.split("_") for one in others) or "adam" in kernel.lower():
        return "1e-8"
    return "1e-6" if re.search("rms|t5", kernel, re.I) else "1e-5"
