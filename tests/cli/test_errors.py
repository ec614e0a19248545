"""What a person can do wrong on the command line: one clear message, the right exit code."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests import evidence_samples as samples
from tests.runs import evidence_in, tokitai
from tests.spec_example import example, write_example
from tokitai_cli import batch, judge, verify
from tokitai_cli.batch.work.serve import CaseServer
from tokitai_cli.cli import app, main, terminal
from tokitai_cli.core.errors import Location, SpecError
from tokitai_cli.core.model.case import Case
from tokitai_cli.core.model.events import CaseFinished
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.evidence import assemble, read
from tokitai_cli.oracles import references
from tokitai_cli.run import inventory
from tokitai_cli.run.run_files import write_files
from tokitai_cli.run.run_options import run_options
from tokitai_cli.run.specs import load_op

SPEC = example("spec.yaml")
TOOL = [sys.executable, "-m", "tokitai_cli"]
EXPECT = references.expect


@dataclasses.dataclass
class Done:
    """How a command line ended."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return self.out + self.err


Run = Callable[..., Done]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run a command line in this process, in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str | Path) -> Done:
        code = app.run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.out + captured.err
        return Done(code, captured.out, captured.err)

    return command


@pytest.mark.parametrize(
    ("words", "message", "mend"),
    [
        ("verify gemm-bw --m 17", "--m 17: grad-a requires m % 16 == 0", "nearest m: 16 or 32"),
        ("verify gemm-bw --m 0", "--m 0: below the min 1 of m", "the smallest is 1"),
        ("verify gemm-bw --m -16", "--m -16: below the min 1", "the smallest is 1"),
        ("verify gemm-bw --m 1e3", "--m 1e3: `1e3` is not an integer", "64:1024:64"),
        ("verify gemm-bw --m 64.0", "`64.0` is not an integer", "write 64"),
        ("verify gemm-bw --m 99999999999999999999", "2^63 or more", "a smaller value"),
        ("verify gemm-bw --m 64:16", "stop 16 is below start 64", "start:stop:step"),
        ("verify gemm-bw --m", "option '--m' requires an argument", "--help"),
        ("verify gemm-bv --m 64", "unknown op `gemm-bv`", "did you mean gemm-bw or gemm?"),
        ("verify gemm-bw --variant grad-c", "--variant grad-c: unknown variant", "grad-a"),
        ("verify gemm-bw --profile norml", "--profile norml: unknown profile", "normal"),
        ("verify gemm-bw --suite quik", "--suite quik: unknown suite", "did you mean quick?"),
        ("verify gemm-bw --suite quick --m 64", "already gives the shapes of --m", "one of the two"),
        ("verify gemm-bw --device cup", "unknown device: 'cup'", "did you mean cpu"),
        ("verify gemm-bw --device gpu", "unknown device: 'gpu'", "did you mean cuda or rocm?"),
        ("verify gemm-bw --device AMD", "unknown device: 'AMD'", "did you mean rocm?"),
        ("verify gemm-bw --profile gaussian", "unknown profile", "did you mean normal?"),
        ("verify gemm-bw --format mdd", "--format mdd: unknown", "did you mean md?"),
        ("verify gemm-bw --devise cpu", "no such option: --devise", "did you mean --device?"),
        ("verify --m 64", "no such option: --m", "tokitai verify OP"),
        ("verify", "missing argument 'OP'", "tokitai verify --help"),
        ("verify gemm-bw more", "unexpected extra argument(s) (more)", "--help"),
        ("verify gemm-bw --repeat 1", "--repeat': 1 is not in the range", "--help"),
        ("verify gemm-bw --m=", "--m : a value is missing", "64:1024:64"),
        ("verify gemm-bw --variant=", "--variant: an empty value", "omit the option"),
        ("verify gemm-bw --profile ,", "--profile: an empty value", "omit the option"),
        ("verify gemm-bw --profile normal,", "--profile: an empty value", "write --profile NAME"),
        ("verify gemm-bw --suite=", "--suite: an empty value", "omit the option"),
        ("verify --all --suite=", "--suite: an empty value", "omit the option"),
        ("verify gemm-bw --seed=", "--seed : a value is missing", "write 64"),
        ("verify gemm-bw --format=", "--format: an empty value", "omit the option"),
        ("verify gemm-bw --arch=", "--arch: an empty value", "omit the option"),
        ("verify gemm-bw --name=", "--name: an empty value", "omit the option"),
        ("verify gemm-bw --device=", "--device: an empty value", "omit the option"),
        ("sanitize gemm-bw --suite=", "--suite: an empty value", "omit the option"),
        ("sanitize gemm-bw --name=", "--name: an empty value", "omit the option"),
        ("batch . --op=", "--op: an empty value", "omit the option"),
        ("batch . --suite ,", "--suite: an empty value", "omit the option"),
        ("batch . --keyword=", "--keyword: an empty value", "omit the option"),
        ("batch . --shard=", "--shard: an empty value", "omit the option"),
        ("batch . --cluster=", "--cluster: an empty value", "omit the option"),
        ("batch . --out=", "--out: an empty value", "write --out DIR"),
        ("batch . -j 5000", "--jobs'", "--help"),
        ("batch . --cluster x --device auto", "--cluster: --device auto", "name a device"),
        ("batch . --tls-ca x", "--tls-ca needs --scheduler or --cluster", ""),
        ("merge a --format=", "--format: an empty value", "omit the option"),
        ("verify gemm-bw --timeout nan", "--timeout nan: seconds, more than 0", ""),
        ("verify gemm-bw --timeout inf", "--timeout inf: seconds, more than 0", ""),
        ("verify gemm-bw --seed -1", "--seed -1: at least 0", ""),
        ("verify gemm-bw --warp-size 16", "--warp-size 16: not 32 or 64", ""),
        ("verify gemm-bw --name ../x", "--name ../x: must be a plain file name", ""),
        (f"verify gemm-bw --name {'n' * 250}", "--name: longer than 200 bytes", "shorter"),
        ("verify gemm-bw --out=", "--out: an empty value", "write --out DIR"),
        ("verfy gemm-bw", "no such command 'verfy'. Did you mean 'verify'?", "--help"),
        ("show gemm-bv", "unknown op `gemm-bv`", "did you mean gemm-bw or gemm?"),
        ("schema spce", "unknown schema 'spce'", "did you mean spec?"),
        ("report nothere.json", "nothere.json: cannot be read: No such file", "that a run wrote"),
    ],
)  # fmt: skip
def test_usage_errors_are_one_line_and_a_mend(
    words: str, message: str, mend: str, run: Run
) -> None:
    done = run(*words.split())
    assert done.code == 2
    assert not done.out
    first, *rest = done.err.splitlines()
    assert first.startswith("error: ")
    assert message in first
    assert len(rest) == (1 if mend else 0)
    assert mend in "".join(rest)
    assert not Path("reports").exists()


