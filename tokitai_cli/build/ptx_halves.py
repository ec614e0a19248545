"""PTX instructions of numbers of 16 bits, alone or two in a word, as C++."""

from __future__ import annotations

from collections.abc import Callable

from tokitai_cli.build.ptx_operands import HALVES, PTX, Call, Unknown

_NUMBERS = {"f16": "__half", "bf16": "__hip_bfloat16"}
# C++ of one number, and how many are read.
_FUNCTIONS = {
    "add": ("__hadd(a, b)", 2), "sub": ("__hsub(a, b)", 2), "mul": ("__hmul(a, b)", 2),
    "fma": ("__hfma(a, b, c)", 3), "min": ("__hmin(a, b)", 2), "max": ("__hmax(a, b)", 2),
    "neg": ("__hneg(a)", 1), "abs": ("__habs(a)", 1),
    "ex2": ("T(exp2f(float(a)))", 1), "tanh": ("T(tanhf(float(a)))", 1),
}  # fmt: skip
_ROUNDED = {"add", "sub", "mul", "fma"}


def or_halves(rule: Callable[[Call], str]) -> Callable[[Call], str]:
    """`rule`, but of an instruction whose last word is a number of 16 bits."""

    def both(call: Call) -> str:
        return _on_lanes(call) if call.words and call.words[-1] in HALVES else rule(call)

    return both


def _on_lanes(call: Call) -> str:
    text, count = _FUNCTIONS[call.base]
    word = call.words[-1]
    number, held = _NUMBERS[word.removesuffix("x2")], HALVES[word]
    known = ("rn", "sat", "relu") if call.base in _ROUNDED else ("approx",)
    ended = call.only(*known) & {"sat", "relu"}
    if ("approx" in call.words) != (call.base in {"ex2", "tanh"}) or len(ended) > 1:
        raise Unknown(call.text)
    if "sat" in ended:
        text = f"T({PTX}within_one(float({text})))"
    elif "relu" in ended:
        text = f"{PTX}not_below_0({text})"
    names = ", ".join(f"auto {one}" for one in "abc"[:count])
    values = ", ".join(call.read(at, held) for at in range(1, count + 1))
    lane = f"[]({names}) {{ using T = decltype(a); return {text}; }}"
    return call.write(0, f"{PTX}on_lanes<{number}, {held}>({lane}, {values})")
