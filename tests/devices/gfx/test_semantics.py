"""Every entry of the table against an evaluation that was written beside it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from tests.devices.gfx.gfx9_reference import NEWER, OLDER, PICKING
from tests.devices.gfx.machine import STATE, program, run, state_of
from tests.devices.gfx.reference import FLOATS, REFERENCE, f16_bits
from tests.devices.gfx.scalar_reference import SCALAR
from tokitai_cli.devices.amdgpu.isa.instruction import Instruction, Operand
from tokitai_cli.devices.amdgpu.translate import table

ROUNDS = 12
WIDTH = {"u64": 64, "i64": 64, "f64": 64, "f16": 16, "u16": 16, "i16": 16, "b16": 16, "f16_hi": 16}
SPECIAL = {
    16: [0, 0x8000, 1, 0x8001, 0x3C00, 0xBC00, 0x7BFF, 0x7C00, 0xFC00, 0x7E00, 0x7D00, 0x400,
         0x3FF, 0xFFFF],
    32: [
        *(0, 1 << 31, 1, 0x80000001, 0x3F800000, 0xBF800000, 0x7F7FFFFF, 0x7F800000, 0xFF800000),
        0x7FA00000,
        *(0x7FC00000, 0x00800000, 0x007FFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 31, 32, 33, 0x4F000000),
        *(0xCF000000, 0x4F800000, 0x477FF000, 0x477FE000, 0x33000000, 0x38800000, 0x40200000),
    ],
    64: [
        *(0, 1 << 63, 1, 0x3FF0000000000000, 0xBFF0000000000000, 0x7FF0000000000000),
        0x7FF4000000000000,
        *(0xFFF0000000000000, 0x7FF8000000000000, (1 << 63) - 1, (1 << 64) - 1, 0x41E0000000000000),
    ],
}  # fmt: skip


def drawn(random: np.random.Generator, kind: str, count: int) -> Any:
    """Bits of operands: special ones, any, and numbers of moderate size."""
    bits = WIDTH.get(kind, 32)
    made = (
        random.integers(0, 1 << bits, count, np.uint64, endpoint=False)
        if bits < 64
        else (random.integers(0, 1 << 64, count, np.uint64))
    )
    pick = random.integers(0, 3, count)
    made[pick == 0] = random.choice(np.array(SPECIAL[bits], np.uint64), int((pick == 0).sum()))
    moderate = random.normal(0, 8, count)
    if kind in FLOATS:
        values = moderate.astype(FLOATS[kind]).view(f"u{bits // 8}")
    else:
        values = random.integers(-40, 40, count).astype(f"i{bits // 8}").view(f"u{bits // 8}")
    return np.where(pick == 1, values.astype(np.uint64), made)


def typed(bits: Any, kind: str) -> Any:
    """Bits as values of a type."""
    if kind in FLOATS:
        return bits.astype(f"u{np.dtype(FLOATS[kind]).itemsize}").view(FLOATS[kind])
    if kind == "mask":
        return bits.astype(bool)
    size = WIDTH.get(kind, 32) // 8
    unsigned = bits.astype(f"u{size}")
    return unsigned.view(f"i{size}") if kind[0] == "i" else unsigned


def bits_of(values: Any, kind: str) -> Any:
    """Values as bits of a type; integers of any size are taken modulo the width."""
    kind = kind.removesuffix("_hi")
    if kind in FLOATS:
        array = np.array(values, np.float64) if isinstance(values, list) else np.asarray(values)
        return (
            array.astype(FLOATS[kind]).view(f"u{np.dtype(FLOATS[kind]).itemsize}").astype(np.uint64)
        )
    bits = WIDTH.get(kind, 32)
    return np.array([int(value) % 2**bits for value in values], np.uint64)


def same(got: Any, want: Any, kind: str) -> Any:
    """Equal bits, or NaN both."""
    kind = kind.removesuffix("_hi")
    if kind not in FLOATS:
        return got == want
    return (got == want) | (np.isnan(typed(got, kind)) & np.isnan(typed(want, kind)))


def register(index: int, kind: str) -> Operand:
    half = 0 if WIDTH.get(kind) == 16 else None
    return Operand("v", index, 2 if WIDTH.get(kind) == 64 else 1, half)


# Registers: the destination, and the sources; masks stand in scalar registers.
TO, FROM, MASK_TO, MASK_FROM = 0, (4, 6, 8, 10), 30, 32


def instruction(name: str, dst: Sequence[str], src: Sequence[str], **modifiers: Any) -> Instruction:
    """An instruction on the registers above."""
    made = [
        Operand("exec")
        if kind == "exec"
        else Operand("s", MASK_TO)
        if kind == "mask"
        else register(TO, kind)
        for kind in dst
    ]
    given = [
        Operand("s", MASK_FROM) if kind == "mask" else register(FROM[at], kind)
        for at, kind in enumerate(src)
    ]
    packed = name.startswith(("v_pk_", "v_dot", "v_fma_mix"))
    encoding = "VOP3P" if packed else "VOP3"
    if packed:
        modifiers = {"op_sel_hi": 7, **modifiers}
    return Instruction(0, 8, name, encoding, tuple(made), tuple(given), modifiers)


class _Case:
    """An instruction with its states, and what each gives."""

    lanes, arch = 32, "gfx1100"
    reference: Mapping[str, tuple[str, str, Any]] = REFERENCE

    def __init__(self, name: str, number: int) -> None:
        self.name, self.number = name, number
        dst, src, self.function = self.reference[name]
        self.dst, self.src = dst.split(), src.split()
        # Of v_fma_mix the first source is float16, the others float32, so that both are seen.
        self.mixed = {"op_sel_hi": 1} if "mix" in self.src else {}
        if "iu8" in self.src:
            self.mixed = {"neg_lo": 1}
        self.random = np.random.default_rng(sum(name.encode()))

    @property
    def instruction(self) -> Instruction:
        return instruction(self.name, self.dst, self.src, **self.mixed)

    def kind(self, at: int) -> str:
        kind = self.src[at]
        return ("f16" if at == 0 else "f32") if kind == "mix" else kind.removeprefix("pk_")

    def states(self) -> Any:
        states = np.zeros(ROUNDS, state_of(self.lanes))
        states["case"] = self.number
        states["v"] = self.random.integers(0, 2**32, states["v"].shape)
        states["s"] = self.random.integers(0, 2**32, states["s"].shape)
        states["exec"] = self.random.integers(0, 2**self.lanes, ROUNDS, np.uint64)
        states["exec"][:2] = 2**self.lanes - 1, 0
        for turn in range(ROUNDS):
            for at, kind in enumerate(self.src):
                if kind == "mask":
                    continue
                halves = kind.startswith(("pk_", "pair_"))
                drawn_kind = "f16" if kind.startswith("pair_") else self.kind(at)
                lanes = self.lanes
                bits = drawn(self.random, drawn_kind, 2 * lanes if halves else lanes)
                if kind == "pk_f32":
                    states["v"][turn, FROM[at] + 1] = bits[lanes:]
                    bits, halves = bits[:lanes], False
                elif halves:
                    bits = bits[:lanes] & 0xFFFF | (bits[lanes:] & 0xFFFF) << 16
                row = states["v"][turn, FROM[at]]
                if WIDTH.get(drawn_kind) == 16 and not halves:
                    bits |= states["v"][turn, FROM[at]].astype(np.uint64) & 0xFFFF0000
                row[:] = bits & 0xFFFFFFFF
                if WIDTH.get(drawn_kind) == 64:
                    states["v"][turn, FROM[at] + 1] = bits >> 32
        return states

    def bits(self, before: Any, at: int) -> Any:
        """Bits of a source in each lane."""
        if self.src[at] == "mask":
            return self.mask(before, MASK_FROM) >> np.arange(self.lanes, dtype=np.uint64) & 1
        rows = before["v"].astype(np.uint64)
        low = rows[FROM[at]]
        if WIDTH.get(self.kind(at)) == 64 or self.src[at] == "pk_f32":
            return low | rows[FROM[at] + 1] << 32
        return low

    def mask(self, state: Any, register: int) -> Any:
        """A mask in scalar registers."""
        high = np.uint64(state["s"][register + 1]) << np.uint64(32) if self.lanes == 64 else 0
        return np.uint64(state["s"][register]) | np.uint64(high)

    @staticmethod
    def entry_name(name: str) -> str:
        """Of the table's entry for an instruction."""
        return name

    def upper(self) -> bool:
        """Whether a result of 16 bits leaves the upper half of its register as it is."""
        return True

    def wanted(self, before: Any) -> list[Any]:
        """Bits of every destination."""
        halved = self.dst[0].startswith("pk_")
        kinds = [kind.removeprefix("pk_") for kind in self.dst]
        parts = []
        size = WIDTH.get(kinds[0], 32) if halved else 0
        for shift in (0, size) if halved else (0,):
            arrays = []
            for at in range(len(self.src)):
                kind = self.kind(at)
                bits = self.bits(before, at)
                if WIDTH.get(kind) == 16 or self.src[at] == "pk_f32":
                    bits = bits >> np.uint64(shift) & np.uint64(
                        0xFFFF if size != 32 else 0xFFFFFFFF
                    )
                arrays.append(typed(bits, kind))
            more = {}
            if "old" in inspect.signature(self.function).parameters:
                old = before["v"][TO].astype(np.uint64) >> shift
                if WIDTH.get(kinds[0]) == 64:
                    old |= before["v"][TO + 1].astype(np.uint64) << 32
                more["old"] = typed(old & 0xFFFF if WIDTH.get(kinds[0]) == 16 else old, kinds[0])
            made = self.function(*arrays, **more)
            several = made if len(self.dst) > 1 else [made]
            parts.append([bits_of(*pair) for pair in zip(several, kinds, strict=True)])
        if halved:
            return [parts[0][0] | parts[1][0] << np.uint64(size)]
        return parts[0]

    def faults(self, before: Any, after: Any) -> list[str]:
        """Where what came is not what the reference gives, or lanes that are not active changed."""
        lanes = np.arange(self.lanes, dtype=np.uint64)
        active = np.uint64(before["exec"]) >> lanes & 1 == 1
        told = []
        for kind, want in zip(self.dst, self.wanted(before), strict=True):
            if kind in ("mask", "exec"):
                got = after["exec"] if kind == "exec" else self.mask(after, MASK_TO)
                set_ = sum(1 << int(at) for at in lanes[active & (want % 2 == 1)])
                if int(got) != set_:
                    told.append(f"{self.name}: mask {int(got):#x}, want {set_:#x}")
                continue
            rows, old = after["v"].astype(np.uint64), before["v"].astype(np.uint64)
            got, kept = rows[TO], old[TO]
            if WIDTH.get(kind) == 64 or kind == "pk_f32":
                got, kept = got | rows[TO + 1] << 32, kept | old[TO + 1] << 32
            elif WIDTH.get(kind) == 16:
                shift = np.uint64(16 if kind.endswith("_hi") else 0)
                other = np.uint64(0xFFFF0000 if shift == 0 else 0xFFFF)
                rest = kept & other if self.upper() else np.where(active, 0, kept & other)
                if not np.array_equal(got & other, rest):
                    told.append(f"{self.name}: the other half changed")
                got, kept = got >> shift & 0xFFFF, kept >> shift & 0xFFFF
            told += self.differing(kind, before, np.where(active, want, kept), got, active)
        return told

    def differing(self, kind: str, before: Any, want: Any, got: Any, active: Any) -> list[str]:
        if kind == "pk_f32":
            parts = [(got >> at & 0xFFFFFFFF, want >> at & 0xFFFFFFFF) for at in (0, 32)]
            good = same(*parts[0], "f32") & same(*parts[1], "f32")
        elif kind.startswith(("pk_f16", "pair_f16")):
            good = same(got & 0xFFFF, want & 0xFFFF, "f16") & same(got >> 16, want >> 16, "f16")
        elif kind == "pair_bf16":
            parts = [(got << at & 0xFFFF0000, want << at & 0xFFFF0000) for at in (0, 16)]
            good = same(*parts[0], "f32") & same(*parts[1], "f32")
        elif kind == "u64" and "_bf8" in self.name:  # two floats
            parts = [(got >> at & 0xFFFFFFFF, want >> at & 0xFFFFFFFF) for at in (0, 32)]
            good = same(*parts[0], "f32") & same(*parts[1], "f32")
        elif table()[self.entry_name(self.name)].approximate:
            given = typed(self.bits(before, 0), self.kind(0)).astype(float)
            good = close(got, want, kind, table()[self.entry_name(self.name)].approximate) | (
                # The manual gives sines and cosines no meaning beyond.
                ("sin" in self.name or "cos" in self.name) & (np.abs(given) > 256)
            )
        else:
            good = same(got, want, kind)
        good = np.where(active, good, got == want)
        return [
            f"{self.name}({[hex(int(self.bits(before, at)[lane])) for at in range(len(self.src))]})"
            f" = {int(got[lane]):#x}, want {int(want[lane]):#x}, lane {lane}"
            for lane in np.flatnonzero(~good)[:2]
        ]


