"""Profiles of a draft: values at which kernels of its kind often fail."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

from tokitai_cli.core.model.draws import CANDIDATES
from tokitai_cli.cpp.source.macros import closing
from tokitai_cli.drafts.array_draws import draw_of
from tokitai_cli.drafts.known_facts import Known
from tokitai_cli.drafts.model import Flow, Guess, ProfileDraft

_SMALL = {"kind": "uniform", "lo": 0, "hi": 1e-12}  # of what is not below 0, beside small values
_VARIANCE = re.compile(
    r"\b(?:var\w*|r?std\w*|inv_?std\w*|sigma2?)\b|-\s*(\w+)\s*\*\s*\1\b"
    r"|\(([^()]+-[^()]+)\)\s*\*\s*\(\2\)", re.I
)  # fmt: skip
_MEAN = re.compile(r"\b\w*(?:mean|mu|avg|average)\b", re.I)
_PEAK = re.compile(r"\b(?:__)?(?:fabsf?|abs|habs|sqrtf?|norm\w*|rsqrtf?)\s*\(")
_QUOTIENT = re.compile(r"(?:/|\b__fdividef\s*\([^;]*,|\b__frcp_rn\s*\()\s*\(?\s*([A-Za-z_]\w*)")
_EXP = re.compile(r"\b(?:__)?h?exp(?:2|10)?f?\s*(?=\()")
_PLACE = r"\w+(?:\s*\[[^\[\];]*\])?"
_MAXIMUM = re.compile(rf"({_PLACE})\s*=\s*(?:std::)?(?:f?maxf?|__hmax)\s*(\([^;]*\))\s*;")
_COMPARED = re.compile(rf"({_PLACE})\s*([<>])=?\s*({_PLACE})")


def profiles_of(known: Known) -> dict[str, ProfileDraft]:
    """All profiles of a draft; for a trial, the first alone."""
    drawn = {one.name: told for one in known.read if (told := draw_of(known, one))}
    found = {"normal": ProfileDraft("normal", "N(0,1)", inputs=Guess(drawn, "ranges"))}
    for name, why in () if known.origin.room else telling(known):
        draw, words = CANDIDATES[name]
        told = msgspec.to_builtins(draw)
        inputs: Mapping[str, Flow] = drawn
        if name == "tiny":
            inputs = {key: _SMALL if one == {"kind": "uniform"} else one
                      for key, one in drawn.items()}  # fmt: skip
        found[name] = ProfileDraft(told, words, why, Guess(inputs, "ranges"))
    return found


def telling(known: Known) -> Iterator[tuple[str, str]]:
    """Profiles on which a kernel of this kind shows what others hide, and why."""
    largest, loaded = _largest(known)
    if _EXP.search(known.reached) and (largest or _sums_exponentials(known.reached)):
        yield "large", "that it sums exponentials, which overflow unless the maximum is subtracted"
    elif (
        _EXP.search(known.reached)
        and "max" not in known.reached
        and not any(one.dtypes[:1] == ("float16",) for one in known.written)
    ):
        yield "steep", "that it uses exponentials, which become very large or zero at large values"
    if _VARIANCE.search(known.reached) and _MEAN.search(known.reached):
        yield "offset", "that it computes a variance, which cancels if the mean is far from 0"
    if _divides_by_its_own(known, reduced=largest):
        yield "zero-rows", "that it divides by a computed value, which may be 0"
    if loaded:
        yield "negative", "that it takes a maximum of values, which may all be negative"
    if any(re.search(r"eps(?:ilon)?$", one.name, re.I) for one in known.numbers):
        yield "tiny", "that a constant added in a root or divisor matters for small values"
    if finds_places(known):
        yield "ties", "that it returns the position of one of several equal values"


def _divides_by_its_own(known: Known, *, reduced: bool) -> bool:
    """Whether it divides by a largest magnitude or a length of what it reads.

    reduced: whether it takes a maximum.
    """
    body = known.text.body
    divisors = {one[1] for one in _QUOTIENT.finditer(body)} - {one.name for one in known.parameters}
    made = {
        name: " ".join(re.findall(rf"\b{name}\s*(?:\[[^\]]*\]\s*)?=(?!=)([^;]*);", body))
        for name in divisors
    }
    measured = _PEAK.search(body) and reduced
    return any(
        told and not _EXP.search(told) and (measured or re.search(r"\bsqrt|\bnorm", told))
        and not re.search(r"\beps|\bmax\s*\(|fmaxf?\s*\(", told)
        for told in made.values()
    )  # fmt: skip


def finds_places(known: Known) -> bool:
    """Whether it compares elements and writes whole numbers: the places of some of them."""
    written = any(one.dtypes and "int" in one.dtypes[0] for one in known.written)
    return written and any(_replaced(known.reached))


def _sums_exponentials(text: str) -> bool:
    names = ["exp"]
    for one in re.finditer(rf"({_PLACE})\s*=(?!=)\s*", text):
        call = _EXP.match(text, one.end())
        if call and re.match(r"\s*[;,]", text[closing(text, call.end()) + 1 :]):
            names.append(re.match(r"\w+", one[1])[0])  # type: ignore[index]
    added = r"\+=[^;]*|\b(\w+)\s*=(?!=)[^;]*\b\1\b[^;]*\+[^;]*"
    return any(re.search(rf"(?:{added})\b\w*{one}\w*\b", text) for one in names)


def _largest(known: Known) -> tuple[bool, bool]:
    """Whether the kernel takes a maximum, and whether of an array's own values."""
    body = known.text.body
    found = [
        one[2] for one in _MAXIMUM.finditer(body)
        if re.search(rf"(?<![\w.]){re.escape(one[1])}(?!\w)", one[2])
    ]  # fmt: skip
    found += [value for value, sign in _replaced(body) if sign == ">"]
    called = [value for value, sign in _replaced(known.reached) if sign == ">"]
    element = rf"(?<![\w.])(?:{'|'.join(map(re.escape, known.text.arrays))})\s*\["
    handed = re.search(rf"\b\w+\s*\([^;]*{element}", body)
    loaded = any(_is_loaded(body, element, one) for one in found)
    return bool(found or called), loaded or bool(called and not found and handed)


def _replaced(text: str) -> Iterator[tuple[str, str]]:
    """Values that are compared with the best until then and take its place, and how compared."""
    for one in _COMPARED.finditer(text):
        pairs = ((one[1], one[3], one[2]), (one[3], one[1], "<>"[one[2] == "<"]))
        behind = text[one.end() : one.end() + 200]
        for value, best, sign in pairs:
            if re.search(rf"(?<![\w.]){re.escape(best)}\s*=\s*{re.escape(value)}\s*;", behind):
                yield value, sign


def _is_loaded(body: str, element: str, text: str) -> bool:
    made = [
        told
        for name in re.findall(r"[A-Za-z_]\w*", text)
        for told in re.findall(rf"\b{name}\s*=(?!=)([^;]*);", body)
        if not re.search(rf"\b{name}\s*\+=", body)
    ]
    return any(re.search(element, one) for one in (text, *made))
