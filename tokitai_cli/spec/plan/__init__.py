"""From a spec and a selection to cases with every number filled in."""

from tokitai_cli.spec.plan.cases import at_warp_size, oversize
from tokitai_cli.spec.plan.memory_need import array_bytes, memory_bytes
from tokitai_cli.spec.plan.round_shapes import at_round_sizes
from tokitai_cli.spec.plan.selection import MAX_CASES, Plan, Selection, case_of, example, plan
from tokitai_cli.spec.plan.value_lists import expand_values

__all__ = [
    "MAX_CASES",
    "Plan",
    "Selection",
    "array_bytes",
    "at_round_sizes",
    "at_warp_size",
    "case_of",
    "example",
    "expand_values",
    "memory_bytes",
    "oversize",
    "plan",
]
