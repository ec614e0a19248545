"""What a device found while kernels ran, as its answer tells it, in records of the evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tokitai_cli.core.dtypes import DTYPES
from tokitai_cli.core.model.judged import FindingRecord
from tokitai_cli.core.model.wording import visible
from tokitai_cli.run.child.memory_layout import Placed


def records(
    findings: Sequence[Mapping[str, str]], buffers: Sequence[Placed], tool: str
) -> tuple[FindingRecord, ...]:
    """A record of each; `buffers` are those that the answer numbers."""
    return tuple(_record(one, buffers, tool) for one in findings)


def _record(one: Mapping[str, str], buffers: Sequence[Placed], tool: str) -> FindingRecord:
    places = [
        f"{one[f'{prefix}file'].removeprefix('./')}:{one[f'{prefix}line']}"
        for prefix in ("", "other_")
        if f"{prefix}file" in one
    ]
    threads = [one[key] for key in ("thread", "other_thread") if key in one]
    return FindingRecord(
        tool=tool,
        kind=one.get("kind", "unknown"),
        message=visible(one.get("message", "")),
        kernel=visible(one.get("kernel", "")),
        location=visible(", ".join(dict.fromkeys(places))),
        threads=" and ".join(threads),
        array=_array(one, buffers),
        count=int(one.get("count", "1")),
        severity="warning" if one.get("lower") == "1" else "error",
    )


def _array(one: Mapping[str, str], buffers: Sequence[Placed]) -> str:
    """Name and element of what was accessed, where it is known."""
    if "offset" not in one:
        return ""
    offset, size = int(one["offset"]), max(int(one.get("size", "1")), 1)
    if "buffer" not in one:
        return f"shared memory, byte {offset}"
    plan = buffers[int(one["buffer"])].plan
    size = DTYPES[plan.dtype].nbytes if plan.dtype in DTYPES else size
    element = f"{plan.name}[{offset // size}]"
    return element if 0 <= offset < plan.nbytes else f"{element} of {plan.nbytes // size} elements"
