"""`batch DIR...`."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tokitai_cli.cli import typer_options
from tokitai_cli.cli.ending import collect_garbage
from tokitai_cli.cli.verbs.merge import show_index
from tokitai_cli.core.errors import SpecError, UsageError
from tokitai_cli.core.model.options import flag

if TYPE_CHECKING:
    from tokitai_cli.batch import Collected, Executor
    from tokitai_cli.cli.terminal import BatchDisplay

_TLS = ("tls_ca", "tls_cert", "tls_key")


def verb(words: Sequence[str]) -> typer_options.Verb:
    """The verb."""
    help = "Spec files, or folders that contain them."
    return typer_options.with_options(
        _batch, "batch", typer_options.argument("folders", list[str], "DIR...", help)
    )


def _batch(folders: list[str], **given: Any) -> int:
    """Verify all specs of a folder in parallel.

    Runs on the cores of this machine or of a cluster. --resume continues a batch that was stopped.

    Example: tokitai batch specs/ --out reports/batch
    """
    from tokitai_cli import batch
    from tokitai_cli.cli import terminal

    given, front = typer_options.split("batch", given)
    resolved = batch.batch_options(folders, **given)
    remote = _is_remote(front, resolved.device)
    collect_garbage()
    collected = batch.collect(resolved)
    if front["dry_run"]:
        return _list(collected, to_json=front["json"])
    with terminal.BatchDisplay(quiet=front["quiet"]) as display:
        elsewhere = _cluster(collected, front, given["jobs"] or 0, display) if remote else None
        outcome = batch.run(resolved, collected, display, executor=elsewhere)
    show_index(outcome.index, outcome.files, front)
    if outcome.interrupted is not None:
        raise outcome.interrupted
    return outcome.index.exit_code


def _list(collected: Collected, *, to_json: bool) -> int:
    """List the cases; nothing at all is `not-run`, as it is where a batch runs."""
    from tokitai_cli.cli import terminal
    from tokitai_cli.core.model.verdict import Verdict

    ids = [case.id for case in collected.cases]
    if to_json:
        typer.echo(json.dumps({"cases": ids, "skipped": list(collected.skipped)}, indent=1))
    else:
        terminal.show_cases(ids)
    terminal.show_planned(collected.skipped, len(ids), collected.left_out)
    if collected.faults:
        for fault in collected.faults:
            terminal.show_error(fault)
        return SpecError.exit_code
    return 0 if ids else Verdict.NOT_RUN.exit_code


def _is_remote(front: dict[str, Any], device: str) -> bool:
    """Whether other machines run the cases. Raises UsageError for options that do not go together."""
    where = [name for name in ("scheduler", "cluster") if front[name]]
    if not where:
        if alone := [flag(name) for name in _TLS if front[name]]:
            raise UsageError(f"{alone[0]} needs --scheduler or --cluster")
        return False
    if device in ("auto", "all"):
        hint = "name a device: those of the workers are not known here"
        raise UsageError(f"{flag(where[0])}: --device {device}", hint=hint)
    return True


def _cluster(
    collected: Collected, front: dict[str, Any], jobs: int, listener: BatchDisplay
) -> Callable[[], Executor]:
    """What connects to, or starts, the cluster that the options name."""
    from tokitai_cli.batch import cluster

    files = [front[name] for name in _TLS if front[name]]
    if files and len(files) < len(_TLS):
        raise UsageError("--tls-ca, --tls-cert and --tls-key go together")
    tls = cluster.TlsFiles(*map(Path, files)) if files else None

    def start() -> Executor:
        found: Executor = cluster.open_executor(
            collected,
            scheduler=front["scheduler"] or "",
            cluster_file=Path(front["cluster"]) if front["cluster"] else None,
            jobs=jobs,
            tls=tls,
            listener=listener,
        )
        return found

    return start
