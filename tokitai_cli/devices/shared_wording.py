"""Words that several devices say alike: non-claims and refusals of options."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from tokitai_cli.core import resources
from tokitai_cli.core.model.device import TRAITS, Fact

NOT_MACHINE_CODE = "not machine-code verification"
SHARED_UNGUARDED = (
    "shared memory has no guards on a GPU: an access outside a shared array may not be detected"
)


def unit_words(
    device: str, language: str, defines: Mapping[str, str], flags: Iterable[str]
) -> tuple[str, ...]:
    """Words by which every compiler makes an object of a unit.

    The tool's headers, -DNAME=VALUE in order, flags, the source and what is made of it.
    """
    folders = (*filter(None, (TRAITS[device].headers,)), "harness")
    return (
        *(f"-I{resources.kernels_dir() / folder}" for folder in folders),
        *(f"-D{name}={defines[name]}" for name in sorted(defines)),
        *flags,
        *("-MD", "-MF", "{depfile}", "-x", language, "-c", "{source}", "-o", "{output}"),
    )


def set_variables(names: Iterable[str]) -> dict[str, str]:
    """Those of the environment variables `names` that are set, for a child or for facts."""
    return {name: os.environ[name] for name in names if name in os.environ}


def variable_facts(names: Iterable[str]) -> tuple[Fact, ...]:
    """Return a fact for each of the environment variables `names` that is set and is obeyed."""
    return tuple(
        Fact(f"environment.{name}", value, "environment")
        for name, value in set_variables(names).items()
    )
