"""From spec files to pytest's tree: a file for each spec, an item for each case."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tokitai_cli import spec
from tokitai_cli.batch.select.batch_options import batch_options
from tokitai_cli.batch.select.collect import collect
from tokitai_cli.batch.select.collected import BatchCase, Collected
from tokitai_cli.batch.store import holds_batch
from tokitai_cli.core.errors import TokitaiError
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.core.model.wording import visible
from tokitai_cli.pytest_plugin.bench import Bench, Served
from tokitai_cli.pytest_plugin.failure import failure_text, fault_text


def is_spec(path: Path, real: Path, roots: list[Path]) -> bool:
    """Whether a file in the folders `roots` is meant: a spec, no copy in the results of a batch."""
    folders = [folder for folder in real.parents if any(map(folder.is_relative_to, roots))]
    if any(map(holds_batch, folders)):
        return False
    try:
        return spec.is_spec(path)
    except TokitaiError:  # told when it is collected
        return True


class SpecSession:
    """What the specs of one session have in common: options, results, and what is told of them."""

    def __init__(self, suites: tuple[str, ...], device: str) -> None:
        self.bench = Bench()
        self.read = 0
        self.cases = 0
        self.left_out = 0
        self.notes: list[str] = []
        self._suites = suites
        self._device = device

    def collect(self, path: Path) -> Collected:
        """Cases of one file. Raises UsageError, SpecError."""
        options = batch_options(
            [path],
            suite=self._suites,
            device=self._device,
            # Their number decides how many threads a case has on the cpu device.
            jobs=int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")),
        )
        found = collect(options)
        self.read += 1
        self.cases += len(found.cases)
        self.left_out += found.left_out
        # Notes on options speak of all specs of a batch, and this is one of several.
        self.notes += [visible(note) for note in found.skipped if not note.startswith("--")]
        self.bench.add(path, found)
        return found


class SpecFile(pytest.File):
    """A spec file. What is wrong with it is told as the command line tells it."""

    def __init__(self, *, specs: SpecSession, **rest: object) -> None:
        super().__init__(**rest)  # type: ignore[arg-type]
        self._specs = specs

    def collect(self) -> Iterator[CaseItem]:
        """An item for each case that the suite selects."""
        try:
            found = self._specs.collect(self.path)
        except TokitaiError as error:
            raise self.CollectError(visible(str(error))) from None
        for case in found.cases:
            yield CaseItem.from_parent(self, name=case.id, case=case, bench=self._specs.bench)


class CaseItem(pytest.Item):
    """A case on one device. It passes where its verdict in its group is `verified`."""

    def __init__(self, *, case: BatchCase, bench: Bench, **rest: object) -> None:
        super().__init__(**rest)  # type: ignore[arg-type]
        self._case = case
        self._bench = bench
        self.add_marker("tokitai")
        if self.config.pluginmanager.hasplugin("xdist"):
            # With --dist loadgroup the cases that are judged together stay on one worker.
            self.add_marker(pytest.mark.xdist_group(case.group.replace("@", " on ")))

    def runtest(self) -> None:
        """Run the case, and where its own checks leave it open also others of its group."""
        served = self._settled()
        if isinstance(served, str):
            pytest.fail(served, pytrace=False)
        record = served.record
        self.user_properties += [("verdict", str(record.reads)), ("rerun", record.rerun)]
        for note in served.notes:
            self.add_report_section("call", "notes", f"{visible(note)}\n")
        if record.reads is Verdict.VERIFIED:
            return
        if record.vacuous:
            pytest.skip(visible(f"vacuous: {record.reason}"))
        if record.verdict is Verdict.EXPECTED_FAILURE:
            pytest.xfail(visible(record.reason))  # returns with --runxfail
        pytest.fail(failure_text(served), pytrace=False)

    def _settled(self) -> Served | str:
        """Result of the case, or in words why there is none."""
        try:
            return self._bench.settled(self.path, self._case)
        except TokitaiError as error:
            return visible(f"not-run: {error}")
        except Exception as error:  # noqa: BLE001 - no traceback for a user
            return fault_text(error)

    def reportinfo(self) -> tuple[os.PathLike[str], None, str]:
        """Where reports say that the case stands."""
        return self.path, None, self.name