@pytest.mark.parametrize("verb", ["verify", "sanitize"])
def test_help_of_an_op_is_the_same_in_every_order(verb: str, run: Run) -> None:
    shown = {
        run(verb, *words.split()).out
        for words in (
            "-h gemm-bw",
            "--help gemm-bw",
            "gemm-bw -h",
            "gemm-bw --help",
            "-q gemm-bw -h",
        )
    }
    assert len(shown) == 1
    assert "--m N[,N...]" in shown.pop()


def test_without_arguments_the_help_is_shown_and_nothing_is_done(run: Run) -> None:
    done = run()
    assert done.code == 2
    assert not done.out
    assert "Usage: tokitai" in done.err
    assert "verify" in done.err


@pytest.mark.parametrize("size", [16 * 10**9, 16 * 10**14, 2**63 - 16])
def test_a_huge_shape_says_what_it_would_need(size: int, run: Run) -> None:
    done = run("verify", "gemm-bw", "--m", str(size), "--profile", "normal", "--device", "cpu")
    assert done.code == 8
    assert "the case needs about" in done.out
    assert "TiB of memory" in done.out
    assert evidence_in(Path("reports"))["verdict"] == "not-run"


def test_a_grid_that_no_launch_can_have_is_not_run(tmp_path: Path, run: Run) -> None:
    text = SPEC.replace('"ceil_div(n, 256)"', "n * 4294967296")
    done = run("verify", write_example(tmp_path, spec=text), "--n", "1", "--device", "cpu")
    assert done.code == 8
    assert "has 4294967296 blocks along x, and a grid has at most 2147483647" in done.out


