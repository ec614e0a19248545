"""The command: its verbs, and what their ends mean."""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from tokitai_cli.cli import typer_options
from tokitai_cli.cli.ending import answer_for_libraries
from tokitai_cli.core.errors import TokitaiError, UsageError
from tokitai_cli.core.version import __version__

# In the order of work: the module of each, and its function; with (), or none, one that makes it of the
# command line. The one that is named is loaded alone.
_VERBS = {
    "doctor": "doctor.doctor",
    "list": "show.list_ops",
    "show": "show.show",
    "find": "find.find",
    "isa": "isa.isa",
    "new": "new.new",
    "verify": "verify",
    "sanitize": "sanitize",
    "batch": "batch",
    "merge": "merge",
    "mutate": "mutate.mutate",
    "advise": "advise.advise",
    "report": "report",
    "check": "audit.check",
    "recheck": "audit.recheck",
    "reproduce": "audit.reproduce()",
    "unpack": "audit.unpack",
    "diff": "audit.diff",
    "claims": "audit.claims",
    "compare": "compare",
    "attest": "audit.attest",
    "cache": "cache.cache",
    "schema": "schema.schema",
    "explain": "explain.explain",
    "completion": "completion.completion",
}


def build(arguments: Sequence[str]) -> typer.Typer:
    """The application. `arguments` are peeked at: `verify OP` has options of its own per OP."""
    app = typer.Typer(
        name="tokitai",
        help="Verifies GPU kernels and writes evidence that a reviewer can trust.",
        invoke_without_command=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": list(typer_options.HELP)},
    )
    app.callback()(_front_door)
    for name in arguments[:1] if set(arguments[:1]) & set(_VERBS) else _VERBS:
        app.command(name)(_handled(_verb(name, arguments)))
    return app


def _verb(name: str, arguments: Sequence[str]) -> typer_options.Verb:
    module, _, function = _VERBS[name].partition(".")
    home = importlib.import_module(f"tokitai_cli.cli.verbs.{module}")
    made = getattr(home, function.removesuffix("()") or "verb")
    verb: typer_options.Verb = made if function and not function.endswith("()") else made(arguments)
    return verb


def run(arguments: Sequence[str]) -> int:
    """Run one command line; returns its exit code. Interrupts and a lost stdout are raised."""
    try:
        if asked := os.environ.get(typer_options.COMPLETE):
            return _completed(asked)
        command = typer.main.get_command(build(arguments))
        # Not its `main`, which has exit codes of its own for interrupts and a closed pipe.
        with command.make_context("tokitai", list(arguments)) as context:
            command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except (typer.BadParameter.__base__, TokitaiError) as error:  # type: ignore[misc]
        from tokitai_cli.cli import terminal

        told = error if isinstance(error, TokitaiError) else _usage_error(error, arguments)
        terminal.show_error(told)
        return told.exit_code
    return 0


def _completed(asked: str) -> int:
    """Answer a shell, whose script tells in variables what was typed."""
    import shlex

    from typer.completion import completion_init, shell_complete  # type: ignore[attr-defined]

    typed = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or ""
    with contextlib.suppress(ValueError):  # a quotation mark without its other
        typed = " ".join(shlex.split(typed)[1:])
    completion_init()
    command = typer.main.get_command(build(typed.split()))
    return shell_complete(command, {}, "tokitai", typer_options.COMPLETE, asked)


def _usage_error(error: Any, arguments: Sequence[str]) -> UsageError:
    """What the command line's parser refuses, in the form of every other error."""
    message = str(error.format_message()).rstrip(".")
    message = f"{message[:1].lower()}{message[1:]}"
    command = error.ctx.command_path if error.ctx is not None else "tokitai"
    hint = f"`{command} --help` shows what can be given"
    if option := getattr(error, "option_name", ""):
        if near_by := getattr(error, "possibilities", None):
            message, hint = f"no such option: {option}", f"did you mean {' or '.join(near_by)}?"
        if arguments[:1] == ["verify"] and typer_options.find_op(arguments, "verify") is None:
            hint = "name the op before the options of its parameters: tokitai verify OP ..."
    return UsageError(message, hint=hint)


def _handled(verb: typer_options.Verb) -> Callable[..., None]:
    """The verb with what it returns as its exit code."""

    @functools.wraps(verb)
    def run_verb(*args: Any, **kwargs: Any) -> None:
        answer_for_libraries()
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
