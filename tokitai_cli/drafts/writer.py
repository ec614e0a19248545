"""All that a draft says of one kernel, put together from what is known of it."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping

import msgspec

from tokitai_cli.core.model.spec import MOST_OF_NAME
from tokitai_cli.cpp.body.polynomial import Polynomial, Quotient
from tokitai_cli.cpp.launch_facts import limits, multiples
from tokitai_cli.cpp.size_words import polynomial_of
from tokitai_cli.cpp.source.device_memory import declares_dynamic
from tokitai_cli.cpp.source.signatures import Parameter
from tokitai_cli.drafts.array_drafts import array_draft
from tokitai_cli.drafts.array_draws import draw_for_ending
from tokitai_cli.drafts.formula_text import added_to, formula_text, function_of, kept_behind_rows
from tokitai_cli.drafts.guessed_sizes import guess_sizes
from tokitai_cli.drafts.host_conditions import bounds_of
from tokitai_cli.drafts.host_sizes import add_rows, read_comments
from tokitai_cli.drafts.host_words import bytes_of
from tokitai_cli.drafts.known_facts import DraftSubject, Known
from tokitai_cli.drafts.launching import Launching
from tokitai_cli.drafts.likely_values import value_of
from tokitai_cli.drafts.model import (
    Flow,
    Guess,
    LaunchDraft,
    ParamDraft,
    ScalarDraft,
    SpecDraft,
    supposed,
)
from tokitai_cli.drafts.profiles import profiles_of
from tokitai_cli.drafts.reaching import Reaching, count
from tokitai_cli.drafts.sizing import Sizing
from tokitai_cli.drafts.suites import guessed, quick, requirements, tested

_SHARED, _MOST_SHARED = 16384, 32768  # bytes beside what is known, and where nothing is
ALL_SHARED = 65536  # bytes of shared memory that a block can have


def draft_of(subject: DraftSubject) -> tuple[SpecDraft, str]:
    """The draft of a kernel, and the text of its formula."""
    known = Known(subject)
    reaching = Reaching(known)
    launching = Launching(known, reaching)
    _complete(known, launching)
    guess_sizes(known, launching)
    sizing = Sizing(known, launching, reaching)
    return _spec(known, launching, sizing), formula_text(known)


def _complete(known: Known, launching: Launching) -> None:
    """Read what comments, launch and text say beside the arguments; then limits of sizes."""
    room, layouts = known.origin.room, known.layouts
    if known.subject.own_shapes:
        if not room:
            read_comments(known)
        add_rows(known, launching)
    if not room:
        counted = zip("xyz", layouts.grid(["1"]), strict=False)
        layouts.words.put_grid({axis: one for axis, one in counted if "ceil_div" not in one})
    _read_grid(known, launching)
    known.padded = {} if room else kept_behind_rows(known)
    known.roles |= dict.fromkeys(known.padded, "inout")
    known.limits = {**known.leaves.limits, **limits(layouts.facts, layouts.sizes)}
    known.multiples = multiples(known.divided)
    if known.subject.own_shapes:
        _limit(known, launching)


def _limit(known: Known, launching: Launching) -> None:
    """Limit sizes by whole blocks, and by the conditions under which the host launches."""
    of_host = bounds_of(known)
    for name, most in of_host.limits.items():
        known.limits[name] = min(most, known.limits.get(name, most))
    certain = multiples([one for one in known.divided if one not in known.untailed])
    filled = launching.filled()
    known.multiples |= {name: n for name, n in filled.items() if n <= known.limits.get(name, n)}
    for name, step in of_host.multiples.items():
        certain[name] = math.lcm(step, certain.get(name, 1))
        whole = math.lcm(step, known.multiples.get(name, 1))
        if whole <= known.limits.get(name, whole):
            known.multiples[name] = whole
    own = {one.name for one in known.parameters}
    if not known.origin.room:
        known.supposed = {
            name: step
            for name, step in known.multiples.items()
            if name in own and certain.get(name, 1) % step and known.at_host.get(name, 1) % step
        }


def _read_grid(known: Known, launching: Launching) -> None:
    """Read what the host's grid says: extents that blocks count, and sizes that fill whole blocks."""
    grid = launching.grid
    if grid.why or not known.subject.own_shapes:
        return
    own = {one.name for one in known.sizes}
    for one in grid.value:
        blocks = polynomial_of(one)
        for atom in blocks.atoms() if blocks is not None else ():
            if isinstance(atom, Quotient) and blocks == Polynomial({(atom,): 1}):
                many, few = str(atom.dividend), str(atom.divisor)
                known.divided += [(many, few)] * (many in own and (few in own or few.isdigit()))
    if not known.origin.room:
        known.layouts.words.put_grid(dict(zip("xyz", grid.value, strict=False)))