def test_values_of_a_repeated_option_all_count(run: Run) -> None:
    done = run(
        *("verify", "gemm-bw", "--m", "16", "--m", "32,48", "--seed", "1", "--seed", "2"),
        *("--variant", "grad-a", "--profile", "normal", "--device", "cpu", "-q"),
    )
    assert done.code == 0
    cases = evidence_in(Path("reports"))["cases"]
    found = {(case["shape"]["m"], case["seed"]) for case in cases}
    assert found == {(m, seed) for m in (16, 32, 48) for seed in (1, 2)}


def test_a_device_that_is_not_there_is_told_once(run: Run) -> None:
    done = run("verify", "gemm-bw", "--device", "rocm")
    assert done.code == 3
    assert done.text.count("ROCm/HIP is unavailable") == 1
    assert len(done.text.splitlines()) < 10
    assert "no device: nothing can run" in done.err


# --- specs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("", "", "the spec file is empty"),
        ("# nothing\n", "", "the spec file is empty"),
        ("a: [1\n", ":2:1", "not YAML"),
        ("just text\n", ":1:1", ""),
        (SPEC.replace("spec/v1", "spec/v2"), ":1:9", "newer schema than this tool's"),
        (SPEC.replace("spec/v1", "spec/v1x"), ":1:9", "schema"),
        (SPEC + "colour: red\n", ":", "colour"),
        ("x" * 10_000_000, "", "larger than 1 MiB"),
    ],
    ids=["empty", "comment", "yaml", "text", "newer", "foreign", "key", "large"],
)
def test_a_spec_that_cannot_be_read(text: str, place: str, message: str, run: Run) -> None:
    Path("s.yaml").write_text(text, encoding="utf-8")
    done = run("verify", "s.yaml", "--n", "5")
    assert done.code == 2
    assert done.err.startswith(f"error: s.yaml{place}")
    assert message in done.err
    assert len(done.err.splitlines()) <= 2


def test_a_folder_and_a_missing_file_are_no_spec(run: Run) -> None:
    Path("d.yaml").mkdir()
    assert "this is a folder, not a spec file" in run("verify", "d.yaml").err
    assert "no such spec file" in run("verify", "./none.yaml").err


@pytest.mark.parametrize("value", [".nan", ".inf", "-1", "true", "small", '"1e-3"'])
def test_a_limit_must_be_a_finite_number(value: str, tmp_path: Path, run: Run) -> None:
    text = SPEC.replace("{metric: ulp, limit: 1}", f"{{metric: abs, limit: {value}}}")
    done = run("verify", write_example(tmp_path, spec=text))
    assert done.code == 2
    assert "variants.main.checks[1].limit" in done.err
    line = text.splitlines().index(f"      - {{metric: abs, limit: {value}}}") + 1
    assert f"spec.yaml:{line}:" in done.err


def test_a_schema_comment_for_editors_is_harmless(tmp_path: Path, run: Run) -> None:
    comment = "# yaml-language-server: $schema=spec.schema.json\n"
    path = write_example(tmp_path, spec=comment + SPEC)
    assert run("show", path).code == 0
    schema = json.loads(run("schema", "spec").out)
    assert schema["$schema"].startswith("https://json-schema.org/")


# --- kernels -------------------------------------------------------------------------------------


def test_a_kernel_file_that_is_not_there(tmp_path: Path, run: Run) -> None:
    path = write_example(tmp_path)
    (tmp_path / "vector_add.hip").unlink()
    done = run("verify", path)
    assert done.code == 2
    assert "variants.main.source" in done.err
    assert "vector_add.hip" in done.err


