"""`doctor`."""

from __future__ import annotations

import typer

from tokitai_cli.cli.verbs.json_option import Json


def doctor(json: Json = False) -> int:
    """Show which devices and compilers this machine has.

    Reports what is missing and the command that installs it.

    Example: tokitai doctor
    """
    from tokitai_cli.cli import terminal
    from tokitai_cli.run import inventory

    found = inventory.diagnose()
    if json:
        typer.echo(inventory.diagnosis_json(found))
    else:
        terminal.show_doctor(found)
    return 0 if any(device.available and device.buildable for device in found.devices) else 3
