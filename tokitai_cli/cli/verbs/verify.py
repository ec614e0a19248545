"""`verify OP`, and `verify --all`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tokitai_cli.cli import typer_options
from tokitai_cli.cli.ending import collect_garbage
from tokitai_cli.core.errors import UsageError

if TYPE_CHECKING:
    from tokitai_cli.core.model.case import LoadedSpec
    from tokitai_cli.core.model.events import Listener
    from tokitai_cli.run.loop import RunOutcome
    from tokitai_cli.run.run_options import RunOptions

    Work = Callable[[RunOptions, Listener], RunOutcome]


def verb(words: Sequence[str]) -> typer_options.Verb:
    """The verb, with the parameters of the op that the command line names as options."""
    return typer_options.with_op(_verify, "verify", words)


def _verify(op: str | LoadedSpec, shapes: Mapping[str, Any], **given: Any) -> int:
    """Verify kernels and write the evidence.

    Takes a built-in op, or a spec file of your own.

    Example: tokitai verify gemm-bw --m 64
    """
    from tokitai_cli.run.loop import verify

    if given["all"]:
        return _run_all(op, **given)
    if not op:
        hint = "name one, or write --all for every built-in op; see `tokitai verify --help`"
        raise UsageError("missing argument 'OP'", hint=hint)
    return run_op("verify", verify, op, shapes, given)


def run_op(
    verb: str,
    work: Work,
    op: str | LoadedSpec,
    shapes: Mapping[str, Any],
    given: Mapping[str, Any],
) -> int:
    """Do the `work` with what the command line gave, show what came of it, return the exit code."""
    from tokitai_cli import evidence
    from tokitai_cli.cli import terminal
    from tokitai_cli.run.commands import called
    from tokitai_cli.run.run_options import run_options

    given, front = typer_options.split(verb, given)
    resolved = run_options(op, shapes=shapes, verb=verb, **given)
    collect_garbage()
    with terminal.Progress(quiet=front["quiet"]) as progress:
        outcome = work(resolved, progress)
    if front["json"]:
        sys.stdout.write(evidence.to_json(outcome.evidence))
    spec = called(resolved.loaded)
    if not (front["json"] and front["quiet"]):
        terminal.show_summary(outcome.evidence, outcome.files, called=spec, to_stderr=front["json"])
        times = terminal.case_seconds(outcome.evidence)
        terminal.show_slowest(times, front["durations"], to_stderr=front["json"])
    if not front["json"]:
        terminal.annotate_run(outcome.evidence, spec)
    if outcome.ended_by is not None:
        raise outcome.ended_by
    return outcome.evidence.verdict.exit_code


def _run_all(op: str | LoadedSpec, **given: Any) -> int:
    """Verify every built-in op, show the ops that need a look and then the index of all."""
    from tokitai_cli.batch.all_ops import verify_all
    from tokitai_cli.cli import terminal
    from tokitai_cli.core.model.verdict import worst

    if op:
        raise UsageError("--all means every built-in op; give no OP")
    for option in ("name", "json"):
        if given[option]:
            hint = "each op writes NAME.json of its own into --out"
            raise UsageError(f"--{option} is for one op, not for --all", hint=hint)
    given, front = typer_options.split("verify", given)
    collect_garbage()
    with terminal.Progress(quiet=front["quiet"], many=True) as progress:
        outcomes = verify_all(progress, **given)
    terminal.show_index([(outcome.evidence, outcome.files) for outcome in outcomes])
    times = (one for outcome in outcomes for one in terminal.case_seconds(outcome.evidence))
    terminal.show_slowest(times, front["durations"])
    if outcomes[-1].ended_by is not None:
        raise outcomes[-1].ended_by
    return worst(outcome.evidence.verdict for outcome in outcomes).exit_code
