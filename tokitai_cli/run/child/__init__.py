"""The child that serves kernels: its memory file, its requests, and what it does wrong."""

from tokitai_cli.run.child.debug import debug_command
from tokitai_cli.run.child.frames import Hello, schedule_seeds
from tokitai_cli.run.child.memory_file import available_bytes, size_text
from tokitai_cli.run.child.memory_layout import lay_out
from tokitai_cli.run.child.overrun import named
from tokitai_cli.run.child.server import END_SECONDS, Server

__all__ = [
    "END_SECONDS",
    "Hello",
    "Server",
    "available_bytes",
    "debug_command",
    "lay_out",
    "named",
    "schedule_seeds",
    "size_text",
]
