"""Findings in the log of a watched child of the cpu device (kernels/harness/tokitai_watch.hpp)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from tokitai_cli.core.linked_folders import links_of
from tokitai_cli.core.model.judged import FindingRecord
from tokitai_cli.devices.sanitizers import source_lines


def read_log(text: str, tool: str) -> tuple[FindingRecord, ...]:
    """Findings of a log, each place once.

    Raises ValueError where no case came to its end and nothing was found.
    """
    said = re.search(r"^program\t(.*)$", text, re.MULTILINE)
    program = said[1] if said is not None else ""
    links = links_of(Path(program).parent)
    lines = [line.split("\t") for line in links.text(text).splitlines()]
    found = [
        dict(word.split("=", 1) for word in words[1:] if "=" in word)
        for words in lines
        if words[0] == "finding"
    ]
    if not found and not any(words[0] == "case" for words in lines):
        raise ValueError("its log holds no case")
    frames = [frame for one in found for key in _FRAMES for frame in one.get(key, "").split(",")]
    where = source_lines.lines_of(program, filter(None, frames))
    told: dict[tuple[str, ...], FindingRecord] = {}
    for one in found:
        record = _record(one, where, tool)
        key = (record.kind, " ".join(sorted(record.location.split(", "))), record.kernel)
        known = told.get(key)
        told[key] = record if known is None else counted(known, record)
    # A fault that was told before it happened needs no second word.
    known_places = {one.location for one in told.values() if one.kind != "fault"}
    kept = [one for one in told.values() if one.kind != "fault" or one.location not in known_places]
    return tuple(sorted(kept, key=_rank))


# Causes stand in front of what may follow: values that are not there yet, and what they lead to.
_CAUSES = (
    *("deadlock", "barrier", "mask", "scoped-race", "race", "mixed-race", "missing-acquire"),
    *("same-value-race", "resident-blocks", "stale-flag"),
)
_EFFECTS = ("uninitialised-read", "integer-overflow", "index-out-of-bounds", "shift")
# Told by the scheduler in whatever build it runs.
_SCHEDULED = frozenset({"deadlock", "barrier", "mask", "resident-blocks", "inactive-lane"})


def _rank(one: FindingRecord) -> tuple[bool, bool, int]:
    place = _CAUSES.index(one.kind) if one.kind in _CAUSES else len(_CAUSES)
    return one.kind == "left-out", one.kind in _EFFECTS, place  # how many more there are comes last


_FRAMES = ("frames", "other_frames")


def counted(known: FindingRecord, more: FindingRecord) -> FindingRecord:
    """One record of two that tell the same place: the first one's words, the graver severity."""
    from msgspec.structs import replace

    severity = "error" if "error" in {known.severity, more.severity} else "warning"
    return replace(known, count=known.count + more.count, severity=severity)


def _record(one: Mapping[str, str], where: Mapping[str, list[str]], tool: str) -> FindingRecord:
    said = [f"{one['file']}:{one['line']}"] if one.get("file") else []

    def place(key: str, known: list[str]) -> str:
        frames = one.get(key, "").split(",")
        return source_lines.own(
            [*known, *(line for frame in frames for line in where.get(frame, []))]
        )

    spots = [place("frames", said)]
    threads = [one.get("thread", "")]
    if "other_thread" in one:
        spots.append(place("other_frames", []))
        threads.append(one["other_thread"])
    location = ", ".join(dict.fromkeys(filter(None, spots)))
    message = re.sub(r"(?: of)? ?\b0x[0-9a-f]{6,}", "", one.get("message", ""))
    return FindingRecord(
        tool="scheduler" if one["kind"] in _SCHEDULED else tool,
        kind=one["kind"],
        message=source_lines.with_vectors(message, location),
        kernel=one.get("kernel", ""),
        location=location,
        threads=" and ".join(dict.fromkeys(filter(None, threads))),
        array=_array(one),
        count=int(one.get("count", "1")),
        severity="warning" if one.get("lower") == "1" else "error",
    )


def _array(one: Mapping[str, str]) -> str:
    """`KIND NAME: byte OFFSET of BYTES, SIZE at once`, for `element` to read."""
    if not one.get("array"):
        return ""
    return f"{one['array']}: byte {one['offset']} of {one['bytes']}, {one['size']} at once"


_PLACE = re.compile(
    r"(?P<kind>buffer|shared|variable) (?P<name>.+): byte (?P<offset>-?\d+) of (?P<bytes>\d+), "
    r"(?P<size>\d+) at once"
)


def element(array: str, buffers: list[tuple[str, int]]) -> str:
    """An array in words: its name and element. `buffers`: name and bytes of an element, by index."""
    match = _PLACE.fullmatch(array)
    if match is None:
        return array
    kind, name, size = match["kind"], match["name"], max(int(match["size"]), 1)
    if kind == "buffer":
        name, size = buffers[int(name)]
    offset, whole = int(match["offset"]), int(match["bytes"])
    words = f"{'' if kind == 'buffer' else f'{kind} '}{name}[{offset // size}]".replace(
        "shared dynamic shared memory", "dynamic shared memory"
    )
    return words if 0 <= offset < whole else f"{words} of {whole // size} elements"
