"""Lists of integers as they are written on the command line."""

from __future__ import annotations

import re

from tokitai_cli.core.errors import UsageError

MAX_VALUES = 10_000
_INTEGER = re.compile(r"[+-]?[0-9]+")
_MOST_DIGITS = 19
_FORMS = "write 64, a list 16,64 or a range start:stop:step such as 64:1024:64"


def expand_values(name: str, text: str) -> tuple[int, ...]:
    """Integers of `7`, of `16,64` and of `start:stop:step` (stop included where it is hit).

    The step is 1 where it is left out; forms mix, repeats are dropped. `name` is the option's, for
    the errors. Raises UsageError for anything else, and for more than 10,000 values.
    """
    values: dict[int, None] = {}
    for part in text.split(","):
        values |= dict.fromkeys(_range(name, text, part.strip()))
        if len(values) > MAX_VALUES:
            raise _fault(name, text, f"more than {MAX_VALUES} values", "use a larger step")
    return tuple(values)


def _range(name: str, text: str, part: str) -> range:
    words = [word.strip() for word in part.split(":")]
    if not all(_INTEGER.fullmatch(word) for word in words) or len(words) > 3:
        what = f"`{part}` is not an integer" if part else "a value is missing"
        raise _fault(name, text, what, _FORMS)
    if any(len(word.lstrip("+-0")) > _MOST_DIGITS for word in words):
        raise _fault(name, text, "2^63 or more", "use a smaller value")
    start, *rest = map(int, words)
    if not rest:
        return range(start, start + 1)
    stop, step = (*rest, 1)[:2]
    if step < 1:
        raise _fault(name, text, f"step {step} is not positive", _FORMS)
    if stop < start:
        raise _fault(name, text, f"stop {stop} is below start {start}", _FORMS)
    values = range(start, stop + 1, step)
    if (stop - start) // step >= MAX_VALUES:
        raise _fault(name, text, f"more than {MAX_VALUES} values", "use a larger step")
    return values


def _fault(name: str, text: str, message: str, hint: str) -> UsageError:
    shown = text if len(text) <= 60 else text[:57] + "..."
    option = name.replace("_", "-")
    return UsageError(f"--{option} {shown}: {message}", hint=hint)
