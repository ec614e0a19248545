"""A case at round values of some of its sizes: powers of two, and those that its spec has elsewhere."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from tokitai_cli.core.errors import TokitaiError
from tokitai_cli.core.model.case import Case
from tokitai_cli.spec.plan.selection import Selection, plan

_ROUND = (128, 256, 64, 1024, 32, 512, 16)
_CROSSED = _ROUND[:3]  # where several sizes are not equal
_MOST_ELEMENTS = 1 << 24  # of all arrays, where the case itself has fewer


def at_round_sizes(case: Case, names: Sequence[str]) -> Iterator[Case]:
    """The case with other values of these sizes, the likeliest first that a kernel takes.

    Those that the variant does not take, or at which arrays are large, are left out.
    """
    most = max(_MOST_ELEMENTS, _elements(case))
    for shape in _shapes(case, names):
        selection = Selection(
            shapes={name: (value,) for name, value in {**case.shape, **shape}.items()},
            variants=(case.variant_name,),
            profiles=(case.profile,),
            seeds=(case.seed,),
        )
        try:
            found = plan(case.loaded, selection).cases
        except TokitaiError:
            continue
        yield from (one for one in found if _elements(one) <= most)


def _shapes(case: Case, names: Sequence[str]) -> list[dict[str, int]]:
    spec, own = case.loaded.spec, {name: case.shape[name] for name in names}
    stated = [{name: one.default for name, one in spec.params.items()}]
    stated += [stated[0] | one.shape for suite in spec.suites.values() for one in suite]
    listed = [dict.fromkeys(names, one) for one in _ROUND]
    listed += [{name: one[name] for name in names} for one in stated if _is_round(one, names)]
    crossed = itertools.product(_CROSSED, repeat=len(names))
    listed += [dict(zip(names, one, strict=True)) for one in crossed]
    unlike = {tuple(one.items()): one for one in listed if one != own}
    return [*unlike.values()]


def _is_round(shape: dict[str, int], names: Sequence[str]) -> bool:
    """Whether the sizes are multiples of the least round one."""
    return all(shape[name] % min(_ROUND) == 0 for name in names)


def _elements(case: Case) -> int:
    return sum(one.elements for one in case.buffers)
