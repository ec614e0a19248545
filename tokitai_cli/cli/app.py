"""The verbs. Each unpacks its arguments, calls one function, and names an exit code."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tokitai_cli import __version__, verify
from tokitai_cli.cli import options
from tokitai_cli.cli.batch import batch_verb, merge
from tokitai_cli.errors import TokitaiError, UsageError
from tokitai_cli.model.case import LoadedSpec
from tokitai_cli.report import EVIDENCE_FORMATS, INDEX_FORMATS

if TYPE_CHECKING:
    from tokitai_cli.pipeline import RunOutcome

Verb = Callable[..., Any]
Op = Annotated[str, typer.Argument(metavar="OP", help="A built-in op, or a spec file's path.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]


def build(arguments: Sequence[str]) -> typer.Typer:
    """The application. `arguments` are peeked at: `verify OP` has options of its own per OP."""
    app = typer.Typer(
        name="tokitai",
        help="Verifies GPU kernels and writes evidence that a reviewer can trust.",
        invoke_without_command=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_front_door)
    verbs: dict[str, Verb] = {
        "doctor": doctor,
        "list": list_ops,
        "show": show,
        "verify": _verify_verb(arguments),
        "sanitize": _sanitize_verb(arguments),
        "batch": batch_verb(),
        "merge": merge,
        "report": report_file,
        "cache": cache,
        "schema": schema,
    }
    for name, verb in verbs.items():
        app.command(name)(_handled(verb))
    return app


def run(arguments: Sequence[str]) -> int:
    """Run one command line; returns its exit code. Interrupts and a lost stdout are raised."""
    try:
        command = typer.main.get_command(build(arguments))
        # Not its `main`, which has exit codes of its own for interrupts and a closed pipe.
        with command.make_context("tokitai", list(arguments)) as context:
            command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except (typer.BadParameter.__base__, TokitaiError) as error:  # type: ignore[misc]
        from tokitai_cli import console

        told = error if isinstance(error, TokitaiError) else _usage_error(error, arguments)
        console.show_error(told)
        return told.exit_code
    return 0


def _usage_error(error: Any, arguments: Sequence[str]) -> UsageError:
    """What the command line's parser refuses, in the form of every other error."""
    message = str(error.format_message()).rstrip(".")
    message = f"{message[:1].lower()}{message[1:]}"
    command = error.ctx.command_path if error.ctx is not None else "tokitai"
    mend = f"`{command} --help` shows what can be given"
    if option := getattr(error, "option_name", ""):
        if near_by := getattr(error, "possibilities", None):
            message, mend = f"no such option: {option}", f"did you mean {' or '.join(near_by)}?"
        if arguments[:1] == ["verify"] and options.find_op(arguments, "verify") is None:
            mend = "name the op before the options of its parameters: tokitai verify OP ..."
    return UsageError(message, mend=mend)


def _handled(verb: Verb) -> Callable[..., None]:
    """The verb with what it returns as its exit code."""

    @functools.wraps(verb)
    def run_verb(*args: Any, **kwargs: Any) -> None:
        raise typer.Exit(verb(*args, **kwargs) or 0)

    return run_verb


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tokitai {__version__}")
        raise typer.Exit


