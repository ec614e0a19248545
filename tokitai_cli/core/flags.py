"""Compiler flags of a spec: which can be given, and where the paths in them lead.

A flag may change how code is made, and where headers and libraries are looked for. One that changes
what the build writes, or that has a compiler read what no list of its inputs names, would leave a
build stale without a word.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

# Patterns are compiled where a spec has flags; most have none.
# The settings of a C++ library stay as its compiler gives them, also around the tool's headers.
MACRO = r"(?!TOKITAI|__|_LIBCPP_|_GLIBCXX_)[A-Za-z_][A-Za-z0-9_]*"
MACRO_RULE = "names that start with __, TOKITAI, _LIBCPP_ or _GLIBCXX_ are reserved"
_FORM = r"-[^\s{}]+"
_MACRO_FLAG = r"-[DU](?P<name>[^=(]*)"
_INCLUDE = ("-I", "-isystem", "-iquote")
_LAST = "-idirafter"  # behind the system's
_WITH_PATH = r"(?P<option>-include|-I|-isystem|-iquote|-idirafter|-L)(?P<path>[^=-].*)"
# -f flags by which a compiler reads or writes a further file, or loads code of others.
_FILES = (
    r"-f(?:plugin|pass-plugin|dump|profile|auto-profile|branch-prob|modul|prebuilt|pch|implicit-module"
    r"|save-opt|opt-info|stack-usage|callgraph-info|time-trace|crash|compare-debug|use-ld|ld-path"
    r"|sanitize-\w*list|xray|thinlto|embed-offload|offload|syntax-only|working-dir|diagnostics-.*file"
    r"|diagnostics-format|memory-profile|cs-profile|proc-stat|api-notes).*"
)
_FAMILIES = (
    r"-(?:[DUOLlWfm].+|O|g[0-9a-z]*(?:-[a-z0-9-]+)?|std=.+|ansi|pthread|pedantic(?:-errors)?|G"
    r"|nostdinc(?:\+\+)?|rdynamic|static(?:-lib[a-z]+)?|no-pie|pie"
    r"|-param=.+|-expt-[a-z-]+|-gpu-[a-z-]+=.+|-maxrregcount=\d+|-use_fast_math|-default-stream=.+"
    r"|use_fast_math|(?:fmad|ftz|prec-div|prec-sqrt)=.+|lineinfo)"
)
_PASSED_ON = r"-W[apl],.*|-Xlinker.*|-Xassembler.*|-Xclang.*|-mllvm.*"
_LINKER = (
    r"-Wl(?:,-z,[a-z-]+|,--?(?!T|script|plugin|R|retain|version-script|dynamic-list|Map|o)"
    r"[A-Za-z][^,/@]*)+"
)
_WATCHES = r"-fsanitize=(?:.*,)?(?:thread|memory|hwaddress)\b"
_HINT = "give options such as -O2, -ffast-math, -Iinclude, -lNAME or -DNAME=VALUE, each as one word"


def fault(flag: str) -> tuple[str, str]:
    """What is wrong with a flag of a spec, and the mend; empty texts where nothing is."""
    shown = f"the compiler flag {flag!r}"
    if not re.fullmatch(_FORM, flag):
        return (
            f"{flag!r} is not a flag",
            "one flag per entry, starting with -, without spaces or braces",
        )
    macro = re.match(_MACRO_FLAG, flag)
    if macro is not None and not re.fullmatch(MACRO, macro["name"]):
        return f"{shown} is not a macro of your own", MACRO_RULE
    if re.fullmatch(_WITH_PATH, flag):
        return "", ""
    if re.fullmatch(_FILES, flag) or (
        re.fullmatch(_PASSED_ON, flag) and not re.fullmatch(_LINKER, flag)
    ):
        return f"{shown} may read or write files that the tool cannot track", _HINT
    if re.match(_WATCHES, flag):
        return f"{shown} needs a runtime that knows GPU threads", "use `tokitai sanitize`"
    if not re.fullmatch(_FAMILIES, flag):
        return f"{shown} cannot be given in a spec", _HINT
    return "", ""


def resolved(flags: Iterable[str], folder: Path) -> tuple[str, ...]:
    """`flags` with relative paths of headers and libraries made absolute; they start at `folder`."""

    def absolute(flag: str) -> str:
        match = re.fullmatch(_WITH_PATH, flag)
        if match is None:
            return flag
        return match["option"] + os.path.abspath(folder / match["path"])  # noqa: PTH100 - links stay

    return tuple(absolute(flag) for flag in flags)


def paths(flags: Iterable[str]) -> list[str]:
    """Paths of headers and libraries that flags of a spec name, as they stand there."""
    found = (re.fullmatch(_WITH_PATH, flag) for flag in flags)
    return [match["path"] for match in found if match is not None]


def include_folders(command: Sequence[str]) -> list[Path]:
    """Folders of a compiler's command that an #include is looked for in, in its order."""
    return [*_folders(command, _INCLUDE), *last_folders(command)]


def last_folders(command: Sequence[str]) -> list[Path]:
    """Of these, those that are looked into behind the system's own."""
    return _folders(command, (_LAST,))


def _folders(command: Sequence[str], options: Sequence[str]) -> list[Path]:
    folders: list[Path] = []
    words = iter(command)
    for word in words:
        option = next((one for one in options if word.startswith(one)), None)
        if option is not None:
            folders.append(Path(word[len(option) :] or next(words, ".")))
    return folders


def included(command: Iterable[str]) -> list[Path]:
    """Files that a compiler's command takes in in front of the source."""
    found = (re.fullmatch(r"-include=?(.+)", word) for word in command)
    return [Path(match[1]) for match in found if match is not None]


def libraries(command: Sequence[str]) -> tuple[list[Path], list[str]]:
    """Folders that a command's -l libraries are looked for in first, and the names of their files."""
    names: list[str] = []
    for word in command:
        if word.startswith("-l:"):
            names.append(word[3:])
        elif word.startswith("-l"):
            names += [f"lib{word[2:]}.so", f"lib{word[2:]}.a"]
    return [Path(word[2:]) for word in command if word.startswith("-L/")], names


def macros(command: Iterable[str]) -> list[str]:
    """Names that a command defines or undefines, but for the tool's own."""
    given = [word for word in command if word.startswith(("-D", "-U")) and "TOKITAI" not in word]
    found = (re.match(_MACRO_FLAG, word) for word in given)
    names = (match["name"] for match in found if match is not None)
    return list(dict.fromkeys(name for name in names if re.fullmatch(MACRO, name)))


_STANDARDS = dict.fromkeys(("20", "2a"), "202002L") | dict.fromkeys(("23", "2b"), "202302L")


def definitions(command: Iterable[str]) -> dict[str, str]:
    """Macros that a compiler's command defines, with their values; one without a value is 1.

    Among them the one by which C++ says its version, where that is another than the tool's own.
    """
    found: dict[str, str] = {}
    for word in command:
        if word.startswith(("-std=c++", "-std=gnu++")):  # the last one holds
            found.pop("__cplusplus", None)
            if word.rpartition("+")[2] in _STANDARDS:
                found["__cplusplus"] = _STANDARDS[word.rpartition("+")[2]]
        name, mark, value = word[2:].partition("=")
        if word.startswith("-D"):
            found[name] = value if mark else "1"
        elif word.startswith("-U"):
            found.pop(name, None)
    return found


def of_code(given: Iterable[str]) -> tuple[str, ...]:
    """Flags that decide how code is made: all but macros and what headers and libraries are found by."""
    return tuple(flag for flag in given if not re.match(r"-(?:[DUILl]|i|Wl,)", flag))
