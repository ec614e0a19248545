"""From a spec and a selection to cases with every number filled in."""

from tokitai_cli.plan.cases import at_warp_size, oversize
from tokitai_cli.plan.memory import memory_bytes
from tokitai_cli.plan.selection import Plan, Selection, case_of, example, plan
from tokitai_cli.plan.values import expand_values

__all__ = [
    "Plan",
    "Selection",
    "at_warp_size",
    "case_of",
    "example",
    "expand_values",
    "memory_bytes",
    "oversize",
    "plan",
]
