"""compute-sanitizer around the child of the cuda device: its command lines and its reports.

Source of the forms: NVIDIA, Compute Sanitizer User Manual, chapters Memcheck, Racecheck, Initcheck and
Synccheck.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from tokitai_cli.core.errors import InadmissibleError
from tokitai_cli.core.model.device import TRAITS, Sanitizer, SanitizerKind
from tokitai_cli.core.model.judged import FindingRecord
from tokitai_cli.devices.programs import answer, first_program
from tokitai_cli.devices.sanitizers.watch_log import counted
from tokitai_cli.devices.sanitizers.watched import Watched

_NAME = TRAITS["cuda"].sanitizer
# Tool, what it looks at, at what of it, options of the tool, options of the child.
_TOOLS: tuple[tuple[str, SanitizerKind, str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("memcheck", "memory", "every access to global, shared and local memory", (), ()),
    ("racecheck", "shared-races", "accesses to shared memory between barriers",
     ("--racecheck-report", "analysis"), ()),
    ("initcheck", "initialisation", "reads of global memory that was never written", (),
     ("--keep-unwritten",)),
    ("synccheck", "barriers", "barriers of blocks and warps", (), ()),
)  # fmt: skip
# Reports of equal faults by many threads are cut off there; one is enough to refute.
_LIMIT = 200
_MARK = "========="
# First lines of a report. What the others say is about the program as a whole.
_HEADS = re.compile(
    r"(?:Error|Warning): Race reported|(?:Error|Warning): Potential .* hazard|Invalid __?\w+"
    r"|Misaligned|Stack overflow|Uninitialized|Barrier error|Program hit|Fatal UVM|Malloc/Free error"
    r"|Unknown Error|(?:Out of|Leaked) |Unused memory|Internal Memcheck Error|Invalid (?:read|write|pc)"
)
_NOT_FINDINGS = re.compile(r"Internal \w+ Error|Unused memory|Leaked ")
_SUMMARY = re.compile(r"(?:ERROR|RACECHECK|LEAK) SUMMARY:")
# "at kernel(int *)+0x70 in file.cu:5", in older releases "at 0x70 in file.cu:5:kernel(int *)".
_PLACES = (
    re.compile(r"(?P<kernel>\S.*?)\+0x[0-9a-f]+ in (?P<place>.+?:\d+)(?=\s|$)"),
    re.compile(r"0x[0-9a-f]+ in (?P<place>.+?:\d+):(?P<kernel>.+?)(?=\s+\[|$)"),
    re.compile(r"(?P<kernel>\S.*?):0x[0-9a-f]+ in (?P<place>.+?:\d+)(?=\s|$)"),
    re.compile(r"(?P<kernel>\S.*?)\+0x[0-9a-f]+(?P<place>)(?=\s|$)"),
)
# Headers of the CUDA toolkit, and the tool's own that lead to them.
_TOOLKIT = re.compile(
    r"(?:.*/)?(?:cuda_\w+|sm_\d\w*|device_\w+|math_\w+|mma|vector_\w+|hip_\w+|texture_\w+|surface_\w+"
    r"|cooperative_groups|functional|atomic)\w*(?:\.h|\.hpp|\.inl)?:\d+"
)
_THREADS = re.compile(r"by threads? (.+)$")
_NEAREST = re.compile(
    r"is ([\d,]+) bytes? (after|before) the nearest allocation.* of size ([\d,]+) bytes?"
)
# Bytes beside an allocation in which a wrapped index may lie.
_BESIDE = 1 << 16


def sanitizers() -> tuple[Sanitizer, ...]:
    """Every tool of compute-sanitizer; raises InadmissibleError where the program is not there."""
    root = os.environ.get("CUDA_HOME", "")
    found = first_program(
        [
            (f"{root}/bin/{_NAME}" if root else "", "CUDA_HOME"),
            (_NAME, "PATH"),
            (f"/usr/local/cuda/bin/{_NAME}", "/usr/local/cuda"),
            (f"/usr/local/cuda/{_NAME}/{_NAME}", "/usr/local/cuda"),
        ]
    )
    if found is None:
        raise InadmissibleError(
            f"no {_NAME} (looked in CUDA_HOME, PATH, /usr/local/cuda)",
            hint="it comes with the CUDA toolkit",
        )
    program = str(found[0])
    version = answer([program, "--version"])
    return tuple(_tool(program, version, *row) for row in _TOOLS)


def _tool(
    program: str,
    version: str,
    tool: str,
    kind: SanitizerKind,
    scope: str,
    options: tuple[str, ...],
    of_child: tuple[str, ...],
) -> Sanitizer:
    limit = ("--print-limit", str(_LIMIT), "--log-file", "{log}")
    prefix = (program, "--tool", tool, *options, *limit)
    return Sanitizer(
        tool=f"{_NAME} {tool}",
        looks=((kind, scope),),
        program=program,
        version=version,
        under=lambda device, folder: Watched(device, prefix, of_child, folder),
        read=lambda text: read_report(text, tool),
    )


def read_report(text: str, tool: str) -> tuple[FindingRecord, ...]:
    """Findings in a log of compute-sanitizer, those of one place as one with a count.

    Raises ValueError where the tool said that it cannot work here, or ended without a summary.
    """
    records = list(_records(text))
    found: dict[tuple[str, ...], FindingRecord] = {}
    for record in records:
        if _HEADS.match(record[0]) and not _NOT_FINDINGS.match(record[0]):
            one = _finding(record, tool)
            # What stands nowhere, such as an error of the runtime, is told by its words.
            key = (one.kind, one.kernel, one.location or one.message)
            found[key] = counted(found[key], one) if key in found else one
    if not found and not _SUMMARY.search(text):
        said = " / ".join(" ".join(record) for record in records[-3:])
        raise ValueError(f"it gave no summary: {said or 'its log is empty'}")
    return tuple(found.values())


def _records(text: str) -> Iterator[list[str]]:
    """Reports of a log as their lines without the marks: a first line, and indented ones."""
    record: list[str] = []
    for line in text.splitlines():
        if not line.startswith(_MARK):
            continue
        words = line.removeprefix(_MARK)
        if words.startswith("     ") and record:
            record.append(words.strip())
            continue
        if record:
            yield record
        record = [words.strip()] if words.strip() and words.strip() != "COMPUTE-SANITIZER" else []
    if record:
        yield record


def _finding(record: list[str], tool: str) -> FindingRecord:
    kernel = threads = ""
    places: list[str] = []
    for line in record:
        # Behind the device's part stands the host's stack, which says nothing of the kernel.
        if line.startswith(("Saved host backtrace", "Host Frame")):
            continue
        if line.startswith("Device Frame:"):  # of who called an inline function
            name, where = _place(line.removeprefix("Device Frame:").strip())
            kernel = name or kernel
            if where and places and _TOOLKIT.match(places[-1]):
                places[-1] = where
            continue
        if match := _THREADS.search(line):
            threads = threads or match[1]
        at = re.search(r"(?:^|\s)(?:at|access at) (.*)$", line)
        name, where = _place(at[1]) if at else ("", "")
        kernel = kernel or name
        if where and where not in places:
            places.append(where)
    told = [line for line in record[1:] if line.startswith(("Access ", "Address ", "and "))]
    words = (" " if "Race reported" in record[0] else "; ").join([record[0], *told])
    # Addresses differ from run to run, and the kernel stands in a field of its own.
    words = re.sub(r"\bat (?:\S.*?)?\+?0x[0-9a-f]+ in ", "at ", words)
    words = re.sub(r"(?:\b(?:at|to) )?\b0x[0-9a-f]+ ?", "", words)
    return FindingRecord(
        tool=f"{_NAME} {tool}",
        kind=_kind(record[0]),
        message=" ".join(words.split()) + _wrapped_index(record),
        kernel=kernel,
        location=", ".join(places),
        threads=threads,
    )


def _wrapped_index(record: list[str]) -> str:
    """That the address is 2^32 elements from one in the nearest allocation, or 64 KiB beside it.

    The tool names no array, and where another allocation is nearer, its distance tells nothing.
    """
    found = next((match for line in record if (match := _NEAREST.search(line))), None)
    if found is None:
        return ""
    distance, size = (int(digits.replace(",", "")) for digits in (found[1], found[3]))
    after = found[2] == "after"
    offset = distance + size if after else -distance
    for element in (1, 2, 4, 8, 16):
        moved = offset - (element << 32) if after else offset + (element << 32)
        if -_BESIDE <= moved <= size + _BESIDE:
            bytes_ = "byte" if element == 1 else "bytes"
            side = "past the end of" if after else "before"
            return (
                f"; 2^32 elements of {element} {bytes_} {side} that allocation: a 32-bit index that "
                "wrapped around"
            )
    return ""


def _place(text: str) -> tuple[str, str]:
    """Kernel and file:line of the text behind "at"."""
    for pattern in _PLACES:
        if match := pattern.match(text):
            return _without_arguments(match["kernel"]), match["place"].strip()
    return "", ""


def _without_arguments(signature: str) -> str:
    """`row_sums<(bool)0>` of "row_sums<(bool)0>(const float *, int)"."""
    depth = 0
    for at, letter in enumerate(signature):
        depth += {"<": 1, ">": -1}.get(letter, 0)
        if letter == "(" and depth == 0:
            return signature[:at].strip()
    return signature.strip()


def _kind(head: str) -> str:
    """What a report's first line is about, in a word or two of evidence."""
    for pattern, kind in (
        (r"Invalid \w+ read", "invalid-read"),
        (r"Invalid \w+ write", "invalid-write"),
        (r"Invalid \w+ atomic", "invalid-atomic"),
        (r"Misaligned", "misaligned-access"),
        (r".*Race reported|.*hazard", "race"),
        (r"Uninitialized", "uninitialised-read"),
        (r"Barrier error", "barrier"),
        (r"Program hit", "runtime-error"),
        (r"Stack overflow", "stack-overflow"),
    ):
        if re.match(pattern, head):
            return kind
    return "error"