def close(got: Any, want: Any, kind: str, how: str) -> Any:
    """Within an ulp, or within the absolute error of sines."""
    a, b = typed(got, kind).astype(float), typed(want, kind).astype(float)
    unit = np.spacing(np.abs(typed(want, kind))).astype(float)
    error = 2.0**-20 if kind == "f32" else 2.0**-9
    bound = unit if how != "~~" else np.full(a.shape, error)
    return same(got, want, kind) | (np.abs(a - b) <= bound)


VECTOR = sorted(name for name, entry in table().items() if entry.kind == "value" and name[0] == "v")


DIVISION = {name for name in VECTOR if name.startswith("v_div_")}


def test_every_value_of_the_table_has_a_reference() -> None:
    # Division is tested by itself, as only its whole sequence has a meaning.
    assert sorted(set(VECTOR) - DIVISION) == sorted({*REFERENCE, *OLDER, *NEWER, PICKING})
    scalars = {name for name, one in table().items() if one.kind == "value" and name[0] == "s"}
    assert scalars == set(SCALAR)


def test_vector_instructions_do_what_the_manual_says() -> None:
    cases = [_Case(name, number) for number, name in enumerate(sorted(REFERENCE))]
    clamped = {one.name for one in cases if one.name.endswith("_clamp")}
    made = program(
        [
            instruction(one.name.removesuffix("_clamp"), one.dst, one.src, clamp=True, **one.mixed)
            if one.name in clamped
            else one.instruction
            for one in cases
        ]
    )
    before = np.concatenate([one.states() for one in cases])
    after = run(made, before)
    assert len(after) == len(before)
    told = [
        fault
        for one, first, last in zip(
            np.repeat(np.array(cases, object), ROUNDS), before, after, strict=True
        )
        for fault in one.faults(first, last)
    ]
    assert not told, "\n".join(told[:60])


