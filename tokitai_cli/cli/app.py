"""The verbs. Each unpacks its arguments, calls one function, and names an exit code."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from tokitai_cli import __version__, verify
from tokitai_cli.cli import options
from tokitai_cli.errors import TokitaiError

Verb = Callable[..., Any]
Op = Annotated[str, typer.Argument(metavar="OP", help="A built-in op, or a spec file's path.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]


def build(arguments: Sequence[str]) -> typer.Typer:
    """The application. `arguments` are peeked at: `verify OP` has options of its own per OP."""
    app = typer.Typer(
        name="tokitai",
        help="Verifies GPU kernels and writes evidence that a reviewer can trust.",
        no_args_is_help=True,
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
        "report": report_file,
        "cache": cache,
        "schema": schema,
    }
    for name, verb in verbs.items():
        app.command(name)(_handled(verb))
    return app


def _handled(verb: Verb) -> Callable[..., None]:
    """The verb with its errors shown in one line and turned into their exit codes."""

    @functools.wraps(verb)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            code = verb(*args, **kwargs)
        except TokitaiError as error:
            from tokitai_cli import console

            console.show_error(error)
            raise typer.Exit(error.exit_code) from error
        raise typer.Exit(code or 0)

    return run


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tokitai {__version__}")
        raise typer.Exit


def _front_door(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    pass


def doctor(json: Json = False) -> int:
    """Show compilers, devices, cache and CPU features: what is there, what is missing."""
    from tokitai_cli import console, pipeline

    found = pipeline.diagnose()
    if json:
        typer.echo(pipeline.diagnosis_json(found))
    else:
        console.show_doctor(found)
    return 0 if any(device.available for device in found.devices) else 3


def list_ops(json: Json = False) -> None:
    """List the built-in ops with their variants and parameters."""
    from tokitai_cli import console, pipeline

    specs = pipeline.builtin_specs()
    if json:
        typer.echo(pipeline.listing_json(specs))
    else:
        console.show_ops(specs)


def show(op: Op) -> None:
    """Show one op's contract: formulas, shapes, checks, profiles, suites, non-claims."""
    from tokitai_cli import console, pipeline

    console.show_spec(pipeline.load_op(op))


def _verify_verb(arguments: Sequence[str]) -> Verb:
    """`verify` with the parameters of the op that the command line names as options."""
    op = options.find_op(arguments, "verify")
    spec = None
    failure: TokitaiError | None = None
    if op is not None:
        from tokitai_cli import pipeline

        try:
            spec = pipeline.load_op(op).spec
        except TokitaiError as error:
            failure = error
    params = tuple(spec.params) if spec is not None else ()

    def run(**given: Any) -> int:
        """Verify the kernels of an op and write the evidence."""
        if failure is not None:
            raise failure
        return _verify(params, given)

    run.__signature__ = options.signature(spec)  # type: ignore[attr-defined]
    run.__annotations__ = {}
    return run


def _verify(params: Sequence[str], given: dict[str, Any]) -> int:
    from tokitai_cli import console, pipeline

    shapes = {name: given.pop(name) for name in params}
    to_json, quiet = given.pop("json"), given.pop("quiet")
    with console.Progress(quiet=quiet) as progress:
        outcome = verify(given.pop("op"), listener=progress, shapes=shapes, **given)
    if to_json:
        sys.stdout.write(pipeline.evidence_json(outcome.evidence))
    console.show_summary(outcome.evidence, outcome.files, to_stderr=to_json)
    if outcome.interrupted is not None:
        raise outcome.interrupted
    return outcome.evidence.verdict.exit_code


def report_file(
    file: Annotated[str, typer.Argument(metavar="FILE.json", help="An evidence file.")],
    format: Annotated[str, typer.Option(help="md or json.")] = "md",
    out: Annotated[str, typer.Option(help="File to write; default stdout.")] = "",
) -> None:
    """Render an evidence file again, from the JSON alone."""
    from tokitai_cli import pipeline

    text = pipeline.render_file(file, format)
    if out:
        pipeline.write_text(out, text)
    else:
        sys.stdout.write(text)


def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Delete every entry.")] = False,
    json: Json = False,
) -> None:
    """Show the build cache, or clear it."""
    from tokitai_cli import console, pipeline

    if clear:
        console.show_cleared(pipeline.clear_cache())
    elif json:
        typer.echo(pipeline.cache_json())
    else:
        console.show_cache(pipeline.cache_contents())


def schema(
    what: Annotated[str, typer.Argument(metavar="spec|evidence", help="Which schema.")],
) -> None:
    """Print the JSON Schema of spec or evidence files."""
    from tokitai_cli import pipeline

    typer.echo(pipeline.schema_text(what))
