"""Buffer descriptors: what is in range, and what loads and stores past the end do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.devices.gfx.machine import MEMORY, STATE, program, run
from tokitai_cli.devices.amdgpu.isa.instruction import Instruction, Operand

TO, AT, DATA = 0, 4, 6
LANES = np.arange(32)
RAW, STRUCTURED, INDEXED, ANY = 3, 0, 1, 2
SENTINEL = 0x80000000


def buffer(
    name: str, *vaddr: Operand, data: int = 0, back: bool = False, **modifiers: Any
) -> Instruction:
    """A load into TO, or a store or an atomic operation of registers from DATA on."""
    words = (Operand("s", 20, 4), Operand("int", 128))
    at = vaddr or (Operand("null"),)
    to = (Operand("v", TO, int(name.rpartition("_b")[2]) // 32),) if "load" in name else ()
    to = (Operand("v", TO),) if back else to
    src = (*at, *words) if "load" in name else (Operand("v", DATA, data), *at, *words)
    return Instruction(0, 8, name, "MUBUF", to, src, modifiers)


def state(offsets: Any, records: int, select: int = RAW, stride: int = 0) -> Any:
    """Memory of double words that say their own number; v[4] and v[5] are index and offset."""
    made = np.zeros(1, STATE)
    made["exec"] = 0xFFFFFFFF
    made["v"] = 7
    made["v"][:, AT] = offsets
    made["v"][:, DATA : DATA + 2] = 1000 + LANES
    made["s"][:, 22], made["s"][:, 23] = records, select << 28
    made["s"][:, 40] = stride
    made["memory"].view("<u4")[:] = np.arange(MEMORY // 4)
    return made


def executed(one: Instruction, before: Any) -> Any:
    (after,) = run(program([one]), before)
    assert not after["found"]
    return after


def test_a_raw_load_past_the_end_is_zero_and_a_sentinel_is_silent() -> None:
    offsets = np.where(LANES < 20, 4 * LANES, SENTINEL)
    one = buffer("buffer_load_b32", Operand("v", AT), offen=True)
    got = executed(one, state(offsets, 64))["v"][TO]
    assert np.array_equal(got, np.where(LANES < 16, LANES, 0))


def test_double_words_are_in_range_each_for_itself() -> None:
    """Also where the load overwrites its own address."""
    one = buffer("buffer_load_b64", Operand("v", TO), offen=True)
    before = state(0, 66)
    before["v"][:, TO] = 4 * LANES
    after = executed(one, before)["v"]
    assert np.array_equal(after[TO], np.where(LANES < 16, LANES, 0))
    assert np.array_equal(after[TO + 1], np.where(LANES < 15, LANES + 1, 0))


def test_a_raw_store_past_the_end_does_nothing() -> None:
    one = buffer("buffer_store_b64", Operand("v", AT), data=2, offen=True)
    memory = executed(one, state(8 * LANES, 92))["memory"].view("<u4")
    want = np.arange(MEMORY // 4)
    want[:23] = 1000 + np.arange(23) // 2
    assert np.array_equal(memory, want)


def test_an_atomic_operation_is_in_range_as_a_whole() -> None:
    one = buffer("buffer_atomic_add_u64", Operand("v", AT), data=2, back=True, offen=True)
    before = state(8 * LANES, 60)
    before["v"][:, DATA + 1] = 0
    after = executed(one, before)
    want = np.arange(MEMORY // 4)
    want[0:14:2] += 1000 + np.arange(7)
    assert np.array_equal(after["memory"].view("<u4"), want)
    assert np.array_equal(after["v"][TO], np.where(LANES < 7, 2 * LANES, 0))


@pytest.mark.parametrize(
    ("select", "records", "inside"),
    [
        (STRUCTURED, 10, (LANES < 10) & (LANES % 2 == 0)),
        (INDEXED, 10, LANES < 10),
        (ANY, 1, LANES < 32),
        (ANY, 0, LANES < 0),
        (RAW, 100, 12 * LANES + np.where(LANES % 2, 12, 8) + 4 <= 100),
    ],
)
def test_records_are_counted_as_the_descriptor_says(select: int, records: int, inside: Any) -> None:
    """Records of 12 bytes; odd lanes read the double word behind their record."""
    one = buffer("buffer_load_b32", Operand("v", AT, 2), offen=True, idxen=True)
    before = state(LANES, records, select)
    before["v"][:, AT + 1] = np.where(LANES % 2, 12, 8)
    before["s"][:, 40] = 12
    # The upper half of the address is the harness's: the stride is put beside it.
    put = Instruction(
        0,
        4,
        "s_lshl_b32",
        "SOP2",
        (Operand("s", 41),),
        (Operand("s", 40), Operand("int", value=16)),
    )
    add = Instruction(
        0, 4, "s_or_b32", "SOP2", (Operand("s", 21),), (Operand("s", 21), Operand("s", 41))
    )
    (after,) = run(program([[put, add, one]]), before)
    want = 3 * LANES + np.where(LANES % 2, 3, 2)
    assert np.array_equal(after["v"][TO], np.where(inside, want, 0))


def test_the_bounds_of_memory_hold_within_a_descriptor() -> None:
    one = buffer("buffer_load_b32", Operand("v", AT), offen=True)
    (after,) = run(program([one]), state(np.where(LANES == 3, MEMORY, 0), 0x7FFFFFFE))
    assert after["found"] == 1


def test_swizzled_descriptors_end_the_wave() -> None:
    one = buffer("buffer_load_b32", Operand("v", AT), offen=True)
    (after,) = run(program([one]), state(0, 64))
    assert after["state"] == 0
    before = state(0, 64)
    before["s"][:, 23] |= 1 << 23
    (after,) = run(program([one]), before)
    assert after["state"] == 3


def test_scalars_past_the_end_are_zero() -> None:
    one = Instruction(
        0, 8, "s_buffer_load_b256", "SMEM", (Operand("s", 40, 8),),
        (Operand("s", 20, 4), Operand("null")), {"offset": 8},
    )  # fmt: skip
    after = executed(one, state(0, 24))
    assert after["s"][40:48].tolist() == [2, 3, 4, 5, 0, 0, 0, 0]
