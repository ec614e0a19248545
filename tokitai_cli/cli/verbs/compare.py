"""`compare SPEC --variant A --variant B`, or `compare A.json B.json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tokitai_cli.cli import typer_options
from tokitai_cli.cli.ending import collect_garbage
from tokitai_cli.cli.verbs.audit import show_answer

if TYPE_CHECKING:
    from tokitai_cli.core.model.case import LoadedSpec


def verb(words: Sequence[str]) -> typer_options.Verb:
    """The verb: of two files where the first word is one, else with the parameters of the op."""
    called = typer_options.find_op(words, "compare")
    if called is None or not called.endswith(".json"):
        return typer_options.with_op(_compare, "compare", words)
    names = {"first": "Evidence.", "second": "Evidence."}
    files = [
        typer_options.argument(name, str, name[0].upper(), help) for name, help in names.items()
    ]
    return typer_options.with_options(_compare_files, "compare", *files)


def _compare(op: str | LoadedSpec, shapes: Mapping[str, Any], **given: Any) -> int:
    """Compare two kernels side by side.

    Takes two variants of a spec, or two evidence files.

    Example: tokitai compare old.json new.json
    """
    from tokitai_cli.audit.side_by_side import compare_variants
    from tokitai_cli.cli import terminal
    from tokitai_cli.run.run_options import run_options
    from tokitai_cli.run.specs import load_op

    loaded = load_op(op) if isinstance(op, str) else op
    given, front = typer_options.split("compare", given)
    given["name"] = f"{loaded.spec.op}-compare" if given["name"] is None else given["name"]
    resolved = run_options(loaded, shapes=shapes, verb="compare", **given)
    collect_garbage()
    with terminal.Progress(quiet=front["quiet"]) as progress:
        answer, outcome = compare_variants(resolved, progress)
    show_answer(answer, outcome.files, front["json"])
    if outcome.ended_by is not None:
        raise outcome.ended_by
    return answer.exit_code


def _compare_files(first: str, second: str, **given: Any) -> int:
    """Two kernels side by side, by the evidence of each."""
    from tokitai_cli.audit.side_by_side import compare_files

    answer = compare_files(first, second)
    show_answer(answer, (), given["json"])
    return answer.exit_code
