"""Loads, stores, atomic operations and lane crossings against an evaluation written beside them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from tests.devices.gfx.machine import MEMORY, STATE, program, run, state_of
from tokitai_cli.devices.amdgpu.isa.instruction import Instruction, Operand
from tokitai_cli.devices.amdgpu.translate import table

KINDS = ("load", "store", "load2", "store2", "atomic", "cmpswap")
# Tested form by form.
CROSSING = {
    *("ds_bpermute_b32", "ds_permute_b32", "ds_swizzle_b32", "v_permlane16_b32", "v_movrels_b32"),
    *("v_permlanex16_b32", "v_readlane_b32", "v_readfirstlane_b32", "v_writelane_b32"),
}
TO, AT, DATA, OTHER = 0, 4, 6, 10
ROUNDS = 4


def signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


def f32(bits: int) -> float:
    return float(np.array(bits, np.uint32).view(np.float32))


def f64(bits: int) -> float:
    return float(np.array(bits, np.uint64).view(np.float64))


def added(m: int, a: int, kind: str) -> int:
    if kind == "f64":
        return as_f64(f64(m) + f64(a))
    return as_f32(f32(m) + f32(a)) if kind == "f32" else m + a


def pairs_added(m: int, a: int, kind: str) -> int:
    """Sums of both halves; float32 holds enough bits for the second rounding to be right."""
    made = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}[kind]
    first, second = (np.array([one], np.uint32).view(made).astype(np.float32) for one in (m, a))
    return int((first + second).astype(made).view(np.uint32)[0])


# What memory holds afterwards, of what it held and the operand, both unsigned.
ATOMIC: dict[str, Callable[[int, int, str], int]] = {
    "add": added,
    "sub": lambda m, a, _: m - a,
    "min": lambda m, a, kind: min(m, a, key=ordered(kind)),
    "max": lambda m, a, kind: max(m, a, key=ordered(kind)),
    "and": lambda m, a, _: m & a,
    "or": lambda m, a, _: m | a,
    "xor": lambda m, a, _: m ^ a,
    "inc": lambda m, a, _: 0 if m >= a else m + 1,
    "dec": lambda m, a, _: a if m == 0 or m > a else m - 1,
    "swap": lambda m, a, _: a,
    "storexchg": lambda m, a, _: a,
    "pk_add": pairs_added,
}


def as_f64(value: float) -> int:
    return int(np.float64(value).view(np.uint64))


def as_f32(value: float) -> int:
    return int(np.float32(value).view(np.uint32))


def ordered(kind: str) -> Callable[[int], float]:
    """What makes bits of a kind comparable."""
    if kind in ("f32", "f64"):
        return f32 if kind == "f32" else f64
    bits = int(kind[1:])
    return lambda value: signed(value, bits) if kind[0] == "i" else value


def instruction(name: str) -> Instruction:
    """An instruction on the registers above; memory of 64 bytes and more begins at `s[20:21]`."""
    kind, space = table()[name].kind, name.partition("_")[0]
    at = Operand("v", AT, 2 if space == "flat" else 1)
    to = (Operand("v", TO),)
    data: tuple[Operand, ...] = (Operand("v", DATA),)
    modifiers: dict[str, Any] = {"offset": 16}
    if kind in ("load2", "store2"):
        modifiers = {"offset0": 0, "offset1": 1}
        data = (*data, Operand("v", OTHER))
    if kind == "cmpswap" and space == "ds":
        data = (*data, Operand("v", OTHER))
    src: tuple[Operand, ...] = (at,) if kind.startswith("load") else (at, *data)
    if space == "buffer":
        words = (Operand("s", 20, 4), Operand("int", 128))
        src = (at, *words) if kind == "load" else (*data, at, *words)
        modifiers["offen"] = True
    elif space != "ds":
        src = (*src, Operand("s", 20, 2) if space == "global" else Operand("null"))
    returns = kind.startswith("load") or "rtn" in name or (space != "ds" and "atomic" in name)
    encoding = "MUBUF" if space == "buffer" else space.upper()
    return Instruction(0, 8, name, encoding, to if returns else (), src, modifiers)


def place(name: str, lane: int, lanes: int = 32) -> int:
    """Where a lane accesses memory, the offset of the instruction included."""
    if name.startswith("scratch_"):
        return lane * (MEMORY // lanes) + 32 + 16
    if "stride64" in name:  # so that no lane's second place is another's first
        return 64 + (256 // lanes if name.endswith("b32") else 8) * lane
    return 64 + 32 * lane + (0 if "2addr" in name else 16)


class _Lane:
    """Registers and memory of one lane, changed as an instruction does."""

    def __init__(self, state: Any, lane: int) -> None:
        self.rows, self.memory, self.lane = state["v"], state["memory"], lane

    def register(self, index: int, dwords: int) -> int:
        return sum(int(self.rows[index + at][self.lane]) << 32 * at for at in range(dwords))

    def put(self, index: int, value: int, dwords: int) -> None:
        for at in range(dwords):
            self.rows[index + at][self.lane] = value >> 32 * at & 0xFFFFFFFF

    def load(self, at: int, size: int) -> int:
        return int.from_bytes(bytes(self.memory[at : at + size]), "little")

    def store(self, at: int, value: int, size: int) -> None:
        self.memory[at : at + size] = list((value % 2 ** (8 * size)).to_bytes(size, "little"))


def move(name: str, one: _Lane, at: int) -> None:
    """Loads and stores."""
    word = re.search(r"(?:load|store).*?_([uib])(\d+)", name)
    assert word
    bits = int(word[2])
    size, high = bits // 8, "_hi" in name
    if "2addr" in name:
        step = (64 if "stride64" in name else 1) * size
        for index in range(2):
            if "load" in name:
                one.put(TO + index * size // 4, one.load(at + index * step, size), size // 4)
            else:
                data = one.register(OTHER if index else DATA, size // 4)
                one.store(at + index * step, data, size)
    elif "store" in name:
        data = one.register(DATA, max(size // 4, 1)) >> (16 if high else 0)
        one.store(at, data, size)
    else:
        value = one.load(at, size)
        value = signed(value, bits) if word[1] == "i" else value
        if "d16" in name:
            old = one.register(TO, 1)
            half = value & 0xFFFF
            value = (old & 0xFFFF) | half << 16 if high else (old & 0xFFFF0000) | half
        one.put(TO, value % 2 ** max(bits, 32), max(size // 4, 1))


def change(name: str, one: _Lane, at: int, returns: bool) -> None:
    """Atomic operations."""
    word = re.fullmatch(
        r"(?:ds|(?:global|flat|buffer)_atomic)_((?:pk_)?[a-z]+)_(?:rtn_)?([uibf]+(\d+))", name
    )
    assert word
    dwords = max(int(word[3]) // 32, 1)
    held, data = one.load(at, 4 * dwords), one.register(DATA, dwords)
    if word[1] in ("cmpswap", "cmpstore"):
        compared = one.register(OTHER if word[1] == "cmpstore" else DATA + dwords, dwords)
        made = data if held == compared else held
    else:
        made = ATOMIC[word[1]](held, data, word[2])
    one.store(at, made, 4 * dwords)
    if returns:
        one.put(TO, held, dwords)


def states(names: list[str], lanes: int = 32) -> Any:
    """States with addresses that memory holds, and operands of which some are equal to what it holds."""
    random = np.random.default_rng(5)
    made = np.zeros(len(names) * ROUNDS, state_of(lanes))
    made["case"] = np.repeat(np.arange(len(names)), ROUNDS)
    made["v"] = random.integers(0, 2**32, made["v"].shape)
    made["memory"] = random.integers(0, 256, made["memory"].shape)
    made["exec"] = random.integers(0, 2**lanes, len(made), np.uint64)
    made["exec"][::ROUNDS] = 2**lanes - 1
    made["s"][:, 22], made["s"][:, 23] = MEMORY, 3 << 28  # of a buffer descriptor
    for state in made:
        name = names[state["case"]]
        for lane in range(lanes):
            one, at = _Lane(state, lane), place(name, lane, lanes)
            offset = 0 if "2addr" in name else 16
            one.put(AT, 32 if name.startswith("scratch") else at - offset, 1)
            if name.startswith("flat_"):
                one.put(AT + 1, 0x10000, 1)
            if lane % 3 == 0:  # what is compared with is there
                one.put(DATA + 1, one.load(at, 8), 2)
                one.put(DATA + 2, one.load(at, 8) if name.endswith("64") else 0, 2)
                one.put(OTHER, one.load(at, 8), 2)
            if "pk_add" in name:
                kind = ml_dtypes.bfloat16 if "bf16" in name else np.float16
                pairs = random.normal(0, 3, 4).astype(kind).view(np.uint32)
                one.store(at, int(pairs[0]), 4)
                one.put(DATA, int(pairs[1]), 1)
            if "f32" in name:
                one.store(at, as_f32(random.normal()), 4)
                one.put(DATA, as_f32(random.normal()), 1)
            if "f64" in name:
                one.store(at, as_f64(random.normal()), 8)
                one.put(DATA, as_f64(random.normal()), 2)
    return made


def changed(before: Any, names: list[str], returning: list[bool], lanes: int = 32) -> Any:
    """The states as the instructions leave them."""
    made = before.copy()
    for state in made:
        name = names[state["case"]]
        for lane in range(lanes):
            if not int(state["exec"]) >> lane & 1:
                continue
            one, at = _Lane(state, lane), place(name, lane, lanes)
            if table()[name].kind in ("atomic", "cmpswap"):
                change(name, one, at, returning[state["case"]])
            else:
                move(name, one, at)
    return made


def test_memory_instructions_do_what_the_manual_says() -> None:
    names = sorted(name for name, entry in table().items() if entry.kind in KINDS)
    assert len(names) > 150
    instructions = [instruction(name) for name in names]
    before = states(names)
    want = changed(before, names, [bool(one.dst) for one in instructions])
    after = run(program(instructions), before)
    told = []
    for first, second in zip(after, want, strict=True):
        name = names[first["case"]]
        for part in ("v", "memory", "exec"):
            if not np.array_equal(first[part], second[part]):
                where = np.argwhere(first[part] != second[part])[:2].tolist()
                told.append(f"{name}: {part} differs at {where}")
        if first["found"]:
            told.append(f"{name}: {first['found']} findings")
    assert not told, "\n".join(told[:40])


def test_lanes_read_other_lanes() -> None:
    v, d = Operand("v", DATA), Operand("v", TO)
    s1, s2 = Operand("s", 40), Operand("s", 41)
    lane = np.arange(32)
    picks = np.random.default_rng(2).integers(0, 128, 32)
    row = np.arange(1000, 1032)
    nibbles = [int(one) for one in np.random.default_rng(4).integers(0, 16, 16)]
    low, high = (
        sum(pick << (4 * at) for at, pick in enumerate(part)) for part in (nibbles[:8], nibbles[8:])
    )

    def one(name: str, dst: Operand, *src: Operand, **modifiers: Any) -> Instruction:
        return Instruction(0, 8, name, "VOP3", (dst,), src, modifiers)

    permuted = np.zeros(32, np.int64)
    for source in range(32):
        permuted[picks[source] // 4 % 32] = row[source]
    to_scalar = Operand("s", 50)
    forms = [
        (one("ds_bpermute_b32", d, Operand("v", AT), v), row[picks // 4 % 32]),
        (one("ds_permute_b32", d, Operand("v", AT), v), permuted),
        (one("ds_swizzle_b32", d, v, offset=0x8000 | 0x1B), row[lane ^ 3]),
        (one("ds_swizzle_b32", d, v, offset=0x041F), row[lane ^ 1]),
        (one("v_permlane16_b32", d, v, s1, s2), row[(lane & 16) + np.array(nibbles)[lane & 15]]),
        (
            one("v_permlanex16_b32", d, v, s1, s2),
            row[((lane & 16) ^ 16) + np.array(nibbles)[lane & 15]],
        ),
        (one("v_readlane_b32", to_scalar, v, Operand("int", value=7)), row[7]),
        (one("v_readfirstlane_b32", to_scalar, v), row[0]),
        (one("v_writelane_b32", d, s1, Operand("int", value=9)), np.where(lane == 9, low, 7)),
        (one("v_movrels_b32", d, Operand("v", DATA - 2)), row),
    ]
    assert {form.name for form, _ in forms} == CROSSING
    before = np.zeros(len(forms), STATE)
    before["case"] = np.arange(len(forms))
    before["exec"] = 0xFFFFFFFF
    before["v"][:, DATA], before["v"][:, AT], before["v"][:, TO] = row, picks, 7
    before["s"][:, 40], before["s"][:, 41], before["s"][:, 125] = low, high, 2
    after = run(program([form for form, _ in forms]), before)
    for (form, want), last in zip(forms, after, strict=True):
        got = last["s"][50] if form.dst[0].kind == "s" else last["v"][TO]
        assert np.array_equal(got, want), form.name
