"""The terminal: progress and errors on stderr, summaries and tables on stdout."""

from tokitai_cli.cli.terminal.annotations import annotate_batch, annotate_run
from tokitai_cli.cli.terminal.batch_display import (
    BatchDisplay,
    show_batch,
    show_cases,
    show_planned,
)
from tokitai_cli.cli.terminal.listings import (
    show_answer,
    show_cache,
    show_cleared,
    show_doctor,
    show_error,
    show_index,
    show_kernels,
    show_machine_code,
    show_ops,
    show_summary,
)
from tokitai_cli.cli.terminal.progress import Progress
from tokitai_cli.cli.terminal.slowest import case_seconds, show_slowest
from tokitai_cli.cli.terminal.spec_view import show_scores, show_spec
from tokitai_cli.cli.terminal.watched_kernels import show_watched

__all__ = [
    "BatchDisplay",
    "Progress",
    "annotate_batch",
    "annotate_run",
    "case_seconds",
    "show_answer",
    "show_batch",
    "show_cache",
    "show_cases",
    "show_cleared",
    "show_doctor",
    "show_error",
    "show_index",
    "show_kernels",
    "show_machine_code",
    "show_ops",
    "show_planned",
    "show_scores",
    "show_slowest",
    "show_spec",
    "show_summary",
    "show_watched",
]
