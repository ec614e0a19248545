"""Builds and runs the changed kernels of a spec, and counts those that its checks notice."""

from __future__ import annotations

import enum
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from tokitai_cli import build, devices, judge
from tokitai_cli.adequacy.mutation.sites import Change, changes_of
from tokitai_cli.core import flags, process
from tokitai_cli.core.errors import BuildError, ChildError, TokitaiError, UsageError
from tokitai_cli.core.file_kind import is_machine_code
from tokitai_cli.core.model.case import Case
from tokitai_cli.core.model.device import Device, Probe
from tokitai_cli.core.model.events import silent
from tokitai_cli.core.model.harness import HarnessRequest
from tokitai_cli.core.model.settings import Settings
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.cpp.lexing import names_in
from tokitai_cli.run.device_session import DeviceSession
from tokitai_cli.run.prepare import Clock, Preparation, Prepared
from tokitai_cli.run.run_options import RunOptions
from tokitai_cli.spec import plan

# A changed kernel may loop for ever: seconds of a case, and how much slower than the right one.
_LEAST_SECONDS, _SLOWER = 2.0, 20.0
# Fast to compile, and the same bytes for the same code.
_FLAGS = {"cpu": ("-g0", "-O1", "-Wl,--build-id=none")}


class End(enum.StrEnum):
    """What became of a change."""

    NOTICED = "noticed"
    SURVIVED = "survived"
    EQUIVALENT = "declared equivalent in the spec"
    SAME = "the compiler's code is the same"
    UNBUILT = "not built"


class Trial(msgspec.Struct, frozen=True):
    """A change and its end; told: the case that noticed it and how, a reason, or an error."""

    change: Change
    end: End
    message: str = ""


class TrialReport(msgspec.Struct, frozen=True):
    """All changes of a spec's sources."""

    op: str
    device: str
    #: How many each had to pass.
    cases: int
    trials: list[Trial]
    #: Of the whole.
    seconds: float

    def count(self, end: End) -> int:
        """How many had this end."""
        return sum(one.end is end for one in self.trials)

    @property
    def tried(self) -> int:
        """Changes that make another kernel."""
        return self.count(End.NOTICED) + self.count(End.SURVIVED)


Ready = tuple[Case, Prepared]
Progress = Callable[[int, int, Trial], None]


def mutate(options: RunOptions, jobs: int, progress: Progress) -> TrialReport:
    """Try every change of the sources on the cases that `options` select, `jobs` at a time.

    Raises UsageError where the kernels as they are do not pass those cases: nothing would be shown.
    """
    cache = process.make_temporary_folder(prefix="tokitai-builds-")
    before = os.environ.get("TOKITAI_CACHE")
    os.environ["TOKITAI_CACHE"] = str(cache)  # nobody asks for a changed kernel again
    try:
        return _mutate(options, jobs, progress)
    finally:
        os.environ.pop("TOKITAI_CACHE")
        os.environ.update({} if before is None else {"TOKITAI_CACHE": before})
        process.remove_temporary_folder(cache)


def _mutate(options: RunOptions, jobs: int, progress: Progress) -> TrialReport:
    start = time.monotonic()
    # Each child has one thread, as several run at a time.
    settings = msgspec.structs.replace(options.settings, threads=1)
    ((device, probe),) = devices.choose(options.device, settings)[:1]
    cases = plan.plan(options.loaded, options.selection).cases
    if code := [one for one in cases if is_machine_code(build.source_path(one))]:
        raise UsageError(
            f"{code[0].variant.source} is machine code, which has no source text to change",
            hint="`tokitai show OP --score` tries changes of the formulas",
        )
    bench = _Bench(device, probe, settings, cases)
    work = [(source, change) for source in bench.sources for change in bench.changes(source)]
    trials: list[Trial] = []
    done = threading.Lock()

    def one(item: tuple[Path, Change]) -> Trial:
        trial = bench.tried(*item)
        with done:
            trials.append(trial)
            progress(len(trials), len(work), trial)
        return trial

    pool = ThreadPoolExecutor(jobs)
    try:
        found = list(pool.map(one, work))
    except BaseException:  # an interrupt above all: what waits is not begun, what runs is ended
        pool.shutdown(wait=False, cancel_futures=True)
        process.terminate_all()
        raise
    pool.shutdown()
    seconds = time.monotonic() - start
    return TrialReport(options.loaded.spec.op, device.name, len(cases), found, seconds)


