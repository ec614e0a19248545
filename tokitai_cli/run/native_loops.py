"""The compiled loops of large cases: built once, checked against numpy once, and put in place.

Without a compiler everything goes by numpy, which is the reference of all of them.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

import msgspec

from tokitai_cli import build, judge
from tokitai_cli.core import native, resources, rounding
from tokitai_cli.core.errors import BuildError, UsageError
from tokitai_cli.core.model.case import Case
from tokitai_cli.devices import cpu
from tokitai_cli.oracles import builtin, compiled_rules, sequential
from tokitai_cli.spec import inputs


class _State(msgspec.Struct):
    """Whether the library was asked for, and why there is none."""

    asked: bool = False
    missing: str = ""


_STATE = _State()
_ONE_AT_A_TIME = threading.Lock()


def provide(case: Case) -> None:
    """Have the compiled loops in place where the case is large enough to be worth their build.

    Raises MismatchError where they differ from numpy's code, UsageError for a switch of another word.
    """
    if max((int(one.elements) for one in case.buffers), default=0) < native.LARGE:
        return
    switch = os.environ.get(native.SWITCH, "on")
    if switch not in ("on", "off"):
        raise UsageError(f"{native.SWITCH} is on or off, not {switch!r}")
    with _ONE_AT_A_TIME:
        if switch == "off" or _STATE.asked:
            return
        _STATE.asked = True
        try:
            found = built(resources.kernels_dir() / "native")
        except BuildError as error:
            _STATE.missing = str(error)
            return
        native.use(native.Library(found.path, found.sha256))


def digest() -> str:
    """sha256 of the library in place; "" where everything goes by numpy."""
    found = native.library()
    return "" if found is None else found.digest


def missing() -> str:
    """Why there are no compiled loops though a case would have had them, or ""."""
    return _STATE.missing


def built(folder: Path) -> build.SharedLibrary:
    """The library of the sources in `folder`, checked where it is new, or numpy's code is.

    Raises BuildError, MismatchError.
    """
    room = Path(judge.__file__).parent
    numpys = [*sorted(room.glob("*.py")), *sorted(room.glob("checks/*.py")), *builtin.engine()]
    draws = Path(inputs.__file__).parent
    numpys += [Path(compiled_rules.__file__), Path(sequential.__file__)]
    numpys += [draws / "transforms.py", draws / "compiled_draws.py"]
    depends = [*sorted(folder.glob("*.hpp")), *numpys]
    source = folder / "tokitai_native.cpp"
    return build.shared_library(cpu.library_recipe(), source, depends, check)


def check(path: Path, sha256: str) -> None:
    """Raise MismatchError where the library is not what numpy's code is."""
    library = native.Library(path, sha256)
    rounding.check_native(library)  # the others round too
    judge.check_native(library)
    compiled_rules.check_native(library)
    sequential.check_native(library)
    inputs.check_native(library)
