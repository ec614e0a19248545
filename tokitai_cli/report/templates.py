"""The environment that templates run in: sandboxed, strict about names, escaping for one target.

A format's `printed` makes text of the target from every value that a template prints. `Raw` marks what
is such text already; Jinja does the same with what its own blocks and macros give.
"""

from __future__ import annotations

import contextlib
import functools
import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from jinja2 import (
    FileSystemBytecodeCache,
    FileSystemLoader,
    StrictUndefined,
    TemplateError,
    TemplateSyntaxError,
)
from jinja2.bccache import Bucket
from jinja2.sandbox import SandboxedEnvironment
from markupsafe import Markup

from tokitai_cli.core import resources
from tokitai_cli.core.errors import Location, UsageError
from tokitai_cli.core.storage import file_sha256
from tokitai_cli.core.version import __version__
from tokitai_cli.report.format import ReportOptions
from tokitai_cli.report.raw import made

Printed = Callable[[object], str]


class _TemplateCache(FileSystemBytecodeCache):
    """Compiled templates on disk; a report does without where the folder cannot be used."""

    def load_bytecode(self, bucket: Bucket) -> None:
        with contextlib.suppress(OSError):
            super().load_bytecode(bucket)

    def dump_bytecode(self, bucket: Bucket) -> None:
        with contextlib.suppress(OSError):
            super().dump_bytecode(bucket)


class Target:
    """A kind of text: how values are printed in it, and the filters and blocks that make it.

    source: the file that holds the escaping, which is folded into compiled constants.
    """

    def __init__(self, source: str, printed: Printed, **names: Callable[..., object]) -> None:
        self.source = source
        self.printed = printed
        self.names = names


def rendered(
    target: Target, template: str, report_options: ReportOptions, context: Mapping[str, Any]
) -> str:
    """What a template gives. Raises UsageError for a fault in a user's own template."""
    return "".join(generated(target, template, report_options, context))


def generated(
    target: Target, template: str, report_options: ReportOptions, context: Mapping[str, Any]
) -> Iterator[str]:
    """The same piece by piece."""
    try:
        yield from _environment(target, report_options).get_template(template).generate(context)
    except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
        if report_options.templates is None:
            raise
        line = error.lineno if isinstance(error, TemplateSyntaxError) else 0
        file = getattr(error, "filename", None) or report_options.templates / template
        raise UsageError(
            f"the template cannot be used: {error}",
            where=Location(Path(file), line),
            hint="the shipped templates are in reports/templates; start from one of them",
        ) from error


@functools.lru_cache(maxsize=16)
def _environment(target: Target, report_options: ReportOptions) -> SandboxedEnvironment:
    """Environment of a target; compiling costs more than all else in a report."""
    folders = [resources.templates_dir()]
    if report_options.templates is not None:
        folders.insert(0, report_options.templates)
    pattern = f"{__version__}-{file_sha256(target.source)[:16]}-%s.template"
    environment = SandboxedEnvironment(
        loader=FileSystemLoader(folders),
        undefined=StrictUndefined,
        finalize=lambda value: _finished(target.printed, value),
        autoescape=True,  # `finalize` escapes; what it gave is left as it is
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        bytecode_cache=None
        if report_options.cache is None
        else _TemplateCache(str(report_options.cache), pattern),
    )
    environment.filters.update(shell=shlex.join, **target.names)
    environment.globals.update(target.names)
    return environment


def _finished(printed: Printed, value: object) -> Markup:
    return Markup(made(value, printed))  # noqa: S704 - it is escaped