# What an approximate instruction comes near to, in float64.
NEAR: dict[str, Any] = {
    "exp": np.exp2,
    "log": np.log2,
    "rcp": np.reciprocal,
    "rcp_iflag": np.reciprocal,
    "sqrt": np.sqrt,
    "rsq": lambda a: 1 / np.sqrt(a),
}


@pytest.mark.parametrize("nearby", [1, 2, 3], ids=["up", "down", "flush"])
def test_approximations_vary_between_two_neighbours_and_by_flushing(nearby: int) -> None:
    """Up is the number away from zero of the two about the exact value, down the other one."""
    names = sorted(name for name, entry in table().items() if entry.approximate == "~")
    cases = [_Case(name, number) for number, name in enumerate(names)]
    made = program([one.instruction for one in cases])
    before = np.concatenate([one.states() for one in cases])
    before["exec"] = 0xFFFFFFFF
    plain, varied = run(made, before), run(made, before, nearby)
    moved = 0
    for one, first, a, b in zip(
        np.repeat(np.array(cases, object), ROUNDS), before, plain, varied, strict=True
    ):
        kind = one.dst[0]
        mask = np.uint64(0xFFFF if kind == "f16" else 0xFFFFFFFF)
        nominal, other = (
            typed(each["v"][TO].astype(np.uint64) & mask, kind).astype(np.float64)
            for each in (a, b)
        )
        given = typed(one.bits(first, 0) & mask, kind)
        want = NEAR[one.name.removeprefix("v_").rpartition("_")[0]](given.astype(np.float64))
        limits = np.finfo(FLOATS[kind])
        usual = np.isfinite(nominal) & (nominal != 0) & np.isfinite(want)
        if nearby == 3:
            tiny = (np.abs(nominal) < limits.tiny) & usual
            assert not (np.abs(other[tiny]) > 0).any(), one.name
            normal = (np.abs(given) >= limits.tiny) & ~tiny & ~np.isnan(nominal)
            assert np.array_equal(nominal[normal], other[normal])
            moved += int(tiny.sum())
            continue
        # Of a reciprocal whose operand is all ones it is the nearest one (approximation.hpp).
        ones = (one.bits(first, 0) & 0x7FFFFF == 0x7FFFFF) & ("rcp" in one.name) & (kind == "f32")
        usual &= (np.abs(nominal) != limits.max) & ~ones
        up = np.abs(other) >= np.abs(want) if nearby == 1 else np.abs(other) <= np.abs(want)
        spacing = np.spacing(nominal.astype(FLOATS[kind])).astype(np.float64)
        far = np.abs(other - want) < np.abs(spacing)
        assert (up & far | (other == nominal) & (nominal == want))[usual].all(), one.name
        moved += int((other != nominal)[usual].sum())
    assert moved


