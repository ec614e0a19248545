"""Profiles of a draft: values at which kernels of its kind often fail."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tokitai_cli.core.model.draws import CANDIDATES
from tokitai_cli.cpp.telling_values import Telling, telling_values
from tokitai_cli.drafts.array_draws import draw_of
from tokitai_cli.drafts.known_facts import Known
from tokitai_cli.drafts.model import Flow, Guess, ProfileDraft

_SMALL = {"kind": "uniform", "lo": 0, "hi": 1e-12}  # of what is not below 0, beside small values


def profiles_of(known: Known) -> dict[str, ProfileDraft]:
    """All profiles of a draft; for a trial, the first alone."""
    drawn = {one.name: told for one in known.read if (told := draw_of(known, one))}
    found = {"normal": ProfileDraft("normal", "N(0,1)", inputs=Guess(drawn, "ranges"))}
    for one in () if known.origin.room else telling(known):
        name = one.profile
        draw, words = CANDIDATES[name]
        told = msgspec.to_builtins(draw)
        inputs: Mapping[str, Flow] = drawn
        if name == "tiny":
            inputs = {key: _SMALL if flow == {"kind": "uniform"} else flow
                      for key, flow in drawn.items()}  # fmt: skip
        found[name] = ProfileDraft(told, words, f"that it {one.does}", Guess(inputs, "ranges"))
    return found


def telling(known: Known) -> list[Telling]:
    """Profiles on which a kernel of this kind shows what others hide, and why."""
    floats = {known.path(one.name) for one in known.read if "float" in "".join(one.dtypes)}
    written = [one.dtypes[0] for one in known.written if one.dtypes]
    numbers = [one.name for one in known.numbers]
    return [*telling_values(known.numerics, known.values, sorted(floats), written, numbers)]
