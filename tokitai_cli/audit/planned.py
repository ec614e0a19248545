"""Whether evidence holds every case that the spec and the command that repeats the run select."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tokitai_cli.core.errors import TokitaiError
from tokitai_cli.core.model.audit_answer import Remark
from tokitai_cli.core.model.case import Case, LoadedSpec
from tokitai_cli.core.model.device import WARP_SIZES
from tokitai_cli.core.model.evidence import CaseRecord, Evidence
from tokitai_cli.core.model.options import Kind, flag, options_of
from tokitai_cli.core.model.wording import plural, shape_text
from tokitai_cli.evidence.queries import FINE
from tokitai_cli.run.case_record import launch_records
from tokitai_cli.spec import plan

# A plan is made anew where it is no burden: the text is a stranger's.
_MOST_CASES = 20_000
_MOST_LINE = 1 << 16  # Linux takes words of twice that at most
_ONE_SPEC = {"verify", "sanitize", "compare"}


def words_of(line: str) -> list[str]:
    """Words of a command line; none where it is no line of a shell, or longer than any."""
    try:
        return shlex.split(line) if len(line) < _MOST_LINE else []
    except ValueError:
        return []


def remarks(evidence: Evidence, loaded: LoadedSpec) -> Iterator[Remark]:
    """Cases that were selected and are not in it, or that nothing selected."""
    selection = _selection(words_of(evidence.rerun), loaded)
    if selection is None:
        yield Remark("whether it contains every selected case cannot be checked")
        return
    try:
        whole = plan.plan(loaded, selection)
    except (TokitaiError, ValueError, ArithmeticError) as error:
        yield Remark(f"its cases cannot be derived from the spec: {error}", fault=True)
        return
    planned = {case.id: case for case in whole.cases}
    for one in evidence.left_out:
        if one not in whole.left_out:
            text = f"it leaves out {one.variant} at {shape_text(one.shape)}, which the spec takes"
            yield Remark(text, fault=True)
    for device in dict.fromkeys(case.device for case in evidence.cases):
        there = {case.id for case in evidence.cases if case.device == device}
        for what, ids in (
            ("was selected, but is missing", planned.keys() - there),
            ("was not selected", there - planned.keys()),
        ):
            if ids:
                more = f" and {plural(len(ids) - 1, 'more case')}" if len(ids) > 1 else ""
                yield Remark(f"{min(ids)}{more} on {device} {what}", fault=True)
    for record in evidence.cases:
        for what in _unlike(record, planned[record.id]) if record.id in planned else ():
            yield Remark(f"{record.key}: {what} different from those of the spec", fault=True)


def watched(evidence: Evidence, loaded: LoadedSpec) -> Iterator[Remark]:
    """Cases that were watched beside the others, at shapes of their own, and launch otherwise."""
    for record in evidence.watched:
        place = (record.variant, record.shape, record.profile, record.seed)
        try:
            launched = _launched(record, plan.case_of(loaded, *place, empty=True))
        except (TokitaiError, LookupError, ValueError, ArithmeticError):
            yield Remark(f"{record.key}, watched: the spec has no such case", fault=True)
            continue
        if not launched and (record.launches or record.verdict in FINE):
            text = "its launches are different from those of the spec"
            yield Remark(f"{record.key}, watched: {text}", fault=True)


def _unlike(record: CaseRecord, case: Case) -> Iterator[str]:
    """What of a case has other sizes than the spec's text gives it, on warps of no size."""
    if not _launched(record, case):
        yield "its launches are"
    sizes = {one.name: (one.dtype, list(one.shape)) for one in case.buffers}
    arrays = [(one.name, one.dtype, one.shape) for one in record.inputs]
    for name, dtype, shape in arrays + [(one.name, one.dtype, one.shape) for one in record.outputs]:
        if sizes.get(name) != (dtype, shape):
            yield f"dtype and shape of {name} are"


def _launched(record: CaseRecord, case: Case) -> bool:
    """Whether the launches are those of the spec's text, on warps of some size."""
    by_lanes = (plan.at_warp_size(case, lanes).launches for lanes in WARP_SIZES)
    try:
        return any(record.launches == launch_records(plans) for plans in by_lanes)
    except TokitaiError:  # the spec takes no warps of that size
        return False


def _selection(words: Sequence[str], loaded: LoadedSpec) -> plan.Selection | None:
    """What the words of a command select; None where they are not those of one spec's run."""
    if len(words) < 3 or words[1] not in _ONE_SPEC:
        return None
    known = {word: one for one in options_of(words[1]).values() for word in (one.flag, one.short)}
    params = {flag(name): name for name in loaded.spec.params}
    given: dict[str, list[str]] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    rest = iter(words[3:])
    try:
        for word in rest:
            if word in params:
                shapes[params[word]] = tuple(map(int, next(rest).split(",")))
            elif known[word].kind is not Kind.FLAG:
                given.setdefault(known[word].name, []).extend(next(rest).split(","))
        return _made(given, shapes, loaded)
    except (LookupError, ValueError, StopIteration):
        return None


def _made(
    given: Mapping[str, list[str]], shapes: Mapping[str, tuple[int, ...]], loaded: LoadedSpec
) -> plan.Selection | None:
    more: dict[str, Any] = {"seeds": tuple(map(int, given["seed"]))} if "seed" in given else {}
    found = plan.Selection(
        shapes=shapes,
        variants=tuple(given.get("variant", ())),
        profiles=tuple(given.get("profile", ())),
        suite=given["suite"][0] if "suite" in given else None,
        **more,
    )
    spec = loaded.spec
    points = math.prod(map(len, shapes.values()))
    if found.suite is not None:
        points = len(spec.suites[found.suite])
    cases = points * (len(found.variants) or len(spec.variants))
    cases *= (len(found.profiles) or len(spec.profiles)) * len(found.seeds)
    return found if cases <= _MOST_CASES else None
