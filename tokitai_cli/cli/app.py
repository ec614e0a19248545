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
import typer.core

from tokitai_cli.cli import typer_options
from tokitai_cli.cli.ending import answer_for_libraries
from tokitai_cli.core.errors import TokitaiError, UsageError
from tokitai_cli.core.version import __version__

# Groups of the help, each in the order of work: the module of each verb, and its function; with (), or
# none, one that makes it of the command line. The one that is named is loaded alone.
_GROUPS = {
    "Start": {
        "doctor": "doctor.doctor",
        "list": "show.list_ops",
        "verify": "verify",
        "new": "new.new",
        "explain": "explain.explain",
    },
    "Write a spec": {
        "find": "find.find",
        "isa": "isa.isa",
        "show": "show.show",
        "advise": "advise.advise",
        "mutate": "mutate.mutate",
    },
    "Verify more": {
        "sanitize": "sanitize",
        "batch": "batch",
        "merge": "merge",
    },
    "Evidence": {
        "report": "report",
        "check": "audit.check",
        "recheck": "audit.recheck",
        "reproduce": "audit.reproduce()",
        "unpack": "audit.unpack",
        "diff": "audit.diff",
        "claims": "audit.claims",
        "compare": "compare",
        "attest": "audit.attest",
    },
    "Maintain": {
        "cache": "cache.cache",
        "schema": "schema.schema",
        "completion": "completion.completion",
    },
}
_VERBS = {name: home for group in _GROUPS.values() for name, home in group.items()}


class _Grouped(typer.core.TyperGroup):
    """The command, whose help lists its verbs by group."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each group, with columns that stand below each other in all of them."""
        width = max(map(len, _VERBS))
        for group, verbs in _GROUPS.items():
            rows = [
                (name.ljust(width), command.get_short_help_str(formatter.width))
                for name in verbs
                if (command := self.get_command(ctx, name)) is not None
            ]
            with formatter.section(group):
                formatter.write_dl(rows)


def build(arguments: Sequence[str]) -> typer.Typer:
    """The application. `arguments` are peeked at: `verify OP` has options of its own per OP."""
    app = typer.Typer(
        name="tokitai",
        cls=_Grouped,
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
    hint = f"`{command} --help` lists the possible values"
    if option := getattr(error, "option_name", ""):
        if near_by := getattr(error, "possibilities", None):
            message, hint = f"no such option: {option}", f"did you mean {' or '.join(near_by)}?"
        if arguments[:1] == ["verify"] and typer_options.find_op(arguments, "verify") is None:
            hint = "put the op before the options for its params: tokitai verify OP ..."
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
