"""Constant integer expressions of C++ have the values that a compiler gives them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tokitai_cli.cpp.arithmetic import constant
from tokitai_cli.cpp.preprocessed_unit import preprocess

MACROS = preprocess(
    Path("-"),
    text="#define LOG(n) ((n<8)?2:((n<16)?3:((n<32)?4:(n<2048)?10:0)))\n"
    "#define LEAST(x,y) ((x<y)?x:y)\n",
).macros
NAMES = {
    "user": "1000",
    "n": "1<<(LOG(user)+1)",
    "N": "(1 << 4)",
    "M": "(N) - 1",
    "a::K": "N * 2",
    "loop": "loop",
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("n", 2048), ("LEAST(n, 64)", 64), ("M", 15), ("(N)-1", 15), ("-7 / 2", -3), ("-7 % 3", -1),
        ("sizeof(float4) / sizeof(float)", 4), ("sizeof(unsigned long int)", 8), ("sizeof(int*)", 8),
        ("(int)N", 16), ("size_t(N)", 16), ("static_cast<size_t>(N) + 1", 17), ("0x10", 16),
        ("010", 8), ("1u<<3", 8), ("1'000", 1000), ("n > 3 && 0", 0), ("0 && unknown", 0),
        ("std::max(3, N)", 16), ("std::min<int>(3, N)", 3), ("N > 8 ? N : unknown", 16),
        ("N<32?N:3>2", 16), ("a::K", 32), ("b::N", 16), ("~0 & 0xff", 255), ("!true", 0),
        ("1 << 2 << 3", 32), ("'a'", 97), ("'z' - 'a' + 1", 26),
    ],
)  # fmt: skip
def test_a_value_is_the_compilers(text: str, value: int) -> None:
    assert constant(text, NAMES, {name: (one,) for name, one in MACROS.items()}) == value


@pytest.mark.parametrize(
    "text",
    ["", "unknown", "1.5 * 2", "f(3)", "1 +", "N / 0", "3]; int y[2", "3; 4", "loop",
     "'ab'", "'é'", "sizeof(T)", "LOG()", "1 << 64 << 64"],
)  # fmt: skip
def test_what_the_text_does_not_say_is_open(text: str) -> None:
    assert constant(text, NAMES, {name: (one,) for name, one in MACROS.items()}) is None
