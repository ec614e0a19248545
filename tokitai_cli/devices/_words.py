"""Words that several devices say alike: non-claims and refusals of options."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from tokitai_cli.errors import UsageError
from tokitai_cli.model.device import Fact

NOT_MACHINE_CODE = "not machine-code verification"

# Options that would change what the build writes, or where.
_REFUSED_FLAGS = frozenset(
    {"-o", "-c", "-S", "-E", "-M", "-MM", "-MD", "-MMD", "-MF", "-x", "-shared"}
)


def define_flags(defines: Mapping[str, str]) -> tuple[str, ...]:
    """-DNAME=VALUE in order of names."""
    return tuple(f"-D{name}={defines[name]}" for name in sorted(defines))


def checked_flags(flags: Sequence[str]) -> tuple[str, ...]:
    """Check the spec's own compiler flags; raises UsageError for one that would break the build."""
    for flag in flags:
        if flag in _REFUSED_FLAGS or not flag.startswith("-") or "{" in flag:
            raise UsageError(
                f"the compiler flag {flag!r} cannot be given in a spec",
                mend="give options such as -O2, -ffast-math or -DNAME=VALUE, each as one word",
            )
    return tuple(flags)


def set_variables(names: Iterable[str]) -> dict[str, str]:
    """Those of the environment variables `names` that are set, for a child or for facts."""
    return {name: os.environ[name] for name in names if name in os.environ}


def variable_facts(names: Iterable[str]) -> tuple[Fact, ...]:
    """Return a fact for each of the environment variables `names` that is set and is obeyed."""
    return tuple(
        Fact(f"environment.{name}", value, "environment")
        for name, value in set_variables(names).items()
    )