def scalar_instruction(name: str) -> Instruction:
    dst, src, _ = SCALAR[name]
    width = {"u64": 2, "i64": 2}
    sources = tuple(
        Operand("simm", value=0xFF85)
        if kind in ("i16", "u16")
        else Operand("s", 40 + 4 * at, width.get(kind, 1))
        for at, kind in enumerate(src.split())
    )
    to = (Operand("s", 60, width.get(dst, 1)),) if dst else ()
    return Instruction(0, 4, name, "SOP2", to, sources)


def scalar_wanted(name: str, before: Any) -> tuple[int, int]:
    """The destination and scc after a scalar instruction."""
    dst, src, function = SCALAR[name]

    def held(at: int, kind: str) -> int:
        bits = WIDTH.get(kind, 32)
        value = int(before["s"][at]) | (int(before["s"][at + 1]) << 32 if bits == 64 else 0)
        value = 0xFF85 if bits == 16 else value
        return value - (1 << bits) if kind[0] == "i" and value >> (bits - 1) else value

    more = {}
    asked = inspect.signature(function).parameters
    if "old" in asked:
        more["old"] = held(60, dst)
    if "scc" in asked:
        more["scc"] = int(before["scc"])
    value, scc = function(*(held(40 + 4 * at, kind) for at, kind in enumerate(src.split())), **more)
    bits = WIDTH.get(dst, 32)
    return value % 2**bits, int(before["scc"]) if scc is None else scc


