"""What executes kernels: probes, build recipes and launch commands."""

from tokitai_cli.devices.registry import CHOSEN_BY, choose, get, names

__all__ = ["CHOSEN_BY", "choose", "get", "names"]
