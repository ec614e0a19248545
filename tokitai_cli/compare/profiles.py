"""Which profiles draw their numbers at random, so that a probabilistic bound may refute."""

from __future__ import annotations

from tokitai_cli.dtypes import FORMATS
from tokitai_cli.model.case import Case
from tokitai_cli.model.spec import draw_of, drawn_buffers, is_random_sign_or_wide


def draws_are_random(case: Case) -> bool:
    """Whether every float array that the case draws is of random sign or wide.

    On constant or strongly biased data correct kernels exceed the probabilistic bound, which
    assumes independent roundings (Higham and Mary 2019). A profile that is not of the spec says
    nothing.
    """
    spec, variant = case.loaded.spec, case.variant
    floats = {
        name: buffer for name, buffer in drawn_buffers(variant).items() if buffer.dtype in FORMATS
    }
    if not floats or case.profile not in spec.profiles:
        return False
    return all(
        is_random_sign_or_wide(draw_of(spec, variant, case.profile, name)) for name in floats
    )