def test_a_kernel_that_does_not_compile_shows_the_first_error_and_the_log(
    tmp_path: Path, run: Run
) -> None:
    kernel = example("vector_add.hip").replace("a[i] + b[i]", "a[i] + missing[i]")
    path = write_example(tmp_path, kernel=kernel)
    done = run("verify", path, "--device", "cpu", "--profile", "normal")
    assert done.code == 4
    assert "vector_add.hip:6" in done.text
    assert "missing" in done.text
    found = evidence_in(Path("reports"), "vector-add")
    assert found["verdict"] == "build-failed"
    (log,) = found["volatile"]["build_logs"].values()
    assert "missing" in Path(os.path.expandvars(log)).read_text(encoding="utf-8")
    assert log in done.text


# --- oracles -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One kernel file for many specs, so that it is built once."""
    return write_example(tmp_path_factory.mktemp("kernel")).parent / "vector_add.hip"


def write_oracle(folder: Path, kernel: Path, body: str) -> Path:
    """The example with a flat tolerance, the shared kernel and an oracle of its own."""
    source = os.path.relpath(kernel, folder)
    spec = FLAT.replace("source: vector_add.hip", f"source: {source}")
    return write_example(folder, spec=spec, oracle=f"{ORACLE}{body}\n")


ORACLE = "import os, sys, time\nimport numpy as np\ndef vector_add(params, inputs, scalars):\n    "
FLAT = SPEC.replace("{metric: bound, why: one rounding to float32}", "{metric: abs, limit: 1.0e-6}")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("raise ValueError('no luck')", "oracle.py:4: raised ValueError: no luck"),
        ("time.sleep(60)", "gave no answer in 2 s and was stopped"),
        ("os._exit(0)", "its process ended without an answer (exit 0)"),
        ("os.kill(os.getpid(), 9)", "its process ended without an answer (signal 9)"),
        ("return {'c': np.zeros(3)}", "reference of c has shape [3], not [40]"),
        ("return {'c': np.zeros(40, np.float32)}", "reference of c is float32, not float64"),
        ("return {'d': np.zeros(40)}", "returned nothing for c; it returned d"),
        ("return np.zeros(40)", "returned ndarray, not a dict"),
        ("print('hello'); sys.exit(3)", "hello"),
    ],
    ids=["raises", "hangs", "exits", "killed", "shape", "dtype", "name", "form", "prints"],
)  # fmt: skip
def test_an_oracle_that_fails_is_inconclusive(
    body: str, message: str, kernel: Path, tmp_path: Path, run: Run
) -> None:
    path = write_oracle(tmp_path, kernel, body)
    done = run(
        *("verify", path, "--n", "40", "--device", "cpu", "--profile", "normal", "--timeout", "2")
    )
    assert done.code == 6
    assert message in done.out
    (case,) = evidence_in(Path("reports"), "vector-add")["cases"]
    assert case["verdict"] == "inconclusive"
    assert case["stage"] == "oracle"


def test_an_oracle_that_is_not_there(tmp_path: Path, run: Run) -> None:
    path = write_example(tmp_path)
    (tmp_path / "oracle.py").unlink()
    done = run("verify", path)
    assert done.code == 2
    assert "variants.main.oracle" in done.err


def test_what_an_oracle_prints_is_kept_and_what_it_changes_is_its_own(
    kernel: Path, tmp_path: Path, run: Run
) -> None:
    body = (
        "print('{\"status\": \"pass\"}'); total = inputs['a'].astype(np.float64) + inputs['b']\n"
        "    inputs['a'][...] = 0; return {'c': total}"
    )
    path = write_oracle(tmp_path, kernel, body)
    done = run("verify", path, "--n", "40", "--device", "cpu", "--profile", "normal")
    assert done.code == 0, done.out
    found = evidence_in(Path("reports"), "vector-add")
    (log,) = found["volatile"]["oracle_logs"].values()
    assert log == '{"status": "pass"}'
    assert "status" in Path("reports/vector-add.md").read_text(encoding="utf-8")


# --- where the evidence goes ---------------------------------------------------------------------


