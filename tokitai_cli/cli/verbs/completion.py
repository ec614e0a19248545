"""`completion SHELL`."""

from __future__ import annotations

from typing import Annotated

import typer

from tokitai_cli.cli.verbs.json_option import Json, print_json
from tokitai_cli.core.errors import UsageError, near

_SHELLS = ("bash", "zsh", "fish")


def completion(
    shell: Annotated[str, typer.Argument(metavar="|".join(_SHELLS), help="Which shell.")],
    json: Json = False,
) -> None:
    """Print a shell script that completes verbs and options.

    Example: eval "$(tokitai completion bash)"
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    from tokitai_cli.cli.typer_options import COMPLETE

    if shell not in _SHELLS:
        raise UsageError(f"{shell}: no such shell", hint=near(shell, _SHELLS))
    script = get_completion_script(prog_name="tokitai", complete_var=COMPLETE, shell=shell)
    if json:
        print_json({"shell": shell, "script": script})
    else:
        typer.echo(script)
