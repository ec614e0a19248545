"""Code objects and the files that carry them: what is read, and what is refused."""

from __future__ import annotations

import json
import random
import struct
import zlib
from pathlib import Path

import msgspec
import pytest

from tests.gfx_samples import bundle, code_object, compressed
from tests.runs import tokitai_here
from tests.support import slow
from tokitai_cli.cli.app import run as command
from tokitai_cli.core.errors import CodeError
from tokitai_cli.devices.amdgpu import inspection
from tokitai_cli.devices.amdgpu.binary import objects
from tokitai_cli.devices.amdgpu.binary.bundles import code_objects
from tokitai_cli.devices.amdgpu.isa import facts, reach
from tokitai_cli.devices.amdgpu.isa.instruction import Instruction
from tokitai_cli.devices.amdgpu.lacks import Lacks


def kernel_of(name: str) -> objects.Kernel:
    code = objects.read_code_object(code_object())
    return objects.kernel_of([(code, one) for one in code.kernels], name)[1]


def test_a_kernels_facts_come_from_descriptor_metadata_and_code() -> None:
    read = objects.read_code_object(code_object())
    assert read.arch == "gfx1101"
    kernel = kernel_of("scale<float>")
    assert kernel.demangled == "void scale<float>(float*, float const*, float, int)"
    assert (kernel.descriptor.lds, kernel.descriptor.wave, kernel.descriptor.scratch) == (
        256,
        32,
        0,
    )
    assert kernel.descriptor.mode()["denorm_32"] == 3
    assert [(one.offset, one.size) for one in kernel.args if not one.hidden] == [
        (0, 8),
        (8, 8),
        (16, 4),
        (20, 4),
    ]
    code = facts.instructions(read, kernel)
    told = {one.name: one.value for one in inspection.inventory(read, kernel)}
    assert told["shared bytes"] == "256"
    assert told["rounded once (contracted)"] != "none"
    assert told["instructions"].startswith(f"{len(code)}: memory ")
    assert "unknown" not in told["instructions"]
    assert told["mode switches that are on"] == "dx10 clamp, ieee, wgp mode"
    assert sum(one.size for one in code) == len(kernel.code)
    lines = objects.lines(code_object())
    assert {Path(file).name for file, _ in lines.values()} >= {"sample.hip"}
    assert any(one.address in lines for one in code)


def test_hidden_arguments_are_told_apart() -> None:
    kernel = kernel_of("plain")
    assert [one.value_kind for one in kernel.args if not one.hidden] == ["global_buffer"]
    assert any(one.value_kind == "hidden_block_count_x" for one in kernel.args)


def test_a_kernel_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(CodeError, match=r"no kernel is called `gone`.*scale"):
        kernel_of("gone")


@pytest.mark.parametrize(
    "name",
    [
        *(
            "_Z5scaleIfEvPT_PKS0_S0_i",
            "scale",
            "scale<float>",
            "scale < float >",
            "void scale<float>",
        ),
        *(
            "scale<float>(float*, float const*, float, int)",
            "scale<float>(float*,float const*,float,int)",
        ),
        "void scale<float>(float*, float const*, float, int)",
    ],
)
def test_a_kernel_is_found_by_symbol_and_by_what_a_demangler_makes_of_it(name: str) -> None:
    assert kernel_of(name).title == "scale<float>"


@pytest.mark.parametrize(
    ("symbol", "title", "types"),
    [
        ("plain", "plain", ()),
        ("_ZN12_GLOBAL__N_11kIfEEvPT_", "(anonymous namespace)::k<float>", ("float*",)),
        ("_ZN1a1kILi3ELb1EEEvPKfm", "a::k<3, true>", ("float const*", "unsigned long")),
        ("_Z1kIL3Num1EEvPi", "k<(Num)1>", ("int*",)),
        ("_Z1kv", "k", ()),
    ],
)
def test_the_parts_of_a_demangled_name(symbol: str, title: str, types: tuple[str, ...]) -> None:
    kernel = msgspec.structs.replace(kernel_of("plain"), name=symbol)
    assert (kernel.title, kernel.types) == (title, types)


def carried() -> dict[str, bytes]:
    zstandard = pytest.importorskip("zstandard")
    code = code_object()
    plain = bundle({"gfx1101": code, "gfx90a:xnack-": b"\x7fELF" + bytes(60)})
    packed = zstandard.ZstdCompressor().compress(plain)
    return {
        "code.hsaco": code,
        "plain.bundle": plain,
        "two.bundle": compressed(plain, 2, packed),
        "three.bundle": compressed(plain, 3, packed) + bytes(100),
        "zlib.bundle": compressed(plain, 2, zlib.compress(plain), method=0),
    }


