"""A device in a run: its artifacts, and the one child that serves cases on it at a time."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import msgspec
from numpy.typing import NDArray

from tokitai_cli import build
from tokitai_cli.core.errors import BuildError, NotRunError
from tokitai_cli.core.linked_folders import links_of
from tokitai_cli.core.model.batch_record import BuildInfo
from tokitai_cli.core.model.buffers import symbols_of
from tokitai_cli.core.model.case import Case, RunResult
from tokitai_cli.core.model.device import (
    APPROXIMATE,
    WRITABLE,
    Device,
    Fact,
    Probe,
    Recipe,
    warp_size_of,
)
from tokitai_cli.core.model.events import Listener
from tokitai_cli.core.model.evidence import BuildRecord, DeviceRecord, FactRecord
from tokitai_cli.core.model.harness import HarnessRequest
from tokitai_cli.core.model.judged import graver
from tokitai_cli.core.model.settings import Settings
from tokitai_cli.core.model.textures import references
from tokitai_cli.run import child
from tokitai_cli.run.prepare import Prepared
from tokitai_cli.spec import plan

# A compilation may take as long as this many cases, and this many seconds in any case.
BUILD_TIMEOUTS = 10
LEAST_BUILD_SECONDS = 60.0


class Built(msgspec.Struct, frozen=True):
    """An artifact or the failure to build one; `key` names it in the evidence."""

    key: str
    record: BuildRecord
    artifact: build.Artifact | None
    error: BuildError | None

    @property
    def info(self) -> BuildInfo:
        """What the evidence says of it."""
        if self.artifact is None:
            log = self.error.log_path if self.error is not None else None
            return BuildInfo(
                key=self.key,
                record=self.record,
                log="" if log is None else str(log),
                seconds=None,
                cached=False,
                note="",
            )
        return BuildInfo(
            key=self.key,
            record=self.record,
            log=str(self.artifact.log_path),
            seconds=self.artifact.seconds,
            cached=self.artifact.cached,
            note=self.artifact.note,
        )


class DeviceSession:
    """Builds for one device, and serves cases with one child at a time.

    `end_timeout` is how long, in seconds, a child may take to end by itself.
    """

    def __init__(
        self,
        device: Device,
        probe: Probe,
        settings: Settings,
        listener: Listener,
        *,
        end_timeout: float = child.END_SECONDS,
    ) -> None:
        self.device = device
        self.probe = probe
        self.settings = settings
        self._listener = listener
        self._end_timeout = end_timeout
        self._builds: dict[tuple[HarnessRequest, tuple[str, ...]], Built] = {}
        self._used: dict[str, Built] = {}
        self._served_by: dict[tuple[object, ...], Built] = {}
        self._makers: dict[str, Callable[[], build.Artifact]] = {}
        self._server: child.Server | None = None
        self._serving = ""
        self._told: tuple[Fact, ...] = ()
        self._has_run = False

    @property
    def name(self) -> str:
        """The device's name."""
        return self.device.name

    @property
    def warp_size(self) -> int:
        """Lanes of a warp."""
        return warp_size_of(self.name, self.probe.arch, self.settings)

    @property
    def record(self) -> DeviceRecord:
        """Evidence of the device as it was found, and of what its runtime told once a child was up."""
        return device_record(self.device, self.probe, self._told)

    @property
    def builds(self) -> tuple[Built, ...]:
        """What cases were served by, or could not be built for them, so far."""
        return tuple(self._used.values())

    def built(self, case: Case) -> Built:
        """Artifact that serves the case, built once per (source, defines, flags).

        Where variants share an artifact and it cannot be built, fewer of them share one.
        """
        case = plan.at_warp_size(case, self.warp_size)
        content = (case.loaded.path, case.loaded.digest, case.variant_name, build.defines_of(case))
        if content not in self._served_by:
            found = self._narrowed(case, build.sharing(case))
            self._served_by[content] = self._used[found.key] = found
        return self._served_by[content]

    def launch_command(self, artifact: build.Artifact) -> tuple[str, ...]:
        """Argv of the child that serves `artifact`."""
        return self.device.launch_command(artifact.path, self.settings)

    def start(self, artifact: build.Artifact) -> child.Server:
        """The child that serves `artifact`, started where it is not there; it is not waited for.

        One that somebody has cleared out of the build cache is built once more. Raises NotRunError
        where no process can be made of it.
        """
        if self._server is None or not self._server.alive or self._serving != artifact.key:
            self.replace()
            if not artifact.path.is_file():
                artifact = self._built_again(artifact)
            self._server = child.Server(
                self.launch_command(artifact),
                self.device.launch_environment(self.settings),
                artifact.request,
                links=links_of(artifact.path.parent),
                end_timeout=self._end_timeout,
                wait=False,
            )
            self._serving = artifact.key
            self._has_run = False
        return self._server

    def serve(
        self,
        case: Case,
        prepared: Prepared,
        artifact: build.Artifact,
        *,
        approximation: int = 0,
        among_zeros: Collection[str] = (),
        one_fill: bool = False,
    ) -> RunResult:
        """Run the case in the child; in a fresh one, where variables of the source outlive a launch.

        approximation: of `compare.APPROXIMATIONS`, counted from 1; 0 for the nominal one. among_zeros,
        one_fill: see `Server.run`.

        Raises ChildError, NotRunError, InadmissibleError.
        """
        settings = self.settings
        if self._has_run and variables(artifact.record, case):
            self.replace()
        server = self.start(artifact)
        self._has_run = True
        self._told = server.hello.facts
        result = server.run(
            case,
            prepared.arrays,
            repetitions=settings.repeat,
            warmups=settings.warmup,
            timeout=settings.timeout,
            seed=case.seed,
            approximation=approximation,
            among_zeros=among_zeros,
            one_fill=one_fill,
        )
        return self._graded(result)

    def serve_once_more(
        self,
        case: Case,
        prepared: Prepared,
        artifact: build.Artifact,
        kept: Mapping[str, NDArray[Any]],
    ) -> RunResult:
        """Run one more repetition in the child that has just served `case`, as `serve` does.

        `kept` is what workspaces that are zeroed once hold.
        """
        result = self.start(artifact).run(
            case, prepared.arrays, repetitions=1, timeout=self.settings.timeout, kept=kept
        )
        return self._graded(result)

    def _graded(self, result: RunResult) -> RunResult:
        """The result, its warnings errors where the run is strict."""
        found = tuple(graver(one, strict=self.settings.strict) for one in result.findings)
        return msgspec.structs.replace(result, findings=found)

    def forget(self) -> None:
        """Give back the memory that outputs of the last case lie in: all that is needed was copied."""
        if self._server is not None:
            self._server.forget()

    def replace(self) -> None:
        """End the child; the next case gets a fresh one."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def _narrowed(self, case: Case, names: tuple[str, ...]) -> Built:
        """Artifact of the variants `names`, or of the half of them with the case's, and so on.

        A source that fails without any kernel fails for all of them alike.
        """
        found = self._obtain(case, build.harness_request(case, names))
        if found.error is None or len(names) == 1:
            return found
        if self._obtain(case, build.harness_request(case, ())).error is not None:
            return found
        first, second = names[: len(names) // 2], names[len(names) // 2 :]
        return self._narrowed(case, first if case.variant_name in first else second)

    def _obtain(self, case: Case, request: HarnessRequest) -> Built:
        key = (request, (*case.variant.include, "", *case.variant.flags))
        if key not in self._builds:
            self._builds[key] = self._build(case, request)
        return self._builds[key]

    def _build(self, case: Case, request: HarnessRequest) -> Built:
        recipe: Recipe | None = None
        try:
            recipe = self.device.recipe(self.settings, dict(request.defines), build.flags_of(case))
            limit = max(LEAST_BUILD_SECONDS, BUILD_TIMEOUTS * self.settings.timeout)
            if recipe.notice:  # it is known to take long, whatever the kernels may take
                limit = max(limit, build.COMPILE_SECONDS)
            make = functools.partial(
                build.build,
                request,
                recipe,
                listener=self._listener,
                timeout=limit,
                models=case.loaded.models,
            )
            artifact = make()
        except BuildError as error:
            record = build.failed_record(request, recipe, error)
            # By content, so that it is the same failure in another run and on another machine.
            content = hashlib.sha256(msgspec.json.encode(record)).hexdigest()
            return Built(f"failed-{self.name}-{content[:16]}", record, None, error)
        self._makers[artifact.key] = make
        return Built(artifact.key, artifact.record, artifact, None)

    def _built_again(self, gone: build.Artifact) -> build.Artifact:
        """The same artifact. Raises NotRunError where it cannot be had again."""
        try:
            artifact = self._makers[gone.key]()
        except BuildError as error:
            said = f"its artifact was cleared out of the build cache, and not built again: {error}"
            raise NotRunError(said, hint=error.hint) from error
        if artifact.key != gone.key:
            raise NotRunError(
                "its artifact was cleared out of the build cache, and what it was built of has changed",
                hint="run it again",
            )
        return artifact


def lasting(record: BuildRecord, case: Case) -> tuple[str, ...]:
    """What outlives a launch: variables of the source, and workspaces that are zeroed once.

    Variables that the spec fills do not.
    """
    once = [plan.name for plan in case.buffers if plan.init == "zero-once"]
    return (*variables(record, case), *once)


def approximate(record: BuildRecord) -> bool:
    """Whether an instruction of the artifact is known within an error only."""
    facts = record.code_object
    return any(fact.name.endswith(APPROXIMATE) and fact.value != "none" for fact in facts)


def variables(record: BuildRecord, case: Case) -> tuple[str, ...]:
    """Variables of the case's source that outlive a launch; those that the spec fills do not."""
    told = [fact.value for fact in record.code_object if fact.name == WRITABLE]
    names = [name for value in told for name in value.split(", ")]
    filled = {*symbols_of(case.variant), *references(case.variant).values()}
    return tuple(name for name in names if name not in filled)


def device_record(device: Device, probe: Probe, facts: Iterable[Fact] = ()) -> DeviceRecord:
    """Evidence of a device: what was found of it, and what is new of what its runtime `told`."""
    known = {(fact.name, fact.source) for fact in probe.facts}
    new = [fact for fact in facts if (fact.name, fact.source) not in known]
    return DeviceRecord(
        name=device.name,
        device_class=probe.device_class,
        available=probe.available,
        arch=probe.arch,
        facts=[
            FactRecord(name=fact.name, value=fact.value, source=fact.source)
            for fact in (*probe.facts, *new)
        ],
        missing=probe.missing,
        hint=probe.hint,
        non_claims=list(device.non_claims),
    )