def test_evidence_is_saved_elsewhere_where_out_cannot_be_written(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    words = "verify gemm-bw --m 16 --variant grad-a --profile normal --device cpu --out /proc/here"
    done = run(*words.split())
    assert done.code == 0
    folder = tmp_path / "state" / "tokitai" / "reports"
    assert "--out /proc/here cannot be written" in done.err
    assert str(folder) in done.err
    assert evidence_in(folder)["verdict"] == "verified"
    assert f"{folder}/gemm-bw.json" in done.out


def test_evidence_is_saved_elsewhere_where_its_name_is_taken(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    Path("reports/gemm-bw.json").mkdir(parents=True)
    words = "verify gemm-bw --m 16 --variant grad-a --profile normal --device cpu"
    done = run(*words.split())
    assert done.code == 0
    (folder,) = tmp_path.glob("tokitai-reports-*")
    assert "reports/gemm-bw.json cannot be written" in done.err
    assert str(folder) in done.err
    assert evidence_in(folder)["verdict"] == "verified"


# --- reports of other files ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not JSON"),
        (b"\xff\xfe", "is not strict JSON"),
        (b"[]", "not an object"),
        (b'{"schema": "tokitai/evidence/v5"}', "newer schema"),
        (b'{"schema": "cyclonedx"}', "is no evidence file"),
        (b'{"schema": "tokitai/evidence/v1"}', "does not follow"),
        (b'{"a": NaN}', "not JSON"),
        (b"[" * 100_000, "is not strict JSON"),
    ],
    ids=["empty", "bytes", "list", "newer", "foreign", "short", "nan", "deep"],
)
def test_a_report_of_what_is_no_evidence(content: bytes, message: str, run: Run) -> None:
    Path("e.json").write_bytes(content)
    done = run("report", "e.json")
    assert done.code == 2
    assert done.err.startswith("error: e.json")
    assert message in done.err
    assert not done.out


def test_a_report_of_a_damaged_file_or_to_a_wrong_place(run: Run) -> None:
    words = "verify gemm-bw --m 16 --variant grad-a --profile normal --device cpu -q"
    assert run(*words.split()).code == 0
    file = Path("reports/gemm-bw.json")
    assert run("report", file).out == Path("reports/gemm-bw.md").read_text(encoding="utf-8")
    assert "did you mean md?" in run("report", file, "--format", "mdx").err
    assert "is not there" in run("report", file, "--out", "nowhere/x.md").err
    for folder in (".", "/"):
        assert "it is a folder" in run("report", file, "--out", folder).err
    Path("plain").touch()
    for verb in (["report", file, "--format", "md,csv"], words.split(), ["unpack", file]):
        last = ["plain"] if verb[0] == "unpack" else ["--out", "plain"]
        done = run(*verb, *last)
        assert done.code == 2
        assert "plain is a file" in done.err
    file.write_text(file.read_text().replace('"verified"', '"refuted"', 1))
    done = run("report", file)
    assert done.code == 2
    assert "is damaged" in done.err
    for name, message in (("/dev/zero", "not a regular file"), (".", "not the folder of a batch")):
        done = run("report", name)
        assert done.code == 2
        assert message in done.err


