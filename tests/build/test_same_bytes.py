"""Artifacts are the same bytes in whatever folder their sources, their build and the cache lie."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from tests.runs import run
from tests.spec_example import example, write_example
from tests.support import slow
from tokitai_cli.core.linked_folders import LinkedFolders

# Paths of the source, of a header beside its folder and of one in a further folder, as values.
HEADERS = """#include "../near.h"
#include "op.h"
"""
NAMED = "static __device__ const char* const {name}_file = __FILE__;\n"
USES = "        c[i] = a[i] + b[i] + (__FILE__[0] + near_file[0] + far_file[0] == 0);\n"


def built(folder: Path, device: str, arch: str, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """Digest of the artifact and its text, of the example built in `folder` with an own cache."""
    monkeypatch.setenv("TOKITAI_CACHE", str(folder / "cache"))
    specs = folder / "some where" / "specs"
    kernel = example("vector_add.hip").replace("        c[i] = a[i] + b[i];\n", USES)
    (folder / "far").mkdir(parents=True)
    (folder / "far" / "op.h").write_text(NAMED.format(name="far"), encoding="utf-8")
    spec = example("spec.yaml").replace("source: ", "include: [../../far]\n    source: ", 1)
    path = write_example(specs, kernel=HEADERS + kernel, spec=spec)
    (specs.parent / "near.h").write_text(NAMED.format(name="near"), encoding="utf-8")
    old = time.time() - len(str(folder)) * 1000
    for file in (*specs.iterdir(), *specs.parent.glob("*.h"), *(folder / "far").iterdir()):
        os.utime(file, (old, old))
    evidence = run(path, folder / "out", device=device, arch=arch or None, build_only=True)
    (record,) = evidence.builds.values()
    assert not record.failed, record.failed
    (artifact,) = (folder / "cache").rglob("harness.cpp")
    return record.artifact_sha256, (artifact.parent / "child").read_bytes().decode("latin-1")


@pytest.mark.parametrize(
    ("device", "arch", "needs"),
    [
        ("cpu", "", "c++"),
        slow("gfx", "", "clang-19"),
        slow("cuda", "sm_90", "nvcc"),
        slow("rocm", "gfx1030", "hipcc"),
    ],
)
def test_artifacts_do_not_depend_on_folders(
    device: str, arch: str, needs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which(needs) is None:
        pytest.skip(f"{needs} is not installed")
    first, text = built(tmp_path / "a", device, arch, monkeypatch)
    again, _ = built(tmp_path / "another one" / "b", device, arch, monkeypatch)
    assert first == again
    assert str(tmp_path) not in text


def test_names_of_links_stand_for_folders() -> None:
    links = LinkedFolders({"tokitai-source": "/x/op", "tokitai-include-1": "/x/op/inc"})
    assert [
        links.word(word) for word in ("-I/x/op/inc", "/x/op/k.hip", "-L/x/op", "-I/x/opera")
    ] == [
        *("-Itokitai-include-1", "tokitai-source/k.hip", "-L/x/op", "-I/x/opera"),
    ]
    said = "./tokitai-source/k.hip:3: in /proc/self/cwd/tokitai-source/../y.h; my-tokitai-source/z"
    assert links.text(said) == "/x/op/k.hip:3: in /x/op/../y.h; my-tokitai-source/z"
