"""What pytest shows of a case that did not pass."""

from __future__ import annotations

from collections.abc import Iterator

from tokitai_cli.batch.index import worst_element
from tokitai_cli.core.model.evidence import CaseRecord
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.core.model.wording import error_line, visible
from tokitai_cli.pytest_plugin.bench import Served

MOST_LINES = 10
MOST_COLUMNS = 400
_OTHER_DEVICE = "no test: choose an available device with --tokitai-device"


def failure_text(served: Served) -> str:
    """Verdict and reason on the first line, then what a reader needs to go on."""
    record = served.record
    lines = [f"{record.verdict}: {record.reason}", *_around(record)]
    if record.verdict is Verdict.INADMISSIBLE:
        lines.append(f"  {_OTHER_DEVICE} (this one is {record.device})")
    if served.build is not None:
        lines += [f"    {text}" for text in served.build.record.failed[:MOST_LINES]]
        lines.append(f"  full log: {served.build.log}" if served.build.log else "")
    lines += _tail("kernel", served.log)
    lines += _tail("oracle", served.oracle_log)
    lines.append(f"  run it again: {record.rerun}")
    return "\n".join(visible(line) for line in lines if line)


def fault_text(error: Exception) -> str:
    """One line for a fault of the tool, whose traceback is in a file."""
    from tokitai_cli.run.faults import save_fault

    path = save_fault(error, ["pytest"])
    return visible(f"internal-error: {error_line(error)}; log: {path or 'could not be written'}")


def _around(record: CaseRecord) -> Iterator[str]:
    """The worst element, the pattern of what is wrong, and whether it came out the same again."""
    worst = worst_element(record)
    if worst:
        yield f"  {worst}"
    for output in record.outputs:
        if output.pattern is not None:
            yield f"  pattern of {output.name}: {output.pattern.kind} ({output.pattern.words})"
    yield from (f"  {finding.line}" for finding in record.findings[:MOST_LINES])
    if record.reproduced is not None:
        yield (
            f"  run again in a new process: {'the same' if record.reproduced else 'a different'} "
            "result"
        )


def _tail(what: str, log: str) -> Iterator[str]:
    lines = log.splitlines()
    if lines:
        more = f", its last {MOST_LINES} lines" if len(lines) > MOST_LINES else ""
        yield f"  log of the {what}{more}:"
        yield from (f"    {line[:MOST_COLUMNS]}" for line in lines[-MOST_LINES:])