def test_the_cache_is_cleared_in_json_too(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TOKITAI_CACHE", str(tmp_path / "cache"))  # not that of all tests
    assert json.loads(run("cache", "--clear", "--json").out)["freed_bytes"] >= 0


# --- faults of the tool itself -------------------------------------------------------------------


def test_a_fault_of_the_tool_is_logged_and_shown_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("signal.signal", lambda *_: None)

    def broken() -> None:
        raise TypeError("no such\nthing")

    monkeypatch.setattr(inventory, "builtin_specs", broken)
    with pytest.raises(SystemExit) as end:
        main.main(["list"])
    assert end.value.code == 70
    shown = capsys.readouterr().err
    assert "internal error: TypeError: no such thing" in shown
    assert "Traceback" not in shown
    (log,) = (tmp_path / "tokitai" / "faults").iterdir()
    assert str(log) in shown
    assert log.stat().st_mode & 0o077 == 0
    text = log.read_text(encoding="utf-8")
    assert "in broken" in text
    assert "['list']" in text


def interrupt(*ignored: object) -> None:
    raise KeyboardInterrupt


def interrupt_in_an_extension(*ignored: object) -> None:
    try:
        interrupt()
    except KeyboardInterrupt as error:
        raise ImportError("the module could not be loaded") from error


@pytest.mark.parametrize(
    ("place", "how"),
    [
        ("tokitai_cli.cli.app.build", interrupt),
        ("tokitai_cli.cli.app.build", interrupt_in_an_extension),
        ("typer.core.TyperGroup.parse_args", interrupt),
        ("tokitai_cli.cli.ending._open_standard_streams", interrupt),
        ("tokitai_cli.cli.ending._silence_lost_streams", interrupt),
    ],
)
def test_an_interrupt_wherever_it_comes_ends_in_one_line(
    place: str,
    how: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(place, how)
    with pytest.raises(SystemExit) as end:
        main.main(["list"])
    assert end.value.code == 130
    assert capsys.readouterr().err.split() == ["interrupted"]


@pytest.mark.parametrize(
    ("error", "verdict", "words"),
    [
        (TypeError("no such thing"), Verdict.INTERNAL_ERROR, "TypeError: no such thing; log: "),
        (MemoryError(), Verdict.NOT_RUN, "ran out of memory: the case needs about "),
    ],
)
def test_a_fault_in_one_case_is_that_cases_and_the_run_goes_on(
    error: Exception,
    verdict: Verdict,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    right = judge.judge
    seen: list[str] = []

    def broken(case, *rest):  # type: ignore[no-untyped-def]
        seen.append(case.profile)
        if len(seen) == 2:
            raise error
        return right(case, *rest)

    monkeypatch.setattr(judge, "judge", broken)
    profiles = ["normal", "uniform", "special"]
    outcome = verify(
        "gemm-bw",
        shapes={"m": 16},
        variant=["grad-a"],
        profile=profiles,
        device="cpu",
        out=tmp_path,
    )
    evidence = outcome.evidence
    assert [case.verdict for case in evidence.cases] == ["verified", verdict, "verified"]
    assert evidence.verdict is verdict
    assert words in evidence.cases[1].reason
    assert evidence.cases[1].stage == "compare"
    assert outcome.files[0].is_file()


def late_spec(folder: Path, *variants: str) -> Path:
    """Two right variants, and one whose oracle is no reference of it, which only shows in the run."""
    (folder / "late.hip").write_text(
        "#include <hip/hip_runtime.h>\n"
        "__global__ void less(const float* x, float* y, int n) {\n"
        "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "  if (i < n) y[i] = x[i] - 1.0f;\n}\n"
    )
    (folder / "late.py").write_text(
        "def less(params, inputs, scalars):\n"
        "    return {'y': inputs['x'].astype('float64') - 1.0}\n"
    )
    one = {
        "source": "late.hip",
        "inputs": {"x": {"dtype": "float32", "shape": ["n"]}},
        "outputs": {"y": {"dtype": "float32", "shape": ["n"]}},
        "launches": [
            {"kernel": "less", "grid": ["ceil_div(n, 64)"], "block": [64], "args": ["x", "y", "n"]}
        ],
        "oracle": "late.py:less",
        "checks": [{"metric": "ulp", "limit": 1}],
    }
    document = {
        "schema": "tokitai/spec/v1",
        "op": "late",
        "title": "y = x - 1",
        "params": {"n": {"default": 64}},
        "variants": dict.fromkeys(variants, one),
        "profiles": {"normal": {"draw": "normal"}},
    }
    path = folder / "late.yaml"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def refuse(case: Case, *rest: Any, **more: Any) -> Any:
    """`oracles.expect` as it is for an oracle that does not fit the spec of its variant."""
    if case.variant_name == "other":
        raise SpecError("the oracle reads g", where=Location(case.loaded.path, key="oracle"))
    return EXPECT(case, *rest, **more)


@pytest.mark.parametrize("verb", ["verify", "batch"])
def test_what_does_not_fit_in_the_middle_of_a_run_costs_its_own_case_alone(
    verb: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run: Run
) -> None:
    spec = late_spec(tmp_path, "ok", "other", "then")
    monkeypatch.setattr(references, "expect", refuse)
    if verb == "verify":
        done = run("verify", str(spec), "--device", "cpu", "--out", "out")
        found = [
            (case["variant"], case["verdict"]) for case in evidence_in(Path("out"), "late")["cases"]
        ]
        assert done.code == Verdict.NOT_RUN.exit_code
        assert "late.yaml: oracle: the oracle reads g" in done.out
    else:
        collected = batch.collect(batch.batch_options([str(spec)], device="cpu"))
        with CaseServer(collected.setup) as server:
            replies = [server.serve(case.task()) for case in collected.cases]
        found = [
            (case.case.variant_name, reply.verdict)
            for case, reply in zip(collected.cases, replies, strict=True)
        ]
    assert found == [("ok", "verified"), ("other", "not-run"), ("then", "verified")]


def test_what_ends_a_run_keeps_the_evidence_of_its_finished_cases(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run: Run
) -> None:
    spec = late_spec(tmp_path, "ok")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def ends(self: object, event: object) -> None:
        if isinstance(event, CaseFinished) and event.position == 2:
            raise TypeError("no such thing")

    monkeypatch.setattr(terminal.Progress, "__call__", ends)
    with pytest.raises(TypeError, match="no such thing"):
        app.run(["verify", str(spec), "--n", "8,16,24", "--device", "cpu", "--out", "out"])
    found = evidence_in(Path("out"), "late")
    assert found["verdict"] == "internal-error"
    assert "stopped after 2 of 3 cases: TypeError: no such thing" in found["reason"]
    assert [case["verdict"] for case in found["cases"]] == ["verified"] * 2


def test_older_evidence_of_another_run_is_kept_in_a_folder_of_its_own(
    tmp_path: Path, run: Run
) -> None:
    words = ["verify", str(late_spec(tmp_path, "ok")), "--device", "cpu"]
    assert "kept as" not in run(*words, "--n", "8,16").err
    assert "kept as" not in run(*words, "--n", "8,16,24").err  # all that there was, and more
    done = run(*words, "--build-only")
    assert "late.json held another run (3 cases, verified): kept as older/1/late.json" in done.err
    assert evidence_in(Path("reports"), "late")["verdict"] == "built"
    older = read(Path("reports/older/1/late.json"))
    assert len(older.cases) == 3
    assert "n=24" in Path("reports/older/1/late.md").read_text(encoding="utf-8")
    assert "kept as" not in run(*words, "--n", "8").err  # a build alone is no loss
    Path("reports/late.json").write_text("{}")
    assert "no evidence that can be read: kept as older/2/late.json" in run(*words, "--n", "8").err


def test_saved_arrays_go_where_their_evidence_goes(tmp_path: Path, run: Run) -> None:
    spec = late_spec(tmp_path, "ok")
    words = ["verify", str(spec), "--device", "cpu", "--save-all-arrays"]
    for sizes in ("8,16", "8", "8"):
        run(*words, "--n", sizes)
    reports = Path("reports")
    assert sorted(path.name for path in reports.iterdir() if path.is_dir()) == [
        "late.arrays",  # the third run's; those of the second, which it replaced, are gone
        "older",
    ]
    for path in (reports / "late.json", reports / "older/1/late.json"):
        (case, *_) = read(path).cases
        assert all((path.parent / one.file).is_file() for one in case.saved_arrays)
    assert app.run(["recheck", "reports/older/1/late.json"]) == 0


def test_runs_into_one_folder_at_a_time_lose_nothing(tmp_path: Path, run: Run) -> None:
    """Between looking at what is there and writing, no other run writes."""
    made = samples.sample(Verdict.VERIFIED)
    folder = tmp_path / "same"
    folder.mkdir()

    def write(number: int) -> None:
        shape = {"m": number, "n": 64, "k": 64}
        parts = samples.parts([samples.case(shape=shape)], rerun=f"{made.rerun} --m {number}")
        given = run_options(load_op("gemm-bw"), out=str(folder), name="gemm-bw", format=["json"])
        write_files(assemble(parts), folder, given)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(1, 33)))
    kept = [read(path) for path in sorted(folder.rglob("*.json"))]
    assert sorted(one.cases[0].shape["m"] for one in kept) == list(range(1, 33))
    assert len(list(folder.glob("*.json"))) == 1


