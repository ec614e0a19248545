"""Many cases of many specs: collected, handed to workers, kept on disk, summed up.

Stands on `run`, which runs the single case; nothing here knows what a kernel is.
"""

from tokitai_cli.batch.batch_run import BatchOutcome, merge, run
from tokitai_cli.batch.index import is_index, lacking, read_cases, render_folder, render_index_file
from tokitai_cli.batch.select.batch_options import batch_options
from tokitai_cli.batch.select.collect import collect
from tokitai_cli.batch.select.collected import Collected
from tokitai_cli.batch.work.executor import Executor

__all__ = [
    "BatchOutcome",
    "Collected",
    "Executor",
    "batch_options",
    "collect",
    "is_index",
    "lacking",
    "merge",
    "read_cases",
    "render_folder",
    "render_index_file",
    "run",
]
