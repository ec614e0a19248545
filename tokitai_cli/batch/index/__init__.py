"""What a batch comes to: the index over all specs, and the evidence of each."""

from tokitai_cli.batch.index.case_rows import worst_element
from tokitai_cli.batch.index.index_files import (
    clear_index,
    is_index,
    read_cases,
    render_index_file,
)
from tokitai_cli.batch.index.lacking import lacking
from tokitai_cli.batch.index.summary import Accept, render_folder, summarise

__all__ = [
    "Accept",
    "clear_index",
    "is_index",
    "lacking",
    "read_cases",
    "render_folder",
    "render_index_file",
    "summarise",
    "worst_element",
]
