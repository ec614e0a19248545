"""Likely values of a kernel's numbers: the host's, else by their names."""

from __future__ import annotations

import re

from tokitai_cli.cpp.source.signatures import Parameter
from tokitai_cli.drafts.known_facts import Known
from tokitai_cli.drafts.model import ScalarDraft

# By the name in lower case, without underscores and what a struct of settings is called.
_LIKELY = (
    (r"lr|learningrate|stepsize", 1e-3),
    (r"beta1|b1", 0.9),
    (r"beta2|b2", 0.999),
    (r"eps|epsilon", None),
    (r"weightdecay|wd|decay|l2", 0.01),
    (r"momentum|mom|rho", 0.9),
    (r"ignoreindex|ignorelabel|ignoreidx", -100),
    (r"base|theta|ropetheta|ropebase", 10000),
    (r"labelsmoothing|smoothing|dropout\w*|pdrop", 0.1),
    (r"negativeslope|slope", 0.01),
    (r"(?:logits?)?softcap\w*", 30),
    (r"(?:bc|biascorrection)1|(?:beta|b)1correction", 0.1),
    (r"(?:bc|biascorrection)2|(?:beta|b)2correction", 0.001),
    (r"(?:max)?(?:grad)?norm|clip\w*", 1.0),
)
_SCALE = re.compile(r"(?:^|_)(?:sm_|softmax_|attn_)?scale$")
_HEAD = re.compile(r"^k?(?:head_?)?(?:dim|size)$|^d_?(?:k|head)?$|^HS$", re.I)  # of attention


def value_of(known: Known, parameter: Parameter) -> ScalarDraft:
    """A number that is passed by value, with what is guessed of it."""
    dtype = parameter.dtypes[0]
    told, real = known.subject.host.get(parameter.name), "float" in dtype
    if told or (told == 0 and not real):  # 0 would take a term away
        return ScalarDraft(dtype, told if real else int(told), "its value, the host's")
    if _SCALE.search(parameter.name) and (head := _head(known)):
        return ScalarDraft(dtype, f"1 / sqrt({head})", "its value")
    return ScalarDraft(dtype, _likely(known, parameter, dtype), "its value")


def _head(known: Known) -> str:
    """Elements of a head of attention; empty where nothing is called so."""
    fixed = [value for name, value in known.constants.items() if _HEAD.search(name)]
    fixed = [number for value in fixed if (number := known.number(value))]
    heads = [size.name for size in known.sizes if _HEAD.search(size.name)]
    return next(reversed([*fixed, *heads]), "")


def _likely(known: Known, one: Parameter, dtype: str) -> float:
    if dtype == "bool":
        return True
    bare = {
        part.lower().replace("_", "") for part in (one.name, one.name.partition("_")[2]) if part
    }
    for words, value in _LIKELY:
        if any(re.fullmatch(words, part) for part in bare):
            return _epsilon(known) if value is None else value
    return 0.5 if "float" in dtype else 1


def _epsilon(known: Known) -> float:
    """Of optimizers, of norms without a mean, of the others."""
    others, kernel = {one.name for one in known.numbers}, known.kernel.name
    if any("beta2" in one or "lr" in one.split("_") for one in others) or "adam" in kernel.lower():
        return 1e-8
    return 1e-6 if re.search("rms|t5", kernel, re.I) else 1e-5
