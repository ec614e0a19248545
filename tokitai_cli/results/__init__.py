"""The results of a batch, in one file of its folder: what is committed outlives kills and power cuts."""

from tokitai_cli.results.disk import holds_batch, make_folder
from tokitai_cli.results.store import Store

__all__ = ["Store", "holds_batch", "make_folder"]