@pytest.mark.parametrize(
    "name", ["code.hsaco", "plain.bundle", "two.bundle", "three.bundle", "zlib.bundle"]
)
def test_every_form_gives_the_same_code_object(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(carried()[name])
    found = code_objects(tmp_path / name)
    assert [one.data for one in found if one.target == "gfx1101"] == [code_object()]
    if name != "code.hsaco":
        assert [one.target for one in found] == ["gfx1101", "gfx90a:xnack-"]
        assert [one.arch for one in found] == ["gfx1101", "gfx90a"]


def test_files_without_code_are_refused_with_their_name(tmp_path: Path) -> None:
    for text in (
        b"",
        b"hello",
        b"CCOB",
        b"CCOB" + bytes(40),
        b"__CLANG_OFFLOAD_BUNDLE__",
        b"\x7fELF",
    ):
        file = tmp_path / "odd"
        file.write_bytes(text)
        with pytest.raises(CodeError, match="odd"):
            code_objects(file)
    with pytest.raises(CodeError, match="cannot be read"):
        code_objects(tmp_path)


@pytest.mark.parametrize("name", ["code.hsaco", "plain.bundle", "two.bundle", "three.bundle"])
def test_damaged_files_are_errors_and_never_tracebacks(name: str, tmp_path: Path) -> None:
    rng = random.Random(name)
    whole = carried()[name]
    for _ in range(150):
        data = bytearray(whole[: rng.randrange(len(whole))] if rng.random() < 0.3 else whole)
        for _ in range(rng.randrange(1, 9)):
            near = rng.choice([64, 400, 2000, len(data)])
            if data:
                data[rng.randrange(min(near, len(data)))] = rng.choice([0, 255, rng.getrandbits(8)])
        file = tmp_path / "damaged"
        file.write_bytes(data)
        try:
            for one in code_objects(file):
                read = objects.read_code_object(one.data)
                list(inspection.evidence(read, read.kernels))
                objects.lines(one.data)
        except CodeError:
            pass


@pytest.mark.parametrize(
    ("op", "name", "kernels", "place", "instruction"),
    [
        ("scan", "row_scan<float, true>", 2, "reduce.hip:", "v_add_f32"),
        slow("softmax", "softmax_fwd_fp16_f32_kernel", 4, "softmax.hip:", "v_exp_f32"),
    ],
)
def test_isa_lists_an_ops_kernels_and_one_with_its_source_lines(
    op: str, name: str, kernels: int, place: str, instruction: str
) -> None:
    code_object()  # or there is no compiler
    shown = tokitai_here("isa", op)
    assert shown.returncode == 0
    assert name in shown.stdout
    told = f"kernels that the gfx device can execute: {kernels} of {kernels} (100.0%)"
    assert told in shown.stdout
    shown = tokitai_here("isa", op, "--kernel", name, "--arch", "gfx1100", "--json")
    (found,) = json.loads(shown.stdout)
    (kernel,) = found["kernels"]
    assert found["arch"] == "gfx1100"
    assert {"name": "wave size", "value": "32", "source": facts.METADATA} in kernel["facts"]
    assert any(place in line for line in kernel["listing"])
    assert any(instruction in line for line in kernel["listing"])


def test_isa_refuses_other_files_and_processors_by_name(tmp_path: Path) -> None:
    file = tmp_path / "code.hsaco"
    file.write_bytes(code_object())
    for words, told in (
        ([file, "--arch", "gfx1100"], "no code object for gfx1100"),
        ([file, "--kernel", "gone"], "no kernel is called `gone`"),
        ([tmp_path / "none.so"], "cannot be read"),
        (["softmax", "--arch", "gfx1200"], "gfx1200"),
    ):
        shown = tokitai_here("isa", *words)
        assert shown.returncode in {2, 3}
        assert told in shown.stderr
        assert "Traceback" not in shown.stderr


COMPILED = Path(__file__).parents[2] / "kernels" / "triton" / "add" / "add.hsaco"


def test_kernels_of_all_objects_that_were_linked_are_listed() -> None:
    """A linker keeps the metadata of each as a note of its own."""
    source = "#include <hip/hip_runtime.h>\n__global__ void other(int* out) { *out = 1; }\n"
    other = code_object("gfx1101", source)
    held = [one.name for one in objects.read_code_object(other).kernels]
    assert held == [
        *(one.name for one in objects.read_code_object(code_object()).kernels),
        "_Z5otherPi",
    ]


def test_a_symbol_without_a_size_goes_to_the_next_one() -> None:
    data = bytearray(COMPILED.read_bytes())
    (kernel,) = objects.read_code_object(bytes(data)).kernels
    entry = struct.pack("<QQ", kernel.address, len(kernel.code))  # value and size
    at = data.index(entry)
    data[at + 8 : at + 16] = bytes(8)
    (found,) = objects.read_code_object(bytes(data)).kernels
    assert found.code[: len(kernel.code)] == kernel.code
    assert len(kernel.code) <= len(found.code) < len(kernel.code) + 4096


def test_isa_promises_what_verify_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A float mode that is not executed is told of one kernel, too."""
    data = bytearray(COMPILED.read_bytes())
    code = objects.read_code_object(bytes(data))
    at = data.index(code.read(code.symbols["add.kd"][0], 64)) + 48
    (word,) = struct.unpack_from("<I", data, at)
    struct.pack_into("<I", data, at, word | 1 << 12)
    changed = tmp_path / "add.hsaco"
    changed.write_bytes(data)
    assert command(["isa", str(COMPILED)]) == 0
    told = capsys.readouterr().out
    assert "1 of 1 (100.0%)" in told
    assert "cannot be executed" not in told
    assert command(["isa", str(changed)]) == 0
    told = capsys.readouterr().out
    assert "0 of 1 (0.0%)" in told
    assert "cannot be executed: v_add_f32 rounded up" in " ".join(told.split())
    assert "rounds up" in told


def test_functions_are_decoded_once_however_many_kernels_reach_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code = objects.read_code_object(COMPILED.read_bytes())
    (kernel,) = code.kernels
    counted: list[int] = []
    plain = reach.Code.at

    def at(self: reach.Code, address: int) -> Instruction | None:
        counted.append(address)
        return plain(self, address)

    monkeypatch.setattr(reach.Code, "at", at)
    looked = Lacks(code)
    assert looked.of(kernel) == looked.of(kernel) == ()
    assert len(counted) == len(set(counted)) > 20