class _Bench:
    """The cases with all that they need, and the kernels as they are, which must pass them."""

    def __init__(
        self, device: Device, probe: Probe, settings: Settings, cases: Sequence[Case]
    ) -> None:
        self._device, self._probe, self._settings = device, probe, settings
        self._ready: dict[Path, list[Ready]] = {}
        self._noticed: dict[str, int] = {}
        self._seconds: dict[str, float] = {}
        self._codes: dict[Path, dict[HarnessRequest, bytes]] = {}
        self._changes: dict[Path, list[Change]] = {}
        self._texts: dict[Path, Mapping[Path, str]] = {}
        for case in cases:
            found = Preparation(case, settings)(Clock())
            if not isinstance(found, Prepared):
                raise UsageError(f"{case.id} cannot be tried: {found.error}")
            self._ready.setdefault(build.source_path(case), []).append((case, _lighter(found)))
        self._check()

    @property
    def sources(self) -> tuple[Path, ...]:
        """The sources of the cases."""
        return tuple(self._ready)

    def changes(self, source: Path) -> list[Change]:
        """Changes of the source, and of the files beside it, in what the cases' kernels reach."""
        return self._changes[source]

    def _find_changes(self, source: Path) -> None:
        wanted = set().union(*(_words(case) for case, _ in self._ready[source]))
        case = self._ready[source][0][0]
        defines = flags.definitions(build.flags_of(case)) | dict(
            build.harness_request(case).defines
        )
        self._changes[source], self._texts[source] = changes_of(
            source, self._folders(source), wanted, defines, case.loaded.models
        )

    def tried(self, source: Path, change: Change) -> Trial:
        """What becomes of the change."""
        for known in self._ready[source][0][0].loaded.spec.equivalent_changes:
            if known.means(change.before, change.after):
                return Trial(change, End.EQUIVALENT, known.reason)
        folder = process.make_temporary_folder(prefix="tokitai-mutant-")
        try:
            return self._tried_in(folder, source, change)
        finally:
            process.remove_temporary_folder(folder)

    def _tried_in(self, folder: Path, source: Path, change: Change) -> Trial:
        texts = self._texts[source]
        texts = {**texts, change.path: change.applied(texts[change.path])}
        placed = _placed(folder, source, texts)
        session = self._session(self._limit)
        artifacts: dict[HarnessRequest, build.Artifact] = {}
        same = True
        try:
            for case, ready in self._in_order(source, change):
                request = msgspec.structs.replace(build.harness_request(case), source=placed)
                if request not in artifacts:
                    built = self._built(case, request, source)
                    if isinstance(built, BuildError):
                        first = (list(built.first_errors) or [str(built)])[0]
                        return Trial(change, End.UNBUILT, first.replace(f"{folder}/", ""))
                    artifacts[request] = built
                    code = _code(built.path, folder)
                    same = same and code == self._codes[source][_key(request)]
                if same:
                    continue
                how = _failure(session, case, ready, artifacts[request])
                if how:
                    self._noticed[case.id] = self._noticed.get(case.id, 0) + 1
                    return Trial(change, End.NOTICED, f"{case.id}: {how}")
        finally:
            session.replace()
        return Trial(change, End.SAME if same else End.SURVIVED)

    def _in_order(self, source: Path, change: Change) -> list[Ready]:
        """Cases whose kernels reach the change, those first that noticed most for the time they take."""

        def worth(one: Ready) -> float:
            name = one[0].id
            return (self._noticed.get(name, 0) + 0.5) / max(self._seconds.get(name, 0.0), 1e-3)

        mine = [one for one in self._ready[source] if change.kernels & _words(one[0])]
        return sorted(mine, key=worth, reverse=True)

    def _session(self, timeout: float) -> DeviceSession:
        settings = msgspec.structs.replace(self._settings, timeout=timeout)
        return DeviceSession(self._device, self._probe, settings, silent)

    def _built(
        self, case: Case, request: HarnessRequest, source: Path
    ) -> build.Artifact | BuildError:
        beside = tuple(f"-I{folder}" for folder in (source.parent, *self._folders(source)))
        given = (*build.flags_of(case), *beside, *_FLAGS.get(self._device.name, ()))
        try:
            recipe = self._device.recipe(self._settings, dict(request.defines), given)
            return build.build(request, recipe)
        except BuildError as error:
            return error

    def _folders(self, source: Path) -> list[Path]:
        return flags.include_folders(build.flags_of(self._ready[source][0][0]))

    def _check(self) -> None:
        """Build and run the kernels as they are; their time limits that of changed ones."""
        slowest = 0.0
        session = self._session(self._settings.timeout)
        try:
            for source in self.sources:
                self._find_changes(source)
                folder = process.make_temporary_folder(prefix="tokitai-mutant-")
                placed = _placed(folder, source, self._texts[source])
                built: dict[HarnessRequest, build.Artifact] = {}
                for case, ready in self._ready[source]:
                    request = msgspec.structs.replace(build.harness_request(case), source=placed)
                    if request not in built:
                        found = self._built(case, request, source)
                        if isinstance(found, BuildError):
                            raise found
                        built[request] = found
                    start = time.monotonic()
                    how = _failure(session, case, ready, built[request])
                    self._seconds[case.id] = time.monotonic() - start
                    slowest = max(slowest, self._seconds[case.id])
                    if how:
                        raise UsageError(f"the kernel as it is fails: {case.id}: {how}")
                self._codes[source] = {
                    _key(request): _code(one.path, folder) for request, one in built.items()
                }
                process.remove_temporary_folder(folder)
        finally:
            session.replace()
        self._limit = max(_LEAST_SECONDS, _SLOWER * slowest)


