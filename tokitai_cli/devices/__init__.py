"""What executes kernels: probes, build recipes and launch commands."""

from tokitai_cli.devices._registry import CHOSEN_BY, choose, get, names, watches

__all__ = ["CHOSEN_BY", "choose", "get", "names", "watches"]
