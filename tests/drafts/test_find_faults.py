"""What the tool cannot draft takes nothing else with it; words of a draft are those that YAML takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.runs import tokitai_here
from tokitai_cli import spec
from tokitai_cli.core.errors import SpecError
from tokitai_cli.cpp.whole import program_of
from tokitai_cli.drafts import draft as draft_module
from tokitai_cli.drafts import search, writer
from tokitai_cli.drafts.known_facts import DraftSubject
from tokitai_cli.drafts.model import SpecDraft
from tokitai_cli.drafts.trial.attempt import OnCpu

ADDS = """__global__ void NAME(const float* PARAMETER, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = PARAMETER[i] + 1.0f;
}
"""


def written(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.cu").write_text(text, "utf-8")
    return folder


def adds(name: str, parameter: str = "x") -> str:
    return ADDS.replace("NAME", name).replace("PARAMETER", parameter)


def listed(folder: Path) -> tuple[int, dict[str, Any]]:
    done = tokitai_here("find", folder, "--json")
    return done.returncode, json.loads(done.stdout)


def test_a_fault_in_one_kernel_leaves_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = writer.draft_of

    def failing(subject: DraftSubject) -> tuple[SpecDraft, str]:
        if subject.kernel.name == "second":
            raise AttributeError("it has none")
        return whole(subject)

    monkeypatch.setattr(draft_module, "draft_of", failing)
    text = adds("first") + adds("second") + adds("third")
    code, found = listed(written(tmp_path, one=text, two=adds("fourth")))
    rows = {one["name"]: one for one in found["kernels"]}
    assert code == 70
    assert [one for one, row in rows.items() if row["bindable"]] == ["first", "third", "fourth"]
    assert [one for one, row in rows.items() if row["fault"]] == ["second"]
    (reason,) = rows["second"]["reasons"]
    assert reason.startswith("a fault of tokitai, AttributeError: it has none, in drafts/draft.py:")
    log = Path(reason.rpartition("log: ")[2])
    assert "it has none" in log.read_text("utf-8")


def test_a_fault_in_one_file_leaves_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = program_of

    def failing(file: Path, *more: Any) -> Any:
        if file.name == "two.cu":
            raise RecursionError("too deep")
        return whole(file, *more)

    monkeypatch.setattr("tokitai_cli.drafts.search.program_of", failing)
    folder = written(tmp_path, one=adds("first"), two=adds("second"), three=adds("third"))
    code, found = listed(folder)
    assert (code, [one["name"] for one in found["kernels"]]) == (70, ["first", "third"])
    (unread,) = found["unread"]
    assert unread["file"].endswith("two.cu")
    assert unread["reason"].startswith("a fault of tokitai, RecursionError: too deep, in drafts/")
    told = tokitai_here("new", folder / "two.cu", "--out", tmp_path / "new")
    assert told.returncode == 70
    assert "a fault of tokitai, RecursionError" in told.stderr


def test_a_kernel_of_a_header_is_drafted_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, drafted = writer.draft_of, list[str]()

    def noting(subject: DraftSubject) -> tuple[SpecDraft, str]:
        drafted.append(subject.kernel.name)
        return whole(subject)

    monkeypatch.setattr(draft_module, "draft_of", noting)
    (tmp_path / "shared.cuh").write_text(adds("shared"))
    include = '#include "shared.cuh"\n'
    code, found = listed(
        written(tmp_path, one=include + adds("first"), two=include + adds("second"), three=include)
    )
    names = [one["name"] for one in found["kernels"]]
    assert (code, sorted(names)) == (0, ["first", "second", "shared"])
    assert drafted == names


SPELT = [
    *(adds(name) for name in ("null", "true_", "Null", "false_", "_3d_points", "lambda")),
    *(adds("scaled", name) for name in ("null", "no", "Null", "y1")),
    adds("k" * 150),
    adds("rows_" * 30 + "kernel"),
]


@pytest.mark.parametrize("text", SPELT, ids=range(len(SPELT)))
def test_words_of_a_draft_are_what_yaml_takes(tmp_path: Path, text: str) -> None:
    written(tmp_path, one=text)
    found = search.drafts_of(tmp_path / "one.cu", (), tmp_path / "at")
    assert isinstance(found, tuple)
    ((draft,), _) = found
    (tmp_path / "formula.py").write_text(draft.formula.replace("# fill in:", "#"), "utf-8")
    loaded = spec.load(tmp_path / "spec.yaml", draft.spec.replace("../one.cu", "one.cu").encode())
    compile(draft.formula, "formula.py", "exec")
    launch = loaded.spec.variants["main"].launches[0]
    parameter = text.partition("float* ")[2].partition(",")[0]
    assert launch.kernel == draft.kernel.name
    assert launch.args == [parameter, "y", "n"]
    assert len(loaded.spec.op) <= 64


def test_an_op_that_is_too_long_is_told_so(tmp_path: Path) -> None:
    text = (
        "schema: tokitai/spec/v1\nop: " + "a" * 65 + "\ntitle: t\nparams: {}\n"
        "variants: {}\nprofiles: {}\n"
    )
    with pytest.raises(SpecError, match="at most 64 characters"):
        spec.load(tmp_path / "spec.yaml", text.encode())


RUN = """namespace lib {
enum Mode { PLAIN, TWICE };
template <class T> struct Scale { T by; };
__global__ void scaled(const float* x, float* y, int n, Mode mode) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = mode == TWICE ? 2.0f * x[i] : x[i];
}
__global__ void scaled(const double* x, double* y, int n, Mode mode) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = mode == TWICE ? 2.0 * x[i] : x[i];
}
}
__global__ void passed_on(volatile const int* from, volatile int* to, int n);
__global__ void passed_on(volatile const int* from, volatile int* to, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = from[i] + 1;
}
__global__ void turned(const float* x, float* y, int n) {
  extern float __shared__ part[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  part[threadIdx.x] = i < n ? x[i] : 0.0f;
  __syncthreads();
  if (i < n) y[i] = part[threadIdx.x];
}
"""


def test_overloads_volatile_pointers_and_types_in_front_of_shared_run(tmp_path: Path) -> None:
    written(tmp_path, one=RUN)
    trial = tmp_path / "at"
    trial.mkdir()
    found = search.drafts_of(tmp_path / "one.cu", (), trial)
    assert isinstance(found, tuple)
    with OnCpu(trial, 10) as run:
        ended = {one.instance: run(one).why for one in found[0]}
    assert ended == dict.fromkeys(
        ["lib::scaled(const float*, float*, int, lib::Mode)",
         "lib::scaled(const double*, double*, int, lib::Mode)", "passed_on", "turned"], ""
    )  # fmt: skip


@pytest.mark.parametrize("verb", ["find", "new"])
def test_a_folder_of_headers_that_is_not_there_is_an_error(tmp_path: Path, verb: str) -> None:
    written(tmp_path, one=adds("first"))
    for folder, mend in {"none": "name an existing one", "one.cu": "name the folder"}.items():
        done = tokitai_here(verb, tmp_path / "one.cu", "-I", tmp_path / folder)
        assert done.returncode == 2
        assert f"-I {tmp_path / folder}: no such folder" in done.stderr.replace("\n", "")
        assert mend in done.stderr


def test_a_number_without_end_and_a_file_that_is_too_large_are_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "digits.cu").write_text(
        f"__global__ void k(float* x) {{ x[0] = {'1' * 100_000}; }}\n"
    )
    (tmp_path / "large.cu").write_text(
        "__global__ void k(float* x) { x[0] = 1; }\n" + "\n" * (17 << 20)
    )
    done = tokitai_here("find", tmp_path)
    assert "1 kernel found; a spec can be written for 1" in done.stdout
    assert "large.cu: is larger than 4 MiB" in done.stdout + done.stderr
