"""Running the compiler and reading what it says."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from tokitai_cli.build.scan import Finding
from tokitai_cli.core import process
from tokitai_cli.core.errors import BuildError, Location, NotRunError
from tokitai_cli.core.linked_folders import links_of
from tokitai_cli.core.model.device import Recipe
from tokitai_cli.core.model.harness import HarnessRequest

# A first build with pip's zig compiles the C and C++ libraries, which takes minutes.
COMPILE_SECONDS = 900.0
_FIRST_ERRORS = 5
_PLACEHOLDER = re.compile(r"\{(source|object|server|output|depfile|assembled)\}")
# What a line of the harness stands for, by its name in a #line.
_HARNESS_LINE = re.compile(
    r"tokitai:(?:kernels\[(?P<kernel>\d+)\](?P<key>[\w.\[\]]*)|(?P<other>[\w.]+))"
)
_ERROR = re.compile(
    r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+)(?::(?P<column>\d+))?: (?:fatal )?error: (?P<text>.*)$",
    re.MULTILINE,
)
# What compilers, linkers and the C library say where the machine has no more for them.
_LACK = re.compile(
    r"^.*(?:No space left on device|Disk quota exceeded|[Cc]annot allocate memory|std::bad_alloc"
    r"|(?:virtual memory exhausted|out of memory|memory exhausted)\b.*|Too many open files"
    r"|Resource temporarily unavailable|File too large|(?:File size|CPU time) limit exceeded"
    r"|Killed signal terminated program).*$",
    re.MULTILINE,
)
# By the system, where memory or the time that a limit allows ran out.
_ENDED_FROM_OUTSIDE = {-signal.SIGKILL, -signal.SIGXCPU, -signal.SIGXFSZ}
_LINK_ERROR = re.compile(
    r"^.*(?:undefined reference to|undefined symbol|ld: error|ptxas (?:error|fatal)|: error: ).*$",
    re.M,
)


def command_of(words: Sequence[str], names: Mapping[str, str]) -> tuple[str, ...]:
    """Return a recipe's argv with its placeholders replaced."""

    def fill(word: str) -> str:
        return _PLACEHOLDER.sub(lambda match: names[match.group(1)], word)

    return tuple(fill(word) for word in words)


def compile_in(
    folder: Path,
    recipe: Recipe,
    command: Sequence[str],
    log_path: Path,
    timeout: float,
    waiting: Callable[[float], None] | None = None,
) -> process.Completed:
    """Run the compiler in `folder`; its output is added to `log_path`, whether it fails or not.

    It is given the names of the folder's links in place of the folders that these lead to, and its
    output has the folders. `waiting` is told the seconds so far about once a second.
    """
    # Compilers write their folder into debug information; under this name it is always the same.
    # What a compiler that is killed leaves among its temporary files goes with the folder.
    environment = {**recipe.environment, "PWD": "/proc/self/cwd", "TMPDIR": str(folder)}
    links = links_of(folder)
    words = [command[0], *map(links.word, command[1:])]
    done = process.run(words, env=environment, cwd=folder, timeout=timeout, waiting=waiting)
    done = msgspec.structs.replace(
        done, stdout=links.text(done.stdout), stderr=links.text(done.stderr)
    )
    text = f"$ {' '.join(command)}\n{done.stdout}{done.stderr}"
    with log_path.open("a", encoding="utf-8", errors="replace") as log:
        log.write(text)
    return done


def failure(
    done: process.Completed,
    recipe: Recipe,
    command: tuple[str, ...],
    *,
    request: HarnessRequest,
    findings: Sequence[Finding],
    log_path: Path,
) -> BuildError | NotRunError:
    """Make the error to raise for a compiler that failed: first errors, place, and what may mend it.

    A NotRunError where the machine had no space, memory or processes for it.
    """
    log = _as_keys(done.stdout + done.stderr, request.places)
    name = recipe.compiler.name
    found = _LACK.search(log)
    lack = found.group().strip() if found else ""
    if done.returncode in _ENDED_FROM_OUTSIDE and not done.timed_out:
        lack = process.signal_name(done.returncode)
    if lack:
        hint = f"the compiler's output: {log_path}"
        return NotRunError(f"{name} could not run here: {lack}", hint=hint)
    where, named = None, ""
    if done.timed_out:
        message = f"{name} was stopped after {done.seconds:.0f} s"
        errors: tuple[str, ...] = ()
    elif done.returncode < 0:
        message = f"{name} died of {process.signal_name(done.returncode)}"
        errors = ()
    else:
        errors = first_errors(log)
        match = _ERROR.search(log)
        if match:
            column = int(match["column"] or 0)
            where = Location(Path(match["file"]), int(match["line"]), column)
            if match["file"].startswith("variants."):
                where = Location(key=match["file"])
            named = _named(findings, where, request.source, recipe.device)
            message = named or match["text"]
        else:
            message = errors[0] if errors else f"{name} failed with exit code {done.returncode}"
    known = "" if named else _hint(recipe.device, request.source, findings)
    return BuildError(
        message,
        where=where,
        hint=_stated_hint(recipe, log) or known,
        log=log,
        log_path=log_path,
        first_errors=errors,
        command=command,
    )


def _named(findings: Sequence[Finding], where: Location, source: Path, device: str) -> str:
    """What the device cannot run in the line that the compiler stumbles over; empty for nothing."""
    for one in findings:
        file = Path(one.file) if one.file else source
        if one.line == where.line and where.file is not None and file.name == where.file.name:
            return f"the {device} device cannot run {one.name}: {one.what}"
    return ""


def _as_keys(log: str, places: Sequence[str]) -> str:
    """A compiler's output with the spec's keys for lines of the harness."""

    def key(match: re.Match[str]) -> str:
        if match["kernel"] is None:
            variant = places[0].partition(".launches")[0] if places else "variants"
            return f"{variant}.{match['other']}"
        number = int(match["kernel"])
        return (places[number] if number < len(places) else "variants") + match["key"]

    return _HARNESS_LINE.sub(key, log)


def first_errors(log: str) -> tuple[str, ...]:
    """First error lines of a compiler's output: file:line, else the linker's, else the last lines."""
    lines = [match.group() for match in _ERROR.finditer(log)]
    if not lines:
        lines = [match.group() for match in _LINK_ERROR.finditer(log)]
    if not lines:
        lines = [line for line in log.splitlines() if line.strip()][-_FIRST_ERRORS:]
    return tuple(lines[:_FIRST_ERRORS])


def _stated_hint(recipe: Recipe, log: str) -> str:
    """What the recipe knows of an error in the compiler's own words."""
    return next((hint for pattern, hint in recipe.mends if re.search(pattern, log)), "")


def _hint(device: str, source: Path, findings: Sequence[Finding]) -> str:
    if not findings:
        return ""
    first = findings[0]
    return (
        f"{Path(first.file).name or source.name}:{first.line} holds {first.name}, {first.what}, "
        f"which the {device} device cannot run"
    )
