"""Profiles of a draft: what each array is drawn as, and values at which such kernels often fail."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from tokitai_cli.core.model.draws import CANDIDATES
from tokitai_cli.cpp.indices.values import ValueConstraint, Values
from tokitai_cli.cpp.source.macros import closing
from tokitai_cli.cpp.source.signatures import Parameter
from tokitai_cli.drafts.extents import RoomWriter
from tokitai_cli.drafts.launch_writer import quoted
from tokitai_cli.spec.reader.gaps import GUESS

_BYTES = {"int8": (-127, 127), "uint8": (0, 255)}
_OF_PLACES = 32  # bits of a whole number that may be a place in an array
_SMALL = "{kind: uniform, lo: 0, hi: 1e-12}"  # of what is not below 0, beside small values
# Second moments, variances and what is made of them.
_NOT_BELOW_0 = re.compile(r"_sq$|moment2|second|^var|variance|std$|norms?$|^rand", re.I)
_EXP = re.compile(r"\b(?:__)?h?exp(?:2|10)?f?\s*(?=\()")
_ROOT, _MADE = (
    re.compile(r"\b(?:__f)?r?sqrt(?:_rn)?f?\s*(?=\()"),
    3,
)  # steps from an element to a root
_PLACE = r"\w+(?:\s*\[[^\[\];]*\])?"
_MAXIMUM = re.compile(rf"({_PLACE})\s*=\s*(?:std::)?(?:f?maxf?|__hmax)\s*(\([^;]*\))\s*;")
_COMPARED = re.compile(rf"({_PLACE})\s*([<>])=?\s*({_PLACE})")


class ProfileWriter(RoomWriter):
    """The part of a draft that says how arrays are drawn."""

    values: Values
    _plain: str

    @property
    def _last(self) -> str:
        return self.sizes[-1].name if self.sizes else "elements"

    def _value(self, one: Parameter) -> tuple[str, str]:
        raise NotImplementedError

    def _profiles(self) -> list[str]:
        read = [p for p in self.parameters if self.roles.get(p.name, "outputs") != "outputs"]
        drawn = [f"{one.name}: {told}" for one in read if (told := self._draw(one))]
        also = "; with other whole numbers it did not come to its end" * bool(
            self.origin.seen.whole
        )
        inputs = [f"    inputs: {{{', '.join(drawn)}}}  # guess: ranges{also}"] * bool(drawn)
        small = [one.replace("{kind: uniform}", _SMALL) for one in inputs]
        lines = ["profiles:", "  normal:", "    draw: normal", '    help: "N(0,1)"', *inputs]
        for name, why in () if self.origin.room else self._telling():
            draw, words = CANDIDATES[name]
            numbers = [
                f"{key}: {value:.12g}" if isinstance(value, int | float) else f"{key}: {value}"
                for key, value in msgspec.to_builtins(draw).items()
            ]
            lines += [f"  {name}:  {GUESS} {why}", f"    draw: {{{', '.join(numbers)}}}"]
            lines += [f'    help: "{words}"', *(small if name == "tiny" else inputs)]
        return lines

    def _telling(self) -> Iterator[tuple[str, str]]:
        """Profiles on which a kernel of this kind shows what others hide, and why."""
        largest, loaded = self._largest()
        if _EXP.search(self.reached) and (largest or self._sums_exponentials()):
            yield (
                "large",
                "that it sums exponentials, which overflow where no maximum is taken away",
            )
        if loaded:
            yield "negative", "that it takes the largest of values, which may all be below 0"
        if any(re.search(r"eps(?:ilon)?$", one.name, re.I) for one in self._numbers()):
            yield "tiny", "that what is added to a root or below one shows beside small values"
        if self.finds_places:
            yield "ties", "that it gives the place of one of several equal values"

    @property
    def finds_places(self) -> bool:
        """Whether it compares elements and writes whole numbers: the places of some of them."""
        whole = [one for one in self.parameters if one.dtypes and "int" in one.dtypes[0]]
        written = any(self.roles.get(one.name) in {"outputs", "inout"} for one in whole)
        return written and any(self._replaced(self.reached))

    def _sums_exponentials(self) -> bool:
        text = self.reached
        names = ["exp"]
        for one in re.finditer(rf"({_PLACE})\s*=(?!=)\s*", text):
            call = _EXP.match(text, one.end())
            if call and re.match(r"\s*[;,]", text[closing(text, call.end()) + 1 :]):
                names.append(re.match(r"\w+", one[1])[0])  # type: ignore[index]
        added = r"\+=[^;]*|\b(\w+)\s*=(?!=)[^;]*\b\1\b[^;]*\+[^;]*"
        return any(re.search(rf"(?:{added})\b\w*{one}\w*\b", text) for one in names)

    def _largest(self) -> tuple[bool, bool]:
        """Whether the kernel takes a maximum, and whether of an array's own values."""
        found = [
            one[2] for one in _MAXIMUM.finditer(self.text.body)
            if re.search(rf"(?<![\w.]){re.escape(one[1])}(?!\w)", one[2])
        ]  # fmt: skip
        found += [value for value, sign in self._replaced(self.text.body) if sign == ">"]
        called = [value for value, sign in self._replaced(self.reached) if sign == ">"]
        handed = re.search(rf"\b\w+\s*\([^;]*{self._element}", self.text.body)
        loaded = any(map(self._is_loaded, found)) or bool(called and not found and handed)
        return bool(found or called), loaded

    @property
    def _element(self) -> str:
        return rf"(?<![\w.])(?:{'|'.join(map(re.escape, self.text.arrays))})\s*\["

    @staticmethod
    def _replaced(text: str) -> Iterator[tuple[str, str]]:
        """Values that are compared with the best until then and take its place, and how compared."""
        for one in _COMPARED.finditer(text):
            pairs = ((one[1], one[3], one[2]), (one[3], one[1], "<>"[one[2] == "<"]))
            behind = text[one.end() : one.end() + 200]
            for value, best, sign in pairs:
                if re.search(rf"(?<![\w.]){re.escape(best)}\s*=\s*{re.escape(value)}\s*;", behind):
                    yield value, sign

    def _is_loaded(self, text: str) -> bool:
        made = [
            told
            for name in re.findall(r"[A-Za-z_]\w*", text)
            for told in re.findall(rf"\b{name}\s*=(?!=)([^;]*);", self.text.body)
            if not re.search(rf"\b{name}\s*\+=", self.text.body)
        ]
        return any(re.search(self._element, one) for one in (text, *made))

    def _is_rooted(self, array: str) -> bool:
        """Whether a root is taken of what becomes of an array in place, as of second moments."""
        body = self.text.body
        ends = ((one.end(), closing(body, one.end())) for one in _ROOT.finditer(body))
        texts = [body[begin:end] for begin, end in ends if end > begin]
        for _ in range(_MADE):
            names = set(re.findall(r"(?<![\w.])[A-Za-z_]\w*(?!\w*\s*[\[(])", " ".join(texts)))
            texts += [
                told for name in names
                for told in re.findall(rf"(?<![\w.]){name}\s*=(?!=)([^;]*);", body) if told not in texts
            ]  # fmt: skip
        element = rf"(?<![\w.]){array}\s*\["
        return self.roles.get(array) == "inout" and any(re.search(element, one) for one in texts)

    def _draw(self, one: Parameter) -> str:
        """Draw of an array that is not N(0,1); empty for one that may be."""
        if one.kind == "structs":  # whole numbers in it may be indices, or no links yet
            nothing = self.values.asked(one.name, 32, signed=True) == ValueConstraint("fixed", -1)
            return f"{{kind: constant, value: {255 if nothing else 0}}}"
        dtype = one.dtypes[0] if one.dtypes else ""
        if "float" in dtype:
            return self._of_floats(one)
        return self._of_whole(one, dtype) if "int" in dtype else ""

    def _of_whole(self, one: Parameter, dtype: str) -> str:
        """Draw of whole numbers: what a run asked for, indices, offsets, what their type holds."""
        bits = int(re.findall(r"\d+", dtype)[0])
        whole = self.origin.seen.whole
        asked = self._asked(one, dtype)
        if whole and not ("arange" in whole and (asked or bits < _OF_PLACES)):
            return whole.replace("-1", f'"2 ** {bits} - 1"') if dtype.startswith("u") else whole
        if re.search("mask", one.name, re.I):
            return "{kind: index-uniform, below: 2}"
        if asked:
            return asked
        if end := self.text.offsets_to(one.name):
            return f"{{kind: offsets, end: {quoted(end)}}}"
        if below := self.text.values_below(one.name):
            below = f"{{kind: index-uniform, below: {quoted(below)}}}"
            left = [number for number in self._numbers() if self._means(number, one.name)]
            if not left:
                return below
            other = f"{{draw: {{kind: constant, value: {self._value(left[0])[0]}}}, share: 0.2}}"
            return f"{{kind: mix, parts: [{{draw: {below}, share: 0.8}}, {other}]}}"
        if dtype in _BYTES:
            return f"{{kind: uniform, lo: {_BYTES[dtype][0]}, hi: {_BYTES[dtype][1]}}}"
        return f"{{kind: index-uniform, below: {100 if 'pos' in one.name else self._last}}}"

    def _asked(self, one: Parameter, dtype: str) -> str:
        """Draw of whole numbers with which loops, asserts and divisions do well; else empty."""
        bits = int(re.findall(r"\d+", dtype)[0])
        asked = self.values.asked(one.name, bits, not dtype.startswith("u"))
        if asked is None:
            divisor = f"{{kind: uniform, lo: 1, hi: {self._last}}}"
            return divisor if self.values.divides(one.name) else ""
        below = self.text.values_below(one.name) or self._last
        if asked.kind == "own":
            return "{kind: arange}"
        fixed = f"{{kind: constant, value: {_exactly(asked.least or 0)}}}"
        if asked.kind == "fixed":
            return fixed
        if asked.kind == "slots":
            other = f"{{draw: {{kind: index-uniform, below: {quoted(below)}}}, share: 0.5}}"
            return f"{{kind: mix, parts: [{{draw: {fixed}, share: 0.5}}, {other}]}}"
        least = 0 if asked.least is None else asked.least
        most = f"max({least}, {below} - 1)" if asked.most is None else asked.most
        return f"{{kind: uniform, lo: {least}, hi: {quoted(str(most))}}}"

    def _means(self, number: Parameter, array: str) -> bool:
        """Whether a value of the array that equals the number means something else than a place."""
        compared = rf"(\w+)\s*[!=]=\s*{number.name}\b|\b{number.name}\s*[!=]=\s*(\w+)"
        found = (one or other for one, other in re.findall(compared, self.text.body))
        return number.integer and any(
            re.search(rf"\b{name}\s*=\s*{array}\s*\[", self.text.body) for name in found
        )

    def _of_floats(self, one: Parameter) -> str:
        """Draw of floats that are not below 0, or are factors of bytes; empty for others."""
        whole = rf"\(\s*(?:unsigned\s+)?int\s*\)\s*\(?[^;]*(?<![\w.]){one.name}\s*\["  # an index
        bytes_ = any(set(other.dtypes) & {*_BYTES} for other in self.parameters if other.pointers)
        if bytes_ and re.search("scale|inv|dequant", one.name, re.I):
            return "{kind: uniform, lo: 0.001, hi: 0.02}"
        squares = one.name == "v" and "m" in self.roles
        positive = (
            squares
            or self._is_rooted(one.name)
            or _NOT_BELOW_0.search(one.name)
            or re.search(whole, self._plain)
        )
        return "{kind: uniform}" if positive else ""


def _exactly(value: int) -> str:
    """A whole number as YAML; as text where a float64 may not hold it."""
    bits = value.bit_length()
    return str(value) if bits <= 53 else f'"2 ** {bits} - {2**bits - value}"'
