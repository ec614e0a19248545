"""Which failures of a case hang on what its spec marks as a guess, and what becomes of its verdict.

A failure that a wrong guess would explain says nothing of the kernel until the guess is confirmed: the
mark is taken away. Every other failure is what it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath

import msgspec

from tokitai_cli.core.dtypes import DTYPES, FORMATS
from tokitai_cli.core.errors import DYNAMIC_SHARED
from tokitai_cli.core.model.case import Case
from tokitai_cli.core.model.guesses import BESIDE_DEFAULT, GUESS, Guess
from tokitai_cli.core.model.judged import GuessRecord
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.judge.failures import Failure, Kind
from tokitai_cli.judge.judgement import Judgement

_ARRAYS = {"inputs", "outputs", "inout", "workspaces", "symbols"}
# What a wrong launch, a wrong struct or other flags of the build explain: all but a wrong oracle.
_ALL: frozenset[Kind] = frozenset(
    {"unwritten", "outside", "changed", "unset", "values", "repeats", "crash", "time", "other"}
)
# What a wrong place that is read from memory explains, beside wrong values.
_PLACES: frozenset[Kind] = frozenset({"outside", "crash", "time"})
_VALUES: frozenset[Kind] = frozenset({"values", "repeats"})
# A kernel that leaves an array, reads what nobody wrote or writes what is only to be read may for that
# reason do the others.
_CAUSES: frozenset[Kind] = frozenset({"outside", "unset", "changed"})
_FOLLOWS: frozenset[Kind] = frozenset({"unwritten", "changed", "values", "repeats"})
_BUILT = {"source", "include", "flags", "defines", "structs", "lists", "textures"}
_ORACLE = {"oracle", "replay", "reduction", "flush_to_zero", "properties", "non_claims"}
_ORDERED = {"sorted", "falling", "sorted-ties"}  # draws that a search relies on
_ROLE = "that the kernel"  # words of a mark that says what a kernel does with an array


#: How a guess is confirmed, at the end of a reason.
CONFIRM = f" (if it is right, remove its mark `{GUESS}`)"


class Hanging(msgspec.Struct, frozen=True):
    """Guesses that all failures of a case hang on, and its reason; without guesses, that of the
    first failure that hangs on none.
    """

    guesses: list[GuessRecord]
    reason: str


class GuessedSize(msgspec.Struct, frozen=True):
    """A size of a case whose value is a guess."""

    name: str
    value: int
    guess: Guess

    @property
    def record(self) -> GuessRecord:
        """What the evidence says of it."""
        about = f"the size {self.name} = {self.value}"
        return GuessRecord(place=self.guess.place, about=about, words=self.guess.words)


class _Bearing(msgspec.Struct, frozen=True, order=True):
    """A guess that a failure hangs on: those of its own array first."""

    rank: int
    line: int
    about: str
    guess: Guess = msgspec.field(default=Guess("", 0, (), ""))

    @property
    def record(self) -> GuessRecord:
        """What the evidence says of it."""
        return GuessRecord(place=self.guess.place, about=self.about, words=self.guess.words)


def in_light_of_guesses(
    case: Case, judgement: Judgement, traces: Sequence[Failure] = ()
) -> Judgement:
    """Inconclusive in place of refuted, where every failure hangs on what the spec marks as a guess.

    traces: see `hanging`.
    """
    if judgement.verdict is not Verdict.REFUTED or not case.loaded.guesses:
        return judgement
    found = hanging(case, judgement.failures, traces)
    verdict = Verdict.INCONCLUSIVE if found.guesses else Verdict.REFUTED
    return msgspec.structs.replace(
        judgement, verdict=verdict, reason=found.reason, guesses=found.guesses
    )


def hanging(case: Case, failures: Sequence[Failure], traces: Sequence[Failure] = ()) -> Hanging:
    """Whether all `failures` hang on guesses; at least one failure is there.

    traces: what further runs found that explains them (`outside`, `unset`), and is no failure by itself.
    """
    found = {one: sorted(_bearing(case, one)) for one in (*failures, *traces)}
    cause = next((told for one, told in found.items() if one.kind in _CAUSES and told), [])
    ordered = sorted(failures, key=lambda one: one.step)
    borne: dict[str, GuessRecord] = {}
    first = ""
    for failure in ordered:
        told = found[failure] or (cause if failure.kind in _FOLLOWS else [])
        if not told:
            return Hanging([], failure.text)
        first = first or f"{told[0].about} in {told[0].guess.place} is a guess: {failure.text}"
        borne |= {one.guess.place: one.record for one in told}
    return Hanging([*borne.values()], first + CONFIRM)


def _bearing(case: Case, failure: Failure) -> Iterator[_Bearing]:
    """The guesses that a failure hangs on."""
    for guess in case.loaded.guesses:
        said = _of_guess(case, guess, failure)
        if said is not None:
            yield _Bearing(said[0], guess.line, said[1], guess)


def _of_guess(case: Case, guess: Guess, failure: Failure) -> tuple[int, str] | None:
    """Rank and words of what is guessed, where the failure hangs on it."""
    match guess.key:
        case ():
            own = PurePath(case.variant.oracle.rpartition(":")[0]).name == guess.file
            return (4, "the formula") if own and failure.kind in _VALUES else None
        case ("variants", case.variant_name, section, *within) if section in _ARRAYS:
            return _of_array(guess, failure, *within[:1])
        case ("variants", case.variant_name, "scalars", *within):
            return _of_scalar(case, failure, within)
        case ("variants", case.variant_name, "launches", *within):
            return _of_launch(case, failure, within)
        case ("variants", case.variant_name, *within):
            return _of_variant(case, failure, within)
        case ("profiles", case.profile, *within):
            return _of_draw(case, failure, within[1:2] if within[:1] == ["inputs"] else [])
    return None


def _of_array(guess: Guess, failure: Failure, name: str | int = "") -> tuple[int, str] | None:
    array = failure.array if failure.array in _names(name, failure.array) else ""
    extent = "shape" in guess.words or _ROLE not in guess.words
    role = _ROLE in guess.words or "shape" not in guess.words
    if extent and failure.kind == "outside" and (array or not failure.array):
        return 0, f"the shape of {array or name or 'an array'}"
    if extent and failure.kind == "unwritten" and array:
        return 0, f"the shape of {array}"
    if role and failure.kind in {"changed", "unset"} and array:
        does = "only reads" if failure.kind == "changed" else "only writes"
        return 0, f"{_ROLE} {does} {array}"
    if failure.kind in _VALUES and "dtype" in guess.words:
        return 1, f"the dtype of {name}"
    return None


def _names(name: str | int, otherwise: str) -> set[str]:
    """The array that a mark is for; a mark of a whole section is for any."""
    return {str(name)} if name else {otherwise} - {""}


def _of_scalar(case: Case, failure: Failure, within: Sequence[str | int]) -> tuple[int, str] | None:
    """A whole number may be a place, a count or a mode; a real one is as good as another."""
    names = [str(one) for one in within[:1]] or [*case.variant.scalars]
    whole = [name for name in names if case.variant.scalars[name].dtype not in FORMATS]
    if whole and failure.kind in _PLACES | _VALUES | {"unwritten", "other"}:
        return 3, f"the value of {whole[0]}"
    return None


def _of_launch(case: Case, failure: Failure, within: Sequence[str | int]) -> tuple[int, str] | None:
    number, key = ([*within, "", ""])[:2]
    launches = case.variant.launches
    launch = launches[number] if isinstance(number, int) else launches[0]
    if key == "shared":
        if failure.array != DYNAMIC_SHARED and "shared memory" not in failure.text:
            return None
        return 0, f"the shared memory of {launch.kernel}"
    if failure.kind not in _ALL:
        return None
    what = {"kernel": "the instance", "": "the launch"}.get(str(key), f"the {key}")
    return 2, f"{what} of {launch.kernel}" if key != "kernel" else f"the instance {launch.kernel}"


def _of_variant(
    case: Case, failure: Failure, within: Sequence[str | int]
) -> tuple[int, str] | None:
    """What of the rest of a variant a failure hangs on."""
    key = within[0] if within else ""
    named = "".join(f" {one}" for one in within[1:2] if isinstance(one, str))
    if key in _BUILT and failure.kind in _ALL:
        return 2, f"`{key}`{named}"
    if key in _ORACLE and failure.kind in _VALUES:
        return 4, f"`{key}`"
    if key == "deterministic" and failure.kind == "repeats":
        return 4, "`deterministic`"
    if key == "checks" and failure.kind in _VALUES:
        checks = case.variant.checks
        stated = [checks[one] for one in within[1:2] if isinstance(one, int)] or checks
        for one in stated:
            if one.metric == failure.metric and one.output in {"", failure.array}:
                return 4, f"the check {one.metric}"
    return None


def _of_draw(case: Case, failure: Failure, names: Sequence[str | int]) -> tuple[int, str] | None:
    """Whole numbers may be places or lengths, as others may that are in order; others become some."""
    variant, own = case.variant, case.loaded.spec.profiles[case.profile].inputs
    drawn = {**variant.inputs, **variant.inout, **variant.symbols}
    profile = case.loaded.spec.profiles[case.profile]
    chosen = [str(one) for one in names] or [*profile.inputs] or [*drawn]
    for name in (one for one in chosen if one in drawn):
        whole = drawn[name].dtype in DTYPES and drawn[name].dtype not in FORMATS
        ordered = getattr(own.get(name), "kind", "") in _ORDERED
        also = _VALUES | {"unwritten", "other"} if whole or ordered else frozenset()
        if failure.kind in _PLACES | also:
            return 3, f"the draw of {name}"
    return None


def guessed_sizes(case: Case) -> list[GuessedSize]:
    """Sizes of a case that the spec marks as guesses: by the line of the size, else of its suite."""
    spec, found = case.loaded.spec, dict[str, Guess]()
    defaults = {name: one.default for name, one in spec.params.items()}
    for guess in case.loaded.guesses:
        match guess.key:
            case ("params", *within):
                said = [str(one) for one in within[:1]] or [*defaults]
                certain = defaults if BESIDE_DEFAULT in guess.words else {}
                names = [one for one in said if certain.get(one) != case.shape[one]]
            case ("suites", *within):
                suites = [str(one) for one in within[:1]] or [*spec.suites]
                rows = [defaults | one.shape for suite in suites
                        for one in spec.suites[suite][_rows(within[1:2])]]  # fmt: skip
                names = [*defaults] if dict(case.shape) in rows else []
            case _:
                names = []
        found |= {one: guess for one in names if one not in found}
    return [GuessedSize(name, case.shape[name], guess) for name, guess in found.items()]


def _rows(within: Sequence[str | int]) -> slice:
    """The shape of a suite that a mark is for; all, where it is for the suite."""
    at = next((one for one in within if isinstance(one, int)), None)
    return slice(None) if at is None else slice(at, at + 1)