def _words(case: Case) -> set[str]:
    """Names in what the case launches: kernels, and what their templates are given."""
    return {word for one in case.variant.launches for word in names_in(one.kernel)}


def _lighter(found: Prepared) -> Prepared:
    """What the judgement of a changed kernel needs: no wrong outputs to try its checks on."""
    expectations = {
        name: msgspec.structs.replace(one, dropped={}, changes={}, zeroed=())
        for name, one in found.expectations.items()
    }
    stated = tuple(one for one in found.properties if not one.changed)
    return msgspec.structs.replace(found, expectations=expectations, properties=stated)


def _placed(folder: Path, source: Path, texts: Mapping[Path, str]) -> Path:
    """Write the files into `folder`, where they lie to each other as they did; the source's place.

    The compiler calls them by the names that they had.
    """
    top = Path(os.path.commonpath([path.parent for path in texts]))
    for path, text in texts.items():
        place = folder / path.relative_to(top)
        place.parent.mkdir(parents=True, exist_ok=True)
        # Alignment checks hold the names of files, which must not tell one folder from another.
        place.write_text(f'#line 1 "{path}"\n{text}', encoding="utf-8")
    return folder / source.relative_to(top)


def _key(request: HarnessRequest) -> HarnessRequest:
    """What tells harnesses of one source apart."""
    return msgspec.structs.replace(request, source=Path())


def _code(artifact: Path, folder: Path) -> bytes:
    """The executable without the name of the folder that it was built of."""
    return artifact.read_bytes().replace(str(folder).encode(), b"")


def _failure(session: DeviceSession, case: Case, ready: Prepared, artifact: build.Artifact) -> str:
    """How the case refutes the kernel, or how its child ends; empty where neither is so."""
    try:
        result = session.serve(case, ready, artifact)
        judged = judge.judge(case, ready.expectations, ready.replays, result, ready.properties)
    except ChildError as error:
        session.replace()
        return str(error)
    except TokitaiError as error:
        raise UsageError(f"{case.id} cannot be tried: {error}") from error
    if judged.verdict is not Verdict.REFUTED:
        return ""
    session.replace()
    return f"{judged.verdict}: {judged.reason}"
