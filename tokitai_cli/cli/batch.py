"""The verbs for many specs: `batch` runs them, `merge` joins the shards of one batch."""

from __future__ import annotations

import functools
import inspect
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tokitai_cli.cli import options
from tokitai_cli.errors import UsageError
from tokitai_cli.model.verdict import Verdict
from tokitai_cli.report import EVIDENCE_FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tokitai_cli.batch import Collected, Executor
    from tokitai_cli.console import BatchDisplay
    from tokitai_cli.model.batch import BatchIndex

_Words = list[str]
# What `batch` shares with `verify`, in the order of the help.
_SHARED_FIRST = ("device", "variant", "profile")
_SHARED = ("seed", "repeat", "warmup", "timeout", "arch", "warp_size", "format", "save_arrays")
_FOLDERS = Annotated[
    _Words, typer.Argument(metavar="DIR...", help="Folders with spec files, or such files.")
]
_OWN: dict[str, tuple[Any, Any]] = {
    "suite": (
        Annotated[
            _Words,
            typer.Option(
                metavar="NAME",
                help="Only this suite of each spec; may be repeated. quick by itself.",
                show_default=False,
            ),
        ],
        [],
    ),
    "op": (
        Annotated[_Words, typer.Option(metavar="NAME", help="Only this op; may be repeated.")],
        [],
    ),
    "keyword": (
        Annotated[
            str,
            typer.Option(
                "-k",
                metavar="EXPRESSION",
                help='Only cases whose id matches, such as "grad-a and not special".',
                show_default=False,
            ),
        ],
        "",
    ),
    "jobs": (
        Annotated[
            int,
            typer.Option(
                "-j",
                "--jobs",
                metavar="N",
                min=0,
                help="Workers; as many as there are cores by itself. With --cluster: jobs to ask for.",
                show_default=False,
            ),
        ],
        0,
    ),
    "gpu": (
        Annotated[
            str, typer.Option(metavar="N[,N...]", help="Indices of the GPUs that workers may use.")
        ],
        "0",
    ),
    "gpu_children": (
        Annotated[
            int, typer.Option(metavar="N", min=1, help="Workers that may use one GPU at a time.")
        ],
        1,
    ),
    "shard": (
        Annotated[
            str,
            typer.Option(
                metavar="I/N",
                help="Only part I of N; `tokitai merge` joins them.",
                show_default=False,
            ),
        ],
        "",
    ),
    "dry_run": (
        Annotated[bool, typer.Option("--dry-run", help="List the ids of the cases, run nothing.")],
        False,
    ),
    "resume": (
        Annotated[
            bool, typer.Option("--resume", help="Keep results in --out that are still fresh.")
        ],
        False,
    ),
    "fail_fast": (
        Annotated[bool, typer.Option("--fail-fast", help="Stop after the first failure.")],
        False,
    ),
    "max_failures": (
        Annotated[
            int,
            typer.Option(
                metavar="N", min=0, help="Stop after so many failures.", show_default=False
            ),
        ],
        0,
    ),
    "executor": (
        Annotated[str, typer.Option(metavar="NAME", help="local, or dask for other machines.")],
        "local",
    ),
    "scheduler": (
        Annotated[
            str,
            typer.Option(metavar="ADDRESS", help="A Dask scheduler's address.", show_default=False),
        ],
        "",
    ),
    "cluster": (
        Annotated[
            str,
            typer.Option(
                metavar="FILE",
                help="dask-jobqueue configuration of the Slurm, PBS, ... jobs to start.",
                show_default=False,
            ),
        ],
        "",
    ),
    **{
        f"tls_{name}": (
            Annotated[
                str,
                typer.Option(
                    metavar="FILE", help=f"{words}, for --executor dask.", show_default=False
                ),
            ],
            "",
        )
        for name, words in (
            ("ca", "Certificate of the authority"),
            ("cert", "Certificate of this client"),
            ("key", "Its private key"),
        )
    },
    "out": (
        Annotated[
            str, typer.Option(metavar="DIR", help="Folder for the journal, results and the index.")
        ],
        "reports/batch",
    ),
    "json": (
        Annotated[bool, typer.Option("--json", help="Print the index as JSON on stdout.")],
        False,
    ),
    "quiet": (Annotated[bool, typer.Option("--quiet", "-q", help="No progress lines.")], False),
}
_CLUSTER = ("scheduler", "cluster", "tls_ca", "tls_cert", "tls_key")


