"""`mutate OP`: does the spec notice one-line faults of its own kernel?"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from tokitai_cli.cli.verbs.json_option import Json, print_json

if TYPE_CHECKING:
    from tokitai_cli.adequacy.mutation import Trial


def mutate(
    op: Annotated[str, typer.Argument(metavar="OP", help="A built-in op, or a spec file's path.")],
    suite: Annotated[str, typer.Option(help="Shapes of this suite.", metavar="NAME")] = "quick",
    variant: Annotated[
        list[str] | None, typer.Option(help="Only this variant; may be repeated.", metavar="NAME")
    ] = None,
    device: Annotated[str, typer.Option(help="One device's name.", metavar="NAME")] = "cpu",
    jobs: Annotated[
        int,
        typer.Option(
            "--jobs", "-j", help="Changes tested at the same time; 0: one per core.", min=0
        ),
    ] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress lines.")] = False,
    json: Json = False,
) -> int:
    """Measure which changes of a kernel the spec detects.

    Changes the source in one place at a time, and verifies each changed kernel.

    Example: tokitai mutate softmax
    """
    from tokitai_cli.adequacy import mutation
    from tokitai_cli.run.run_options import run_options
    from tokitai_cli.run.specs import load_op

    loaded = load_op(op)
    chosen = suite if suite in loaded.spec.suites or suite != "quick" else None
    options = run_options(loaded, variant=variant, device=device, suite=chosen)

    def progress(done: int, total: int, trial: Trial) -> None:
        if not quiet:
            where = f"{trial.change.path.name}:{trial.change.line}"
            sys.stderr.write(f"[{done}/{total}] {trial.end}: {where}, {trial.change.kind}\n")

    found = mutation.mutate(options, jobs or len(os.sched_getaffinity(0)), progress)
    if json:
        print_json(found)
    else:
        for line in mutation.summary_lines(found):
            typer.echo(line)
    return 6 if found.count(mutation.End.SURVIVED) else 0
