"""A device in a run: its artifacts, and the one child that serves cases on it at a time."""

from __future__ import annotations

import dataclasses
from types import TracebackType

from tokitai_cli import build, run
from tokitai_cli.errors import BuildError
from tokitai_cli.model.case import Case, RunResult
from tokitai_cli.model.device import Device, Probe, Recipe
from tokitai_cli.model.events import Listener
from tokitai_cli.model.evidence import BuildRecord
from tokitai_cli.model.harness import HarnessRequest
from tokitai_cli.pipeline.options import RunOptions
from tokitai_cli.pipeline.prepare import Prepared


@dataclasses.dataclass(frozen=True, slots=True)
class Built:
    """An artifact or the failure to build one; `key` names it in the evidence."""

    key: str
    record: BuildRecord
    artifact: build.Artifact | None
    error: BuildError | None


class Lane:
    """Context manager: builds for one device, and serves cases with one child at a time."""

    def __init__(
        self, device: Device, probe: Probe, options: RunOptions, listener: Listener
    ) -> None:
        self.device = device
        self.probe = probe
        self._options = options
        self._listener = listener
        self._builds: dict[tuple[HarnessRequest, tuple[str, ...]], Built] = {}
        self._server: run.Server | None = None
        self._serving = ""

    def __enter__(self) -> Lane:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.replace()

    @property
    def builds(self) -> tuple[Built, ...]:
        """Everything that was built, or failed to be, so far."""
        return tuple(self._builds.values())

    def built(self, case: Case) -> Built:
        """Artifact that serves the case, built once per (source, defines, flags)."""
        request = build.harness_request(case)
        key = (request, tuple(case.variant.flags))
        if key not in self._builds:
            self._builds[key] = self._build(case, request)
        return self._builds[key]

    def serve(self, case: Case, prepared: Prepared, artifact: build.Artifact) -> RunResult:
        """Run the case in the lane's child. Raises ChildError, NotRunError, InadmissibleError."""
        options = self._options
        if self._server is None or not self._server.alive or self._serving != artifact.key:
            self.replace()
            self._server = run.Server(
                self.device.launch_command(artifact.path, options.device_options),
                self.device.launch_environment(options.device_options),
                artifact.request,
            )
            self._serving = artifact.key
        return self._server.run(
            case,
            prepared.arrays,
            repetitions=options.repetitions,
            warmups=options.warmups,
            timeout=options.timeout,
            seed=case.seed,
        )

    def replace(self) -> None:
        """End the child; the next case gets a fresh one."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def _build(self, case: Case, request: HarnessRequest) -> Built:
        recipe: Recipe | None = None
        try:
            recipe = self.device.recipe(
                self._options.device_options, dict(request.defines), tuple(case.variant.flags)
            )
            artifact = build.build(request, recipe, listener=self._listener)
        except BuildError as error:
            record = build.failed_record(request, recipe, error)
            name = f"failed-{self.device.name}-{len(self._builds)}"
            return Built(name, record, None, error)
        return Built(artifact.key, artifact.record, artifact, None)