def test_scalar_instructions_do_what_the_manual_says() -> None:
    names = sorted(SCALAR)
    made = program([scalar_instruction(name) for name in names])
    random = np.random.default_rng(7)
    before = np.zeros(len(names) * ROUNDS, STATE)
    before["case"] = np.repeat(np.arange(len(names)), ROUNDS)
    before["s"] = drawn(random, "u32", before["s"].size).reshape(before["s"].shape)
    floats = np.array(["f32" in SCALAR[name][1] for name in names])[before["case"]]
    before["s"][floats] = drawn(random, "f32", before["s"][floats].size).reshape(-1, 128)
    before["scc"] = random.integers(0, 2, len(before))
    after = run(made, before)
    told = []
    for first, last in zip(before, after, strict=True):
        name = names[first["case"]]
        value, scc = scalar_wanted(name, first)
        got = int(last["s"][60]) | int(last["s"][61]) << 32
        dst = SCALAR[name][0]
        bits = np.uint64(got % 2 ** WIDTH.get(dst, 32))
        if dst and not same(bits, np.uint64(value), dst):
            told.append(
                f"{name}: {got:#x}, want {value:#x} of {[hex(x) for x in first['s'][40:46]]}"
            )
        if int(last["scc"]) != scc:
            told.append(
                f"{name}: scc {int(last['scc'])}, want {scc} of {[hex(x) for x in first['s'][40:46]]}"
            )
    assert not told, "\n".join(told[:40])


