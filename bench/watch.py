"""`python -m bench.watch FILE [SECONDS]`: compute-sanitizer over the kernels of the watch's own suite.

On a machine with an NVIDIA GPU each kernel of tests/devices/sanitizers/suite runs under each of the four
tools, and under none. Writes FILE (JSON) and prints its table; after SECONDS (default: no limit) nothing
new begins. `python -m bench.watch --table FILE` prints the table again.

A file's kernels are one program, built by nvcc, with HIP's names led to CUDA's by kernels/cuda. They
run one after the other in one process for each tool, which begins again behind one that hangs or ends
the context. HIP's own atomic operations are left out: CUDA has none.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from bench._runs import ROOT
from tests.devices.sanitizers import suite
from tokitai_cli.core.errors import InadmissibleError
from tokitai_cli.core.model.device import Device, DeviceOptions, Sanitizer
from tokitai_cli.devices.cuda import CudaDevice
from tokitai_cli.devices.sanitizers import compute_sanitizer

FILES = tuple(file for file in suite.KINDS if file != "hip_scopes")
NO_TOOL = "none"
# A kernel that takes longer waits for something that does not come.
HANGS_AFTER = 5.0
# Beside its kernels' own time, for a process: the context, and the tool's patches of the code.
START_SECONDS = 60.0
_OF_KERNEL = re.compile(r"\b(\w+)<(?:\(bool\))?(0|1|true|false)>")


class Result(msgspec.Struct, frozen=True):
    """A kernel under a tool. ended: ok, hung, or the runtime's error. found: kinds of its findings."""

    file: str
    name: str
    wrong: bool
    tool: str
    ended: str
    found: tuple[str, ...] = ()


class Report(msgspec.Struct, frozen=True):
    """Results of a machine. left_out: processes that began no kernel, and why."""

    gpu: str
    nvcc: str
    sanitizer: str
    seconds: float
    results: tuple[Result, ...]
    left_out: tuple[str, ...]


class Form(msgspec.Struct, frozen=True):
    """One instance of a kernel."""

    kernel: suite.Kernel
    wrong: bool


def forms(file: str) -> tuple[Form, ...]:
    """Right instances first, so that what ends a process costs none of them."""
    return tuple(Form(one, wrong) for wrong in (False, True) for one in suite.kernels(file))


def build(file: str, folder: Path) -> Path:
    """Compile a file's kernels with bench/watch.cu. Raises RuntimeError with the compiler's words."""
    table = folder / f"{file}.inc"
    table.write_text(
        "".join(
            f"{{{one.kernel.name}<{str(one.wrong).lower()}>, {one.kernel.grid}, {one.kernel.block}, "
            f"{one.kernel.shared}, {str(one.kernel.meets).lower()}}},\n"
            for one in forms(file)
        )
    )
    recipe = CudaDevice().recipe(DeviceOptions(), {}, ())
    program = folder / file
    put = {"{source}": str(ROOT / "bench" / "watch.cu"), "{output}": str(program)}
    put["{depfile}"] = f"{program}.d"
    words = [put.get(word, word) for word in recipe.command if word != "-c"]
    words += [f'-DSUITE_FILE="{suite.source(file)}"', f'-DKERNELS="{table}"']
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{file}: {done.stderr or done.stdout}")
    return program


class Chain:
    """A file's kernels under one tool, in as many processes as it takes."""

    def __init__(self, file: str, program: Path, tool: Sanitizer | None, end: float) -> None:
        """end: when no further process is begun, as time.monotonic counts."""
        self._file = file
        self._program = program
        self._tool = tool
        self._end = end
        self.name = NO_TOOL if tool is None else tool.tool.split()[-1]
        self.left_out: list[str] = []

    def results(self) -> list[Result]:
        """One for each kernel that was begun."""
        every = forms(self._file)
        found: list[Result] = []
        first = 0
        while first < len(every):
            if time.monotonic() > self._end:
                self._leave_out(first, "no time was left")
                break
            ended, said = self._process(first, len(every) - first)
            if not ended:
                self._leave_out(first, said)
                break
            kinds = self._kinds(said, every[max(ended)])
            for number, how in ended.items():
                form = every[number]
                key = (form.kernel.name, form.wrong)
                mine = tuple(dict.fromkeys(kinds.get(key, ())))
                found.append(Result(self._file, *key, self.name, how, mine))
            first = max(ended) + 1
        return found

    def _leave_out(self, first: int, why: str) -> None:
        self.left_out.append(f"{self._file} from kernel {first} under {self.name}: {why[:400]}")

    def _process(self, first: int, count: int) -> tuple[dict[int, str], str]:
        """How each kernel ended that a process has begun, and the tool's log, or what it said."""
        with tempfile.TemporaryDirectory() as folder:
            device: Device = CudaDevice()
            if self._tool is not None:
                device = self._tool.under(device, Path(folder))
            words = list(device.launch_command(self._program, DeviceOptions()))
            words = words[: words.index(str(self._program)) + 1]
            words += [str(first), str(HANGS_AFTER)]
            with subprocess.Popen(
                words,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            ) as child:
                try:
                    said, _ = child.communicate(timeout=START_SECONDS + HANGS_AFTER * 2 + count)
                except subprocess.TimeoutExpired:
                    os.killpg(child.pid, signal.SIGKILL)
                    said, _ = child.communicate()
            ended = dict(_ended(said.splitlines()))
            text = "".join(one.read_text(errors="replace") for one in Path(folder).glob("*.log"))
        return ended, text if ended else f"{said} {text}"

    def _kinds(self, log: str, last: Form) -> dict[tuple[str, bool], list[str]]:
        """Kinds of the findings of each kernel; what names none belongs to the last one."""
        found: dict[tuple[str, bool], list[str]] = {}
        if self._tool is None:
            return found
        try:
            findings = self._tool.read(log)
        except ValueError:  # no summary: the process was stopped
            return found
        for one in findings:
            match = _OF_KERNEL.search(one.kernel)
            named = (match[1], match[2] in {"1", "true"}) if match else None
            key = named or (last.kernel.name, last.wrong)
            found.setdefault(key, []).append(one.kind)
        return found


