"""Many cases of many specs: collected, handed to workers, kept on disk, summed up.

Stands on the pipeline, which runs the single case; nothing here knows what a kernel is.
"""

from tokitai_cli.batch.collect import collect
from tokitai_cli.batch.collected import Collected
from tokitai_cli.batch.composer import BatchOutcome, merge, run
from tokitai_cli.batch.executor import Executor
from tokitai_cli.batch.index import is_index, render_folder, render_index_file
from tokitai_cli.batch.options import batch_options
from tokitai_cli.batch.store import holds_batch

__all__ = [
    "BatchOutcome",
    "Collected",
    "Executor",
    "batch_options",
    "collect",
    "holds_batch",
    "is_index",
    "merge",
    "render_folder",
    "render_index_file",
    "run",
]