def batch_verb() -> Any:
    """`batch` with its options: those of its own, and those that it shares with `verify`."""

    @functools.wraps(_batch)
    def run_batch(**given: Any) -> int:
        return _batch(**given)

    kind = inspect.Parameter.KEYWORD_ONLY
    table = {name: options.entry(name) for name in _SHARED_FIRST}
    own = dict(_OWN)
    table |= {name: own.pop(name) for name in ("suite", "op", "keyword", "jobs")}
    table |= {name: options.entry(name) for name in _SHARED}
    table |= own
    parameters = [inspect.Parameter("folders", kind, annotation=_FOLDERS)]
    parameters += [
        inspect.Parameter(name, kind, default=default, annotation=annotation)
        for name, (annotation, default) in table.items()
    ]
    run_batch.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run_batch.__annotations__ = {}
    return run_batch


def _batch(**given: Any) -> int:
    """Verify every spec under folders, on many cores or machines; --resume goes on after a stop."""
    from tokitai_cli import batch, console

    dry_run, to_json, quiet = given.pop("dry_run"), given.pop("json"), given.pop("quiet")
    executor, jobs = given.pop("executor"), given.pop("jobs")
    remote = {name: given.pop(name) for name in _CLUSTER}
    _check_executor(executor, remote, given["device"])
    given["seed"] = ",".join(given["seed"])
    resolved = batch.resolve(given.pop("folders"), jobs=jobs, **given)
    collected = batch.collect(resolved)
    if dry_run:
        return _list(collected, to_json=to_json)
    with console.BatchDisplay(quiet=quiet) as display:
        elsewhere = None if executor == "local" else _cluster(collected, remote, jobs, display)
        outcome = batch.run(resolved, collected, display, executor=elsewhere)
    _show(outcome.index, outcome.files, to_json=to_json)
    if outcome.interrupted is not None:
        raise outcome.interrupted
    return outcome.index.verdict.exit_code


def merge(
    folders: Annotated[
        _Words, typer.Argument(metavar="DIR...", help="The --out folders of all shards.")
    ],
    out: Annotated[
        str, typer.Option(metavar="DIR", help="Folder for the joined batch.")
    ] = "reports/batch",
    format: Annotated[
        _Words,
        typer.Option(
            metavar="NAME", help=f"Report format: {', '.join(EVIDENCE_FORMATS)}; may be repeated."
        ),
    ] = ["md"],  # noqa: B006 - typer copies it
    json: Annotated[
        bool, typer.Option("--json", help="Print the index as JSON on stdout.")
    ] = False,
) -> int:
    """Join the shards of one batch into one index; refuses runs that are not alike."""
    from tokitai_cli import batch

    index, files = batch.merge([Path(folder) for folder in folders], Path(out), formats=format)
    _show(index, files, to_json=json)
    return index.verdict.exit_code


def _show(index: BatchIndex, files: tuple[Path, ...], *, to_json: bool) -> None:
    from tokitai_cli import console, report

    if to_json:
        sys.stdout.buffer.writelines(report.render_index(index, "json"))
    console.show_batch(index, files, to_stderr=to_json)


def _list(collected: Collected, *, to_json: bool) -> int:
    """List the cases; nothing at all is `not-run`, as it is where a batch runs."""
    from tokitai_cli import console

    ids = [case.id for case in collected.cases]
    if to_json:
        typer.echo(json.dumps({"cases": ids, "skipped": list(collected.skipped)}, indent=1))
    else:
        console.show_cases(ids)
    console.show_planned(collected.skipped, len(ids), collected.left_out)
    return 0 if ids else Verdict.NOT_RUN.exit_code


def _check_executor(executor: str, remote: dict[str, str], device: str) -> None:
    given = [f"--{name.replace('_', '-')}" for name, value in remote.items() if value]
    if executor not in ("local", "dask"):
        raise UsageError(f"--executor {executor}: unknown", mend="known: dask, local")
    if executor == "local":
        if given:
            raise UsageError(f"{given[0]} is for --executor dask")
        return
    if bool(remote["scheduler"]) == bool(remote["cluster"]):
        mend = "give --scheduler ADDRESS of a scheduler that runs, or --cluster FILE to start one"
        raise UsageError("--executor dask needs one of --scheduler and --cluster", mend=mend)
    if device in ("auto", "all"):
        mend = "name it: what the workers have is not known here"
        raise UsageError(f"--executor dask: --device {device}", mend=mend)


def _cluster(
    collected: Collected, remote: dict[str, str], jobs: int, listener: BatchDisplay
) -> Callable[[], Executor]:
    """What connects to, or starts, the cluster that the options name."""
    from tokitai_cli import cluster

    files = [remote[name] for name in ("tls_ca", "tls_cert", "tls_key")]
    if any(files) and not all(files):
        raise UsageError("--tls-ca, --tls-cert and --tls-key go together")
    tls = cluster.TlsFiles(*map(Path, files)) if any(files) else None

    def start() -> Executor:
        found: Executor = cluster.open_executor(
            collected,
            scheduler=remote["scheduler"],
            cluster_file=Path(remote["cluster"]) if remote["cluster"] else None,
            jobs=jobs,
            tls=tls,
            listener=listener,
        )
        return found

    return start