def _ended(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Each kernel that was begun, with how it ended: the last word on it counts."""
    for line in lines:
        word, _, rest = line.partition(" ")
        number, _, how = rest.partition(" ")
        if word == "begin" and number.isdigit():
            yield int(number), "hung"
        elif word == "end" and number.isdigit():
            yield int(number), "ok" if how == "cudaSuccess" else how


def measure(seconds: float) -> Report:
    """Build and run all. Raises RuntimeError and InadmissibleError where it cannot begin."""
    start = time.monotonic()
    tools = (None, *compute_sanitizer.sanitizers())
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(os.cpu_count()) as pool:
        folder = Path(name)
        programs = dict(zip(FILES, pool.map(lambda file: build(file, folder), FILES), strict=True))
        chains = [
            Chain(file, programs[file], tool, start + seconds)
            # Long files first, so that none is begun when the others have ended.
            for file in sorted(FILES, key=lambda file: -len(forms(file)))
            for tool in tools
        ]
        results = [one for found in pool.map(Chain.results, chains) for one in found]
    gpus = "; ".join(
        one.value for one in CudaDevice().probe(DeviceOptions()).facts if one.name == "gpu"
    )
    nvcc = subprocess.run(["nvcc", "--version"], capture_output=True, text=True, check=False)
    return Report(
        gpus,
        nvcc.stdout.strip().splitlines()[-1] if nvcc.stdout else "",
        tools[1].version if tools[1] else "",
        round(time.monotonic() - start, 1),
        tuple(results),
        tuple(why for chain in chains for why in chain.left_out),
    )


class Row(msgspec.Struct):
    """Counts of one form of a kind's kernels. hung: by none of the tools found, and without an end."""

    run: int = 0
    found: int = 0
    hung: int = 0

    def __add__(self, other: Row) -> Row:
        return Row(self.run + other.run, self.found + other.found, self.hung + other.hung)


def counted(report: Report, file: str, wrong: bool) -> tuple[Row, list[str]]:
    """Counts of the kernels that ran under a tool, and the words of each that went wrong."""
    row, words = Row(), []
    for kernel in suite.kernels(file):
        of = [
            one
            for one in report.results
            if (one.file, one.name, one.wrong) == (file, kernel.name, wrong)
        ]
        of = [one for one in of if one.tool != NO_TOOL]
        if not of:
            continue
        found = sorted({f"{one.tool}: {kind}" for one in of for kind in one.found})
        hung = [one.tool for one in of if one.ended == "hung" and not found]
        row += Row(1, bool(found), bool(hung))
        if wrong != bool(found):
            state = f"hung under {', '.join(hung)}" if hung else ", ".join(found) or "missed"
            words.append(f"{kernel.name} {'wrong' if wrong else 'right'}: {state}")
        elif hung:  # a right one
            words.append(f"{kernel.name} right: hung under {', '.join(hung)}")
    return row, words


def table(report: Report) -> str:
    """A Markdown table by kind of fault, then each kernel that was missed, told falsely or hung."""
    rows = [
        "| kind of fault | wrong | found | hung | missed | right | false alarms | hung |",
        "|---" * 8 + "|",
    ]
    whole, words = (Row(), Row()), []
    for file in FILES:
        both = [counted(report, file, wrong) for wrong in (True, False)]
        rows.append(_row(suite.KINDS[file], both[0][0], both[1][0]))
        whole = whole[0] + both[0][0], whole[1] + both[1][0]
        words += [f"{file}: {one}" for _, some in both for one in some]
    head = f"{report.gpu}, {report.nvcc}, {report.sanitizer}, {report.seconds} s"
    return "\n".join([head, *rows, _row("all", *whole), *words, *report.left_out])


def _row(kind: str, wrong: Row, right: Row) -> str:
    missed = wrong.run - wrong.found - wrong.hung
    return (
        f"| {kind} | {wrong.run} | {wrong.found} | {wrong.hung} | {missed} "
        f"| {right.run} | {right.found} | {right.hung} |"
    )


def main(words: Sequence[str]) -> int:
    """Measure, or print the table of a file."""
    if words[:1] == ["--table"]:
        report = msgspec.json.decode(Path(words[1]).read_bytes(), type=Report)
    else:
        try:
            report = measure(float(words[1]) if len(words) > 1 else float("inf"))
        except (InadmissibleError, RuntimeError) as error:
            sys.stderr.write(f"{error}\n")
            return 3
        Path(words[0]).write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=1))
    sys.stdout.write(f"{table(report)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