def _front_door(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        sys.stderr.write(f"{context.get_help()}\n")
        raise typer.Exit(2)


def doctor(json: Json = False) -> int:
    """Show devices, compilers and cache: what is there, what is missing."""
    from tokitai_cli import console, pipeline

    found = pipeline.diagnose()
    if json:
        typer.echo(pipeline.diagnosis_json(found))
    else:
        console.show_doctor(found)
    return 0 if any(device.available and device.buildable for device in found.devices) else 3


def list_ops(json: Json = False) -> None:
    """List the built-in ops, their variants and parameters."""
    from tokitai_cli import console, pipeline

    specs = pipeline.builtin_specs()
    if json:
        typer.echo(pipeline.listing_json(specs))
    else:
        console.show_ops(specs)


def show(op: Op) -> None:
    """Show an op's contract: kernels, shapes, checks, profiles."""
    from tokitai_cli import console, pipeline

    console.show_spec(pipeline.load_op(op))


def _verify_verb(arguments: Sequence[str]) -> Verb:
    """`verify` with the parameters of the op that the command line names as options."""

    def run_verify(**given: Any) -> int:
        """Verify the kernels of an op and write the evidence."""
        if given.pop("all"):
            return _run_all(**given)
        if not given["op"]:
            mend = "name one, or write --all for every built-in op; see `tokitai verify --help`"
            raise UsageError("missing argument 'OP'", mend=mend)
        return _run_op(verify, **given)

    return _with_params(run_verify, "verify", arguments, every=True)


def _sanitize_verb(arguments: Sequence[str]) -> Verb:
    """`sanitize`, as `verify`."""

    def run_sanitize(**given: Any) -> int:
        """Run an op under the device's sanitizer: memory, races, uninitialised reads, barriers."""
        from tokitai_cli import pipeline

        def sanitize(op: str | LoadedSpec, *, listener: Any, **chosen: Any) -> RunOutcome:
            resolved = pipeline.resolve(op, verb="sanitize", **chosen)
            return pipeline.sanitize(resolved, listener)

        op = given.pop("op")
        loaded = op if isinstance(op, LoadedSpec) else pipeline.load_op(op)
        # Beside the evidence of `verify`, not over it.
        given["name"] = given["name"] or f"{loaded.spec.op}-sanitize"
        shaped = any(given[name] for name in given["params"])
        if not (given["suite"] or shaped) and "quick" in loaded.spec.suites:
            given["suite"] = "quick"
        return _run_op(sanitize, op=loaded, **given)

    return _with_params(run_sanitize, "sanitize", arguments, options.SANITIZE_DEFAULTS)


def _with_params(
    verb: Verb,
    name: str,
    arguments: Sequence[str],
    defaults: Mapping[str, Any] | None = None,
    *,
    every: bool = False,
) -> Verb:
    """`verb` with OP's parameters as options; it is given the loaded spec, and them as `params`."""
    op = options.find_op(arguments, name)
    loaded = None
    if op is not None:
        from tokitai_cli import pipeline

        loaded = pipeline.load_op(op)
    spec = loaded.spec if loaded is not None else None
    params = tuple(spec.params) if spec is not None else ()

    @functools.wraps(verb)
    def run_verb(**given: Any) -> int:
        word = given.pop("op")
        # The file is read once, unless the command line turns out to name another one.
        known = loaded if loaded is not None and word == op else word
        found: int = verb(op=known, params=params, **given)
        return found

    run_verb.__signature__ = options.signature(spec, defaults, every=every)  # type: ignore[attr-defined]
    run_verb.__annotations__ = {}
    return run_verb


def _run_op(
    work: Callable[..., RunOutcome],
    *,
    op: str | LoadedSpec,
    params: Sequence[str],
    **given: Any,
) -> int:
    """Do the `work` with what the command line gave, show what came of it, return the exit code."""
    from tokitai_cli import console, pipeline

    # An option that is given twice means both values, as a list does, not quietly the last one.
    shapes = {name: ",".join(given.pop(name)) for name in params}
    given["seed"] = ",".join(given["seed"])
    to_json, quiet = given.pop("json"), given.pop("quiet")
    with console.Progress(quiet=quiet) as progress:
        outcome = work(op, listener=progress, shapes=shapes, **given)
    if to_json:
        sys.stdout.write(pipeline.evidence_json(outcome.evidence))
    console.show_summary(outcome.evidence, outcome.files, to_stderr=to_json)
    if outcome.ended_by is not None:
        raise outcome.ended_by
    return outcome.evidence.verdict.exit_code


def _run_all(*, op: str | LoadedSpec, params: Sequence[str], **given: Any) -> int:
    """Verify every built-in op, show the ops that need a look and then the index of all."""
    from tokitai_cli import console, pipeline
    from tokitai_cli.model.verdict import worst

    if op or params:
        raise UsageError("--all is every built-in op: no OP goes with it")
    for option in ("name", "json"):
        if given.pop(option):
            mend = "each op writes NAME.json of its own into --out"
            raise UsageError(f"--{option} is for one op, not for --all", mend=mend)
    given["seed"] = ",".join(given["seed"])
    with console.Progress(quiet=given.pop("quiet")) as progress:
        outcomes = pipeline.verify_all(progress, **given)
    console.show_index([(outcome.evidence, outcome.files) for outcome in outcomes])
    if outcomes[-1].ended_by is not None:
        raise outcomes[-1].ended_by
    return worst(outcome.evidence.verdict for outcome in outcomes).exit_code


def report_file(
    file: Annotated[
        str, typer.Argument(metavar="FILE.json", help="An evidence file, or a batch's index.json.")
    ],
    format: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help=f"One of {', '.join(EVIDENCE_FORMATS)}; of an index, {', '.join(INDEX_FORMATS)}.",
        ),
    ] = "md",
    out: Annotated[str, typer.Option(metavar="FILE", help="File to write, not stdout.")] = "",
) -> None:
    """Render a report again, from the JSON alone."""
    from tokitai_cli import batch, pipeline

    path = Path(file)
    if batch.is_index(path):
        data = batch.render_index_file(path, format)
    else:
        data = pipeline.render_file(file, format)
    if out:
        pipeline.write_report(out, data)
    else:
        sys.stdout.buffer.write(data)


def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Delete every entry.")] = False,
    json: Json = False,
) -> None:
    """Show the build cache, or clear it."""
    from tokitai_cli import console, pipeline

    if clear and json:
        typer.echo(pipeline.cleared_json())
    elif clear:
        console.show_cleared(pipeline.clear_cache())
    elif json:
        typer.echo(pipeline.cache_json())
    else:
        console.show_cache(pipeline.cache_contents())


def schema(
    what: Annotated[str, typer.Argument(metavar="spec|evidence|index", help="Which schema.")],
) -> None:
    """Print the JSON Schema of spec files, evidence or the index of a batch."""
    from tokitai_cli import pipeline

    typer.echo(pipeline.schema_text(what))