def test_operands_are_read_as_they_are_written() -> None:
    """Constants, scalar registers, signs, halves, clamps and DPP of one addition."""
    v = register(4, "f32")
    half = Operand("v", 4, 1, 1)
    add, add16 = "v_add_f32", "v_add_f16"
    two = Operand("float", value=0x40000000)
    d, d16 = register(0, "f32"), Operand("v", 0, 1, 1)

    def vop(name: str, dst: Operand, *src: Operand, **modifiers: Any) -> Instruction:
        return Instruction(0, 8, name, "VOP3", (dst,), src, modifiers)

    import msgspec

    sign = msgspec.structs.replace
    row = np.random.default_rng(3).normal(0, 3, 32).astype(np.float32)
    # Lane 5 is not active: nothing is read from it by DPP.
    lanes = np.arange(32)
    halves = row.view(np.uint32) >> 16
    h = np.array([f16_bits(int(one)) for one in halves], np.float32)
    share = row[(lanes & 16) + 2]
    forms = [
        (vop(add, d, v, two), row + 2),
        (vop(add, d, Operand("s", 25), v), row + np.float32(1.5)),
        (vop(add, d, sign(v, neg=True), two), 2 - row),
        (vop(add, d, sign(v, neg=True, abs=True), two), 2 - np.abs(row)),
        (vop(add, d, v, two, clamp=True), np.clip(row + 2, 0, 1)),
        (vop(add, d, v, two, dpp_ctrl=0x152, row_mask=15, bank_mask=15), share + 2),
        (vop(add, d, v, two, dpp_ctrl=0x140, row_mask=15, bank_mask=15), row[lanes ^ 15] + 2),
        (vop(add, d, v, two, dpp_ctrl=0x1B, row_mask=15, bank_mask=15), row[lanes ^ 3] + 2),
        (vop(add, d, v, two, dpp8=(7, 6, 5, 4, 3, 2, 1, 0)), row[lanes ^ 7] + 2),
        (vop(add16, d16, half, half), h + h),
    ]
    made = program([one for one, _ in forms])
    before = np.zeros(len(forms), STATE)
    before["case"] = np.arange(len(forms))
    before["exec"] = 0xFFFFFFFF
    before["v"][:, 4] = row.view(np.uint32)
    before["s"][:, 25] = np.float32(1.5).view(np.uint32)
    after = run(made, before)
    for (one, want), last in zip(forms, after, strict=True):
        got, expected = last["v"][0].view(np.float32), want.astype(np.float32)
        if one.dst[0].half:
            numbers = ~np.isnan(want.astype(np.float16))
            got = (last["v"][0] >> 16)[numbers]
            expected = want.astype(np.float16).view(np.uint16)[numbers]
        assert np.array_equal(got, expected), one


