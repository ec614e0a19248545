"""What executes kernels: probes, build recipes and launch commands."""

from tokitai_cli.devices.registry import CHOSEN_BY, choose, get, names, watch_beside
from tokitai_cli.devices.sanitizers.watch_log import element

__all__ = ["CHOSEN_BY", "choose", "element", "get", "names", "watch_beside"]
