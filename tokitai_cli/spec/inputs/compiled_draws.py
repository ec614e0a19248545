"""Whether compiled words and normal numbers are what numpy's code makes, on drawn and special words."""

from __future__ import annotations

import numpy as np

from tokitai_cli.core import native
from tokitai_cli.core.numerics import bit_source
from tokitai_cli.spec.inputs.transforms import normal, words

# No multiple of what a generator or a vector makes at a time.
_COUNT = 50_003
# Where the upper bits put a number at the middle, beside it, and at both ends.
_SPECIAL = (0, 1, 1 << 12, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)


def check_native(library: native.Library) -> None:
    """Raise MismatchError for what differs."""
    made = []
    for used in (None, library):
        with native.by(used):
            source = bit_source("check")
            source.advance(3)
            made.append([words(source, _COUNT), words(source, _COUNT)])
    if not np.array_equal(made[0], made[1]):
        raise native.MismatchError("the compiled words of a generator are not numpy's")
    (raw, _), _ = made
    edges = np.arange(-64, 64) + np.array([[0.075], [0.925]]) * 2.0**52  # where the tails begin
    raw[: edges.size] = edges.astype(np.uint64).reshape(-1) << np.uint64(12)
    raw[-len(_SPECIAL) :] = _SPECIAL
    with native.by(None):
        want = normal(raw)
    with native.by(library):
        got = normal(raw)
    if not np.array_equal(got.view(np.uint64), want.view(np.uint64)):
        raise native.MismatchError("the compiled normal numbers are not numpy's")
