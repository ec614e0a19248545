"""The results of a batch, in one file of its folder: what is committed outlives kills and power cuts."""

from tokitai_cli.batch.store.database import Store
from tokitai_cli.batch.store.disk import holds_batch, make_folder

__all__ = ["Store", "holds_batch", "make_folder"]