def test_evidence_with_its_cases_beside_it_is_kept_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.setattr("tokitai_cli.evidence.files.MOST_CASES_INSIDE", 1)
    words = ["verify", str(late_spec(tmp_path, "ok")), "--device", "cpu"]
    run(*words, "--n", "8,16")
    assert "(2 cases, verified): kept as older/1/late.json" in run(*words, "--n", "8").err
    assert len(read(Path("reports/older/1/late.json")).cases) == 2
    assert not Path("reports/late.cases.jsonl").exists()


# --- streams, locales and homes, in processes of their own ---------------------------------------


@pytest.mark.parametrize("command", ["list", "--help", "show gemm-bw", "schema evidence"])
def test_a_reader_that_goes_away_is_141(command: str) -> None:
    child = subprocess.Popen(
        [*TOOL, *command.split()], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert child.stdout is not None
    child.stdout.close()
    assert child.stderr is not None
    said = child.stderr.read()
    child.stderr.close()
    assert child.wait(60) == 141
    assert said == b""


def shell(line: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["/bin/sh", "-c", line, sys.executable],
        env={**os.environ, **environment},
        capture_output=True,
        timeout=60,
        check=False,
    )


def test_closed_and_full_streams() -> None:
    assert shell('"$0" -m tokitai_cli list >&-').returncode == 0
    assert shell('"$0" -m tokitai_cli list >&- 2>&- <&-').returncode == 0
    assert shell('"$0" -m tokitai_cli nope 2>&-').returncode == 2
    full = shell('"$0" -m tokitai_cli list >/dev/full')
    assert full.returncode == 2
    assert full.stderr == b"error: standard output cannot be written: No space left on device\n"


@pytest.mark.parametrize("words", [["verify", b"\xff.yaml"], ["verify", "gemm-bw", b"--m=\xff"]])
def test_arguments_that_are_no_text(words: list[str | bytes]) -> None:
    done = subprocess.run(
        [*TOOL, *words],
        env={**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0"},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith(b"error: ")
    assert b"\\udcff" in done.stderr
    assert b"Traceback" not in done.stderr


def test_an_unwritable_home_and_an_odd_locale(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.write_text("no folder: nothing can be made in it, whoever runs this")
    folder = tmp_path / "my kernels (v2) é"
    spec = SPEC.replace("Sum of two vectors in float32", "a ≤ b — the sum")
    write_example(folder, spec=spec)
    unset = ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")
    names = {name: value for name, value in os.environ.items() if name not in unset}
    words = ["verify", "./spec.yaml", "--n", "100", "--device", "cpu", "--seed", "3"]
    done = subprocess.run(
        [*TOOL, *words],
        cwd=folder,
        env={**names, "HOME": str(home), "LC_ALL": "C", "PYTHONUTF8": "0"},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    other = tokitai(*words, cwd=folder, env={"LC_ALL": "C.UTF-8"}, timeout=120)
    assert other.returncode == 0
    assert done.stdout == other.stdout.encode()


def test_a_path_that_is_no_text(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"kernels \xff")
    path = write_example(folder)
    done = tokitai("verify", path)
    assert done.returncode == 2
    assert "the path is not UTF-8 text" in done.stderr
    assert "rename" in done.stderr


def test_a_source_in_place_of_a_spec_gets_the_command_that_drafts_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "k.hip"
    source.write_text("__global__ void k(float* x) {}\n")
    assert app.run(["verify", str(source)]) == 2
    told = capsys.readouterr().err
    assert "a source, not a spec" in told
    assert f"`tokitai new {source}`" in told
