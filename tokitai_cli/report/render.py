"""Evidence through a template, sandboxed, strict about names, and escaping by default."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tokitai_cli import resources
from tokitai_cli.errors import UsageError, near
from tokitai_cli.model import view
from tokitai_cli.model.batch import BatchIndex, IndexCase
from tokitai_cli.model.encoding import line, to_json
from tokitai_cli.model.evidence import Evidence
from tokitai_cli.model.text import shape_text

if TYPE_CHECKING:
    from jinja2.sandbox import SandboxedEnvironment

FORMATS = ("md", "json")
INDEX_FORMATS = ("md", "json", "junit")


def render(evidence: Evidence, format: str, *, cache: Path | None = None) -> str:
    """Evidence as text of one of FORMATS, from its own fields alone.

    cache: a folder of the user's own for compiled templates, or None.
    Raises UsageError for another format.
    """
    if format == "json":
        return to_json(evidence)
    if format == "md":
        return _markdown(evidence, cache)
    raise UsageError(f"unknown report format {format!r}", mend=near(format, FORMATS))


def render_index(
    index: BatchIndex, format: str, cases: Iterable[IndexCase] = (), *, cache: Path | None = None
) -> str:
    """Index of a batch as text of one of INDEX_FORMATS; JUnit needs its `cases`, spec by spec.

    cache: as for `render`. Raises UsageError for another format.
    """
    if format == "json":
        return msgspec.json.format(line(index), indent=1).decode() + "\n"
    if format == "md":
        from tokitai_cli.report.batch import counted, outline_index

        template = _environment(cache).get_template("batch.md.j2")
        return template.render(index=index, outline=outline_index(index), counted=counted)
    if format == "junit":
        return "".join(junit_pieces(index, cases))
    raise UsageError(f"unknown report format {format!r}", mend=near(format, INDEX_FORMATS))


def junit_pieces(index: BatchIndex, cases: Iterable[IndexCase]) -> Iterator[str]:
    """JUnit XML of an index, piece by piece; `cases` are all of its cases, spec by spec."""
    from tokitai_cli.report.junit import pieces  # loaded where it is asked for

    return pieces(index, cases)


def _markdown(evidence: Evidence, cache: Path | None) -> str:
    from tokitai_cli.report.outline import outline

    template = _environment(cache).get_template("evidence.md.j2")
    return template.render(
        evidence=evidence,
        outline=outline(evidence),
        counts=view.counts(evidence),
        shape=functools.partial(shape_text, params=evidence.params),
    )


@functools.cache
def _environment(cache: Path | None) -> SandboxedEnvironment:
    # Jinja costs as much at start-up as all else that `tokitai --help` needs.
    from jinja2 import FileSystemLoader, StrictUndefined
    from jinja2.sandbox import SandboxedEnvironment

    from tokitai_cli.report import bytecode, markdown
    from tokitai_cli.report.outline import bins

    # Not HTML: `finalize` escapes every printed value for Markdown instead of Jinja's own escaping.
    environment = SandboxedEnvironment(
        loader=FileSystemLoader(resources.templates_dir()),
        undefined=StrictUndefined,
        finalize=markdown.printed,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        bytecode_cache=None if cache is None else bytecode.TemplateCache(cache),
    )
    environment.filters.update(
        code=markdown.code,
        fence=markdown.fence,
        number=markdown.numeral,
        shell=shlex.join,
        bins=bins,
    )
    return environment
