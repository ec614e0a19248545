"""A draft at its host's sizes, with the launch and the arrays that the host's text says.

A draft's grid fits every size, and its arrays are large enough for what the kernel reaches, its faults
included. The host's own numbers are neither.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from tokitai_cli.core.dtypes import numpy_dtype
from tokitai_cli.cpp.arithmetic import constant
from tokitai_cli.cpp.source.launches import HostLaunch, constants_of
from tokitai_cli.cpp.source.signatures import Kernel
from tokitai_cli.cpp.whole import Program
from tokitai_cli.drafts.model import ArrayDraft, Guess, LaunchDraft, ParamDraft, SpecDraft

_ALLOCATION = re.compile(
    r"\b(?:cuda|hip)Malloc(?:Managed|Async)?\s*\((?:\s*\(\s*void\s*\*\s*\*\s*\))?\s*&\s*(\w+)\s*,"
    r"((?:[^();,]|\((?:[^()]|\([^()]*\))*\))+)[,)]"
)
_CAST = re.compile(r"\bstatic_cast\s*<[^<>]*>|\(\s*(?:std\s*::\s*)?size_t\s*\)")
_MOST = 1 << 28  # elements of an array that is run
_MOST_NAMES = 64


class _Host(NamedTuple):
    """What is known of the host's text."""

    texts: tuple[str, ...]
    constants: Mapping[str, str]

    def number(self, text: str) -> int | None:
        """Value of an expression of the host; None where its text has none, or several for a name."""
        names = dict(self.constants)
        asked = re.findall(r"[A-Za-z_]\w*", text)
        while asked and len(names) < len(self.constants) + _MOST_NAMES:
            name = asked.pop()
            if name in names or name == "sizeof":
                continue
            told = {
                " ".join(found.split())
                for one in self.texts
                for found in re.findall(rf"(?<![\w.>])\b{name}\s*=(?!=)\s*([^;,{{}}]+)[;,]", one)
            }
            if len(told) == 1:
                (names[name],) = told
                asked += re.findall(r"[A-Za-z_]\w*", names[name])
        return constant(_CAST.sub("", text), {name: f"({one})" for name, one in names.items()})


def at_host(
    draft: SpecDraft, program: Program, kernel: Kernel, launch: HostLaunch | None
) -> SpecDraft:
    """The draft at the host's sizes; as it is where one of them is not known."""
    if launch is None or launch.commented or len(launch.args) != len(kernel.parameters):
        return draft
    host = _Host(tuple(one.plain for one in program.texts.values()), constants_of(program))
    passed = {
        one.name: text.strip()
        for one, text in zip(kernel.parameters, launch.args, strict=True)
        if one.name
    }
    sizes = {name: host.number(passed.get(name, name)) for name in draft.params}
    if not all(value is not None and _takes(draft.params[name], value)
               for name, value in sizes.items()):  # fmt: skip
        return draft
    params = {
        name: msgspec.structs.replace(one, default=sizes[name], why="")
        for name, one in draft.params.items()
    }
    allocated: dict[str, set[int | None]] = {}
    for text in host.texts:
        for name, size in _ALLOCATION.findall(text):
            allocated.setdefault(name, set()).add(host.number(size))
    kept = functools.partial(_kept, passed=passed, allocated=allocated)
    arrays = {name: kept(name, one) for name, one in draft.arrays.items()}
    started = _started(draft.launch, launch, host)
    return msgspec.structs.replace(draft, params=params, arrays=arrays, launch=started)


def _started(launch: LaunchDraft, of_host: HostLaunch, host: _Host) -> LaunchDraft:
    """The launch with grid and block as the host starts them, where its text says all their extents."""
    for key in ("grid", "block"):
        extents = [host.number(one) for one in getattr(of_host, key)]
        if extents and all(one is not None and one > 0 for one in extents):
            launch = msgspec.structs.replace(launch, **{key: Guess(extents)})
    return launch


def _takes(param: ParamDraft, value: int) -> bool:
    return param.fitting(value) == value and value >= (1 if param.min is None else param.min)


def _kept(
    name: str,
    one: ArrayDraft,
    passed: Mapping[str, str],
    allocated: Mapping[str, set[int | None]],
) -> ArrayDraft:
    """The array as the host allocates it, where that is one size."""
    sizes = allocated.get(passed.get(name, ""), set())
    (size,) = sizes if len(sizes) == 1 else (None,)
    if size is None or one.rows or one.structs or one.symbol:
        return one
    elements = size // (numpy_dtype(one.dtype).itemsize * max(one.inner, 1))
    if not 0 < elements <= _MOST:
        return one
    return msgspec.structs.replace(one, extents=(elements,), why="", room="", strides=())