def test_dpp_leaves_out_lanes_and_reads_zero_where_it_is_bound() -> None:
    src, to = register(4, "u32"), register(0, "u32")
    zero = Operand("int", value=0)

    def shifted(**modifiers: Any) -> Instruction:
        given = {"dpp_ctrl": 0x111, "row_mask": 15, "bank_mask": 15, **modifiers}
        return Instruction(0, 8, "v_or_b32", "VOP2", (to,), (src, zero), given)

    forms = [
        shifted(),
        shifted(bound_ctrl=True),
        shifted(row_mask=1),
        shifted(bank_mask=2),
        shifted(fi=True),
    ]
    before = np.zeros(len(forms), STATE)
    before["case"] = np.arange(len(forms))
    before["exec"] = 0xFFFFFFFF ^ 1 << 5
    before["v"][:, 4] = np.arange(100, 132)
    before["v"][:, 0] = 7
    after = run(program(forms), before)["v"][:, 0]
    lane = np.arange(32)
    moved = np.where(lane == 5, 7, lane + 99)
    edge = (lane & 15) == 0
    plain = np.where(edge | (lane == 6), 7, moved)
    assert np.array_equal(after[0], plain)
    assert np.array_equal(after[1], np.where(edge | (lane == 6), 0, moved))
    assert np.array_equal(after[2], np.where(lane < 16, plain, 7))
    assert np.array_equal(after[3], np.where(lane // 4 % 4 == 1, plain, 7))
    assert np.array_equal(after[4], np.where(edge, 7, moved))


VCC, ONE, ZERO = Operand("vcc"), Operand("float", value=0x3F800000), Operand("int", value=0)


def v(index: int, count: int = 1, **signs: bool) -> Operand:
    return Operand("v", index, count, None, **signs)


def step(name: str, dst: Any, *src: Operand) -> Instruction:
    dst = dst if isinstance(dst, tuple) else (dst,)
    return Instruction(0, 8, name, "VOP3", dst, src)


def division(kind: str) -> list[Instruction]:
    """The sequence that compilers emit for v[4] / v[6] into v[14]; pairs of registers in float64."""
    count = 2 if kind == "f64" else 1

    def r(index: int, **signs: bool) -> Operand:
        return v(index, count, **signs)

    a, b, one = r(4), r(6), ONE
    if kind == "f64":
        one = Operand("float", value=0x3FF0000000000000)
    fma, scale = f"v_fma_{kind}", f"v_div_scale_{kind}"
    return [
        step(scale, (r(0), Operand("null")), b, b, a),
        step(f"v_rcp_{kind}", r(2), r(0)),
        step(fma, r(8), r(0, neg=True), r(2), one),
        step(fma, r(2), r(8), r(2), r(2)),
        *(
            [step(fma, r(8), r(0, neg=True), r(2), one), step(fma, r(2), r(8), r(2), r(2))]
            if kind == "f64"
            else []
        ),
        step(scale, (r(10), VCC), a, b, a),
        step(f"v_mul_{kind}", r(12), r(10), r(2)),
        step(fma, r(8), r(0, neg=True), r(12), r(10)),
        *(
            [
                step(fma, r(12), r(8), r(2), r(12)),
                step(fma, r(8), r(0, neg=True), r(12), r(10)),
            ]
            if kind == "f32"
            else []
        ),
        step(f"v_div_fmas_{kind}", r(14), r(8), r(2), r(12)),
        step(f"v_div_fixup_{kind}", r(14), r(14), b, a),
    ]


@pytest.mark.parametrize("nearby", range(4), ids=["nominal", "up", "down", "flush"])
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_division_is_ieee_over_the_whole_range(kind: str, nearby: int) -> None:
    """With reciprocals off by what the manual allows, and flushed."""
    random = np.random.default_rng(11)
    rounds, bits = 3000, WIDTH.get(kind, 32)
    states = np.zeros(rounds, STATE)
    states["exec"] = 0xFFFFFFFF
    given = []
    for at in (4, 6):
        values = drawn(random, f"u{bits}", rounds * 32).reshape(rounds, 32)
        uniform = random.integers(0, 2**bits, (rounds, 32), np.uint64)
        values[::2] = uniform[::2]
        states["v"][:, at] = values & np.uint64(0xFFFFFFFF)
        if bits == 64:
            states["v"][:, at + 1] = values >> np.uint64(32)
        given.append(typed(values, kind))
    states = run(program([division(kind)]), states, nearby)
    got_bits = states["v"][:, 14].astype(np.uint64)
    if bits == 64:
        got_bits |= states["v"][:, 15].astype(np.uint64) << np.uint64(32)
    got = typed(got_bits, kind)
    x, y = given
    want = x / y
    good = (got.view(f"u{bits // 8}") == want.view(f"u{bits // 8}")) | (
        np.isnan(got) & np.isnan(want)
    )
    bad = np.argwhere(~good)[:8]
    told = [(x[tuple(i)], y[tuple(i)], got[tuple(i)], want[tuple(i)]) for i in bad]
    assert good.all(), (int((~good).sum()), told)


@pytest.mark.parametrize("nearby", range(4), ids=["nominal", "up", "down", "flush"])
def test_integers_are_divided_by_every_divisor_to_4096(nearby: int) -> None:
    """The sequence of LLVM's AMDGPUCodeGenPrepare::expandDivRem32, of v[4] by v[5]: v[9] and v[10]."""
    steps = [
        step("v_cvt_f32_u32", v(0), v(5)),
        step("v_rcp_iflag_f32", v(1), v(0)),
        step("v_mul_f32", v(1), Operand("literal", value=0x4F7FFFFE), v(1)),
        step("v_cvt_u32_f32", v(1), v(1)),
        step("v_sub_nc_u32", v(2), ZERO, v(5)),
        step("v_mul_lo_u32", v(2), v(2), v(1)),
        step("v_mul_hi_u32", v(2), v(1), v(2)),
        step("v_add_nc_u32", v(1), v(1), v(2)),
        step("v_mul_hi_u32", v(9), v(4), v(1)),
        step("v_mul_lo_u32", v(2), v(9), v(5)),
        step("v_sub_nc_u32", v(10), v(4), v(2)),
    ]
    for _ in range(2):
        steps += [
            step("v_add_nc_u32", v(6), Operand("int", value=1), v(9)),
            step("v_sub_nc_u32", v(7), v(10), v(5)),
            step("v_cmp_ge_u32", VCC, v(10), v(5)),
            step("v_cndmask_b32", v(9), v(9), v(6), VCC),
            step("v_cndmask_b32", v(10), v(10), v(7), VCC),
        ]
    random = np.random.default_rng(12)
    divisors = np.arange(1, 4097, dtype=np.uint32)
    states = np.zeros(len(divisors), STATE)
    states["exec"] = 0xFFFFFFFF
    numerators = random.integers(0, 2**32, (len(divisors), 32), np.uint32)
    # What is about a multiple goes wrong first.
    multiples = (numerators // divisors[:, None]) * divisors[:, None]
    numerators[:, ::2] = (multiples + random.integers(-1, 2, multiples.shape).astype(np.uint32))[
        :, ::2
    ]
    numerators[:, 1], numerators[:, 3] = 2**32 - 1, np.arange(len(divisors))
    states["v"][:, 4], states["v"][:, 5] = numerators, divisors[:, None]
    after = run(program([steps]), states, nearby)
    assert np.array_equal(after["v"][:, 9], numerators // divisors[:, None])
    assert np.array_equal(after["v"][:, 10], numerators % divisors[:, None])
