"""How much host memory a case needs."""

from __future__ import annotations

from tokitai_cli.core.model.case import BufferPlan, Case, Role

_PAGE = 4096
_FLOAT64_BYTES = 8
# float64 arrays per output element that the oracle and the comparison hold at once: reference,
# bound, probabilistic bound, and one temporary of the same size.
_ORACLE_ARRAYS = 4


def memory_bytes(case: Case, repetitions: int) -> int:
    """Bytes of host memory that the case needs at its peak, as an estimate from above.

    With P(b) the payload of buffer b in whole pages and its guard pages around it:

    - memory file: P of inputs, in-outs and symbols (content), and `repetitions` times P of outputs,
      in-outs and workspaces (result regions);
    - the tool's own copy of the content, which the oracle reads;
    - the oracle: each content array in float64, and four float64 arrays per output or in-out.

    A GPU's memory is counted by its driver, not here; there it is the content plus one result region.
    """
    content = case.buffers_of(Role.INPUT, Role.INOUT, Role.SYMBOL, Role.LIST, Role.STRUCT)
    results = case.buffers_of(Role.OUTPUT, Role.INOUT, Role.WORKSPACE)
    judged = case.buffers_of(Role.OUTPUT, Role.INOUT)
    file_bytes = sum(map(_region, content)) + repetitions * sum(map(_region, results))
    copies = sum(buffer.nbytes for buffer in content)
    oracle = sum(buffer.elements for buffer in content)
    oracle += _ORACLE_ARRAYS * sum(buffer.elements for buffer in judged)
    return file_bytes + copies + _FLOAT64_BYTES * oracle


def array_bytes(case: Case, repetitions: int) -> int:
    """Bytes of the arrays that a kernel reads, and of those that it writes in each repetition."""
    content = case.buffers_of(Role.INPUT, Role.INOUT, Role.SYMBOL, Role.LIST, Role.STRUCT)
    results = case.buffers_of(Role.OUTPUT, Role.INOUT, Role.WORKSPACE)
    return sum(one.nbytes for one in content) + repetitions * sum(one.nbytes for one in results)


def _region(buffer: BufferPlan) -> int:
    """Payload in whole pages, one guard page in front and one behind."""
    return (-(-buffer.nbytes // _PAGE) + 2) * _PAGE