def _spec(known: Known, launching: Launching, sizing: Sizing) -> SpecDraft:
    name, origin = known.kernel.name, known.origin
    shapes = [*quick(known, launching, sizing)]
    asked_of = [one.name for one in known.read if draw_for_ending(known, one)]
    return SpecDraft(
        op=_op(name),
        title=Guess(_title(name), "from its name"),
        summary=f"{name} of {known.kernel.file.name}; formula.py says what it computes.",
        params=_params(known, launching, sizing),
        source=origin.source,
        oracle=f"formula.py:{function_of(known)}",
        requires=Guess([] if origin.room else requirements(known), "by indices and divisions"),
        include=origin.include,
        flags=Guess(origin.flags, supposed(origin.supposed)),
        supposed=origin.supposed,
        arrays={
            one.name: array_draft(known, sizing, one, [each.sizes for each in shapes])
            for one in known.parameters
            if one.name in known.roles
        },
        scalars={one.name: _scalar(known, one) for one in known.numbers},
        structs={
            name: msgspec.structs.replace(one, value=_without(one.value, known.nulls))
            for name, one in known.leaves.structs.items()
        },
        lists=known.leaves.lists,
        launch=_launch(known, launching, sizing),
        unordered=_unordered(known),
        checks=_checks(known),
        non_claims=[_unbound(*one) for one in known.leaves.unbound],
        profiles=Guess(profiles_of(known)),
        suites=Guess({"quick": [*shapes, *guessed(known, sizing, shapes), *tested(known, shapes)]}),
        drawn_to_end=frozenset(asked_of),
    )


def _params(known: Known, launching: Launching, sizing: Sizing) -> dict[str, ParamDraft]:
    found = {}
    for one in known.sizes:
        step, most = known.multiples.get(one.name), known.limits.get(one.name)
        step = None if one.name in known.supposed else step
        why, value = known.guessed.get(one.name, ""), sizing.values[one.name]
        if known.host_values.get(one.name, value) != value:  # it is too large for a first run
            why = why.rpartition(": ")[2]
        found[one.name] = ParamDraft(value, one.text, why, multiple_of=step, max=most)
    whole = launching.whole or None
    number = sizing.values.get("elements", 0)
    found = found or {
        "elements": ParamDraft(number, "elements of each array", "" if whole else "a size", whole)
    }
    for one in (one for one in known.numbers if one.name in known.tested):
        varied = known.varied(one)
        value = varied.at(float(value_of(known, one).value))
        found[varied.size] = ParamDraft(value, f"{one.name} is {varied.value}", "", min=0)
    return found


def _scalar(known: Known, one: Parameter) -> ScalarDraft:
    """A number by value; one that the kernel tests follows from a size, which suites vary."""
    told = value_of(known, one)
    if one.name not in known.tested:
        return told
    return ScalarDraft(told.dtype, known.varied(one).value, told.why)


def _launch(known: Known, launching: Launching, sizing: Sizing) -> LaunchDraft:
    named = known.subject.guessed
    stands = f"what {', '.join(named)} stand{'s' * (len(named) == 1)} for" if named else ""
    args: list[Flow] = [
        None if one.name in known.nulls else known.passed.get(one.name, one.name)
        for one in known.leaves.args
    ]
    shared = _shared(known, launching) if declares_dynamic(known.subject.reached) else None
    return LaunchDraft(
        kernel=Guess(known.subject.instance, stands),
        grid=Guess(sizing.started(), launching.grid.why),
        block=Guess(launching.block.value, launching.block.why),
        args=args,
        shared=shared,
        shared_room=_shared_room(known, sizing, shared.value) if shared else 0,
    )


def _shared(known: Known, launching: Launching) -> Guess[str]:
    """Bytes of dynamic shared memory, as the host says them."""
    told = launching.in_sizes(known.launch.shared) if known.launch is not None else ""
    if told in ("", "0"):
        return Guess(str(_MOST_SHARED), "bytes of shared memory")
    if launching.block.why:  # bytes for threads that the host does not start
        return Guess(f"{told} + {_SHARED}", "bytes of shared memory")
    return Guess(told)


def _shared_room(known: Known, sizing: Sizing, told: str) -> int:
    """Bytes beside those that are told, which the indices reach at the guessed sizes."""
    local = known.subject.reading.facts.local
    dynamic = (name for name, one in local.items() if one.shared and one.extents is None)
    name = next(dynamic, None)
    size = bytes_of(local[name].type, known.constants) if name is not None else ""
    if name is None or not size.isdigit():
        return 0
    held = count(told, sizing.values)
    more = (sizing.reach.bounds.elements(name, least=True) or 0) * int(size) - held
    return more if 0 < more <= ALL_SHARED - held else 0


def _without(value: Flow, nulls: Collection[str]) -> Flow:
    """Fields of a struct, null where the host passes no address."""
    if isinstance(value, Mapping):
        return {key: _without(one, nulls) for key, one in value.items()}
    if isinstance(value, list):
        return [_without(one, nulls) for one in value]
    return None if value in nulls else value


def _checks(known: Known) -> list[Flow]:
    """A bound for floats; whole numbers are equal."""
    whole = [one for one in known.written if one.dtypes and "float" not in one.dtypes[0]]
    if not whole:
        return [{"metric": "bound", "why": "the error that a float32 kernel may have"}]
    return [
        {"metric": "exact" if one in whole else "bound", "output": one.name}
        for one in known.written
    ]


def _unordered(known: Known) -> str:
    added = ", ".join(added_to(known))
    return f"the order in which {added} is added to is not fixed" if added else ""


def _unbound(name: str, reads: bool) -> Guess[str]:
    """What is said of a variable that the draft leaves out."""
    said = "read as it starts" if reads else "written, not judged"
    why = f"that this is {'meant' if reads else f'no output (symbol: {name})'}"
    return Guess(f"variable {name}: {said}", why)


def _title(name: str) -> str:
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().split("_")
    kept = [one for one in words if one not in {"", "kernel", "cuda", "hip", "gpu"}]
    return " ".join(kept) or name


def _op(name: str) -> str:
    """The kernel's name as an op's: lower-case words, as many as one may have."""
    words = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    words = words if words[:1].isalpha() else f"kernel-{words}"
    return words[:MOST_OF_NAME].strip("-")
