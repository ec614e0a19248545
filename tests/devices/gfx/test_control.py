"""Instructions that steer a wave or have no effect, and that no entry of the table goes untested."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest

from tests.devices.gfx import machine, test_memory
from tests.devices.gfx.gfx9_reference import NEWER, OLDER, PICKING
from tests.devices.gfx.machine import program, run, state_of
from tests.devices.gfx.reference import REFERENCE
from tests.devices.gfx.scalar_reference import SCALAR
from tests.devices.gfx.test_semantics import DIVISION
from tokitai_cli.devices.amdgpu.isa.instruction import Instruction, Operand
from tokitai_cli.devices.amdgpu.translate import table

WORD = 0xFFFFFFFF
SAVED: dict[str, Callable[[int, int], int]] = {
    "and": lambda a, e: a & e,
    "or": lambda a, e: a | e,
    "xor": lambda a, e: a ^ e,
    "nand": lambda a, e: ~(a & e),
    "nor": lambda a, e: ~(a | e),
    "xnor": lambda a, e: ~(a ^ e),
    "and_not0": lambda a, e: ~a & e,
    "or_not0": lambda a, e: ~a | e,
    "and_not1": lambda a, e: a & ~e,
    "or_not1": lambda a, e: a | ~e,
}


def vcc_of(state: Any) -> int:
    """VCC, which is two words in a wave of 64 lanes."""
    low, high = int(state["s"][106]), int(state["s"][107])
    return low | high << 32 if state["exec"].dtype.itemsize == 8 else low


# Whether a branch is taken, of a state.
TAKEN: dict[str, Callable[[Any], bool]] = {
    "s_branch": lambda state: True,
    "s_cbranch_scc0": lambda state: state["scc"] == 0,
    "s_cbranch_scc1": lambda state: state["scc"] == 1,
    "s_cbranch_vccz": lambda state: vcc_of(state) == 0,
    "s_cbranch_vccnz": lambda state: vcc_of(state) != 0,
    "s_cbranch_execz": lambda state: state["exec"] == 0,
    "s_cbranch_execnz": lambda state: state["exec"] != 0,
}
# Where the wave stands afterwards: ready, at a barrier, ended, stopped.
STATES = {"barrier": 1, "end": 2, "trap": 3}
HERE, TARGET = 0x100, 0x180


def of_kind(*kinds: str) -> list[str]:
    return sorted(name for name, entry in table().items() if entry.kind in kinds)


def states(count: int, rounds: int = 6, lanes: int = 32) -> Any:
    random = np.random.default_rng(9)
    made = np.zeros(count * rounds, state_of(lanes))
    made["case"] = np.repeat(np.arange(count), rounds)
    for part in ("v", "s", "memory"):
        made[part] = random.integers(0, 256 if part == "memory" else 2**32, made[part].shape)
    made["exec"] = random.integers(0, 2**lanes, len(made), np.uint64)
    made["exec"][::rounds], made["s"][1::rounds, 106 : 106 + lanes // 32] = 0, 0
    made["scc"] = random.integers(0, 2, len(made))
    return made


def one(name: str, *src: Operand, dst: Operand | None = None, **modifiers: Any) -> Instruction:
    return Instruction(HERE, 4, name, "SOPP", (dst,) if dst else (), src, modifiers)


def unchanged(first: Any, last: Any, *but: str) -> bool:
    """Whether all else of a state is; `s[20:21]` lead to the memory."""
    kept = [at for at in range(128) if at not in (20, 21)]
    return all(
        np.array_equal(*(each[part][kept] if part == "s" else each[part] for each in (first, last)))
        for part in machine.HELD
        if part not in but
    )


@pytest.mark.parametrize("lanes", [32, 64])
def test_masks_are_saved_and_made(lanes: int) -> None:
    names = [name for name in of_kind("saveexec", "wrexec") if name.endswith(f"_b{lanes}")]
    assert len(names) == len(SAVED) + 2
    a, d = Operand("s", 40, lanes // 32), Operand("s", 50, lanes // 32)
    before = states(len(names), lanes=lanes)
    family = "gfx11" if lanes == 32 else "gfx9"
    code = [msgspec.structs.replace(one(name, a, dst=d), family=family) for name in names]
    after = run(program(code, lanes=lanes), before)
    for first, last in zip(before, after, strict=True):
        name = names[first["case"]]
        function = SAVED[name.removeprefix("s_").rpartition("_")[0].rpartition("_")[0]]
        old, given = int(first["exec"]), scalar_of(first, 40, lanes)
        made = function(given, old) & (1 << lanes) - 1
        assert int(last["exec"]) == made, name
        assert scalar_of(last, 50, lanes) == (made if "wrexec" in name else old), name
        assert int(last["scc"]) == (made != 0), name
        assert unchanged(first, last, "exec", "s", "scc"), name


def scalar_of(state: Any, index: int, bits: int) -> int:
    """The value of scalar registers."""
    return sum(int(state["s"][index + at]) << 32 * at for at in range(bits // 32))


@pytest.mark.parametrize("lanes", [32, 64])
def test_branches_are_taken_where_they_must(lanes: int) -> None:
    names = of_kind("branch")
    assert set(names) == set(TAKEN)
    before = states(len(names), lanes=lanes)
    before["s"][2::6, 106] = 0  # of two words with waves of 64
    after = run(program([one(name, target=TARGET) for name in names], lanes=lanes), before)
    for first, last in zip(before, after, strict=True):
        name = names[first["case"]]
        assert bool(last["taken"]) == TAKEN[name](first), name
        assert unchanged(first, last, "taken"), name


def test_waves_stop_and_go_on_elsewhere() -> None:
    names = of_kind(*STATES)
    jumps = of_kind("jump", "call", "getpc")
    code = [one(name) for name in names]
    for name in jumps:
        operands = () if name.startswith("s_getpc") else (Operand("s", 40, 2),)
        code.append(one(name, *operands, dst=Operand("s", 50, 2)))
    before = states(len(code))
    before["s"][:, 40], before["s"][:, 41] = TARGET, 0
    after = run(program(code), before)
    for first, last in zip(before, after, strict=True):
        name = code[first["case"]].name
        state, back = (
            STATES.get(table()[name].kind, 0),
            int(last["s"][50]) | int(last["s"][51]) << 32,
        )
        assert int(last["state"]) == state, name
        if name in jumps:
            assert int(last["pc"]) == (0 if "getpc" in name else TARGET), name
            assert "setpc" in name or back == HERE + 4, name
        assert unchanged(first, last, "state", "pc", "s"), name


def test_waits_hints_and_modes_change_nothing() -> None:
    """What a mode changes, other instructions do (test_modes.py)."""
    names = [*of_kind("none", "fence", "sendmsg"), "s_round_mode", "s_denorm_mode"]
    before = states(len(names), 1)
    after = run(program([one(name, simm16=3) for name in names]), before)
    for first, last in zip(before, after, strict=True):
        assert unchanged(first, last), names[first["case"]]


def test_a_message_to_the_host_ends_the_wave() -> None:
    (after,) = run(program([one("s_sendmsg", simm16=1)]), states(1, 1))
    assert after["state"] == STATES["trap"]


def test_scalars_are_loaded() -> None:
    names = [name for name in of_kind("smem") if "buffer" not in name]
    code = [
        one(name, Operand("s", 20, 2), Operand("null"), dst=Operand("s", 40), offset=16)
        for name in names
    ]
    before = states(len(names))
    for first, last in zip(before, run(program(code), before), strict=True):
        count = int(names[first["case"]].removeprefix("s_load_b")) // 32
        assert np.array_equal(
            last["s"][40 : 40 + count], first["memory"].view("<u4")[4 : 4 + count]
        )
        kept = [*range(20), *range(22, 40), *range(40 + count, 128)]
        assert np.array_equal(last["s"][kept], first["s"][kept])


@pytest.mark.parametrize("name", ["v_swap_b32", "v_movreld_b32"])
def test_registers_are_exchanged_and_found_by_number(name: str) -> None:
    a, b = Operand("v", 4), Operand("v", 6)
    before = states(1)
    before["s"][:, 125] = 3
    after = run(program([one(name, b, dst=a)]), before)
    for first, last in zip(before, after, strict=True):
        active = first["exec"] >> np.arange(32, dtype=np.uint32) & 1 == 1
        want = first["v"].copy()
        if name == "v_swap_b32":
            want[4], want[6] = (
                np.where(active, first["v"][6], first["v"][4]),
                np.where(active, first["v"][4], first["v"][6]),
            )
        else:
            want[7] = np.where(active, first["v"][6], first["v"][7])
        assert np.array_equal(last["v"], want)


def test_every_entry_of_the_table_is_executed() -> None:
    """Each is visited by a test of its kind, against an evaluation beside it."""
    visited = {
        *REFERENCE,
        *OLDER,
        *NEWER,
        PICKING,
        *SCALAR,
        *DIVISION,
        *TAKEN,
        *of_kind(*test_memory.KINDS),
    }
    visited |= {*test_memory.CROSSING, "v_swap_b32", "v_movreld_b32"}
    visited |= {*of_kind("saveexec", "wrexec", "smem", *STATES, "jump", "call", "getpc")}
    visited |= {*of_kind("none", "fence", "sendmsg", "mode", "wmma", "mfma", "index")}
    visited |= {*of_kind("swaprows", "loadtransposed", "loadlds")}
    assert visited == set(table())
    assert len(visited) > 800
