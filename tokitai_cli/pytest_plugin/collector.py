"""Hooks of the plugin: what is a spec, and that none is passed over in silence."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tokitai_cli.core.model.wording import plural

if TYPE_CHECKING:
    from tokitai_cli.pytest_plugin.items import SpecFile, SpecSession

# What no test of a case is checked for.
UNSANITIZED = (
    "tokitai: races and memory accesses inside the kernels: not checked by a sanitizer; "
    "`tokitai verify` and `tokitai batch --sanitize` check them"
)
_SUFFIXES = (".yaml", ".yml")


class SpecCollector:
    """Hooks that are only there once a folder of specs was named.

    They import the rest of the tool with the first file that is looked at, so that a run of other
    tests in such a project does not wait for it. roots: those folders, or files. wanted: those of
    them that must have a spec, since they are to be collected whole.
    """

    def __init__(self, config: pytest.Config, roots: tuple[Path, ...], wanted: list[Path]) -> None:
        self._roots = roots
        self._wanted = wanted
        self._suites = tuple(config.getoption("tokitai_suite"))
        self._device: str = config.getoption("tokitai_device")
        self._met: set[Path] = set()
        self._session: SpecSession | None = None

    @pytest.hookimpl
    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> SpecFile | None:
        """A spec in one of the folders; other YAML files there are none of ours."""
        if file_path.suffix.lower() not in _SUFFIXES:
            return None
        real = file_path.resolve()
        roots = [root for root in self._roots if real.is_relative_to(root)]
        if not roots:
            return None
        from tokitai_cli.pytest_plugin import items

        if real not in roots and not items.is_spec(file_path, real, roots):
            return None
        if self._session is None:
            self._session = items.SpecSession(self._suites, self._device)
        self._met.update(roots)
        return items.SpecFile.from_parent(parent, path=file_path, specs=self._session)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, session: pytest.Session, items: list[pytest.Item]
    ) -> None:
        """Refuse to pass by in silence where cases were asked for and there is not one.

        With --lf files without a failure are not even read, and nothing can be said of them.
        """
        specs = self._session
        empty = [str(root) for root in self._wanted if root not in self._met]
        if empty:
            text = f"no spec in {', '.join(empty)}, or pytest is configured to ignore it"
        elif specs and specs.read and not specs.cases and not session.testsfailed:
            text = f"no case was selected: {'; '.join(specs.notes)}"
        else:
            return
        if not hasattr(session.config, "workerinput"):
            raise pytest.UsageError(f"tokitai specs: {text}")
        # A worker of xdist has no other way to tell than a test that fails.
        items.append(Refusal.from_parent(session, name="tokitai specs", text=text))

    @pytest.hookimpl
    def pytest_report_collectionfinish(self) -> list[str]:
        """How many cases there are, and what is no case."""
        specs = self._session
        if specs is None or not specs.read:
            return []
        told = f"tokitai: {plural(specs.cases, 'case')} of {plural(specs.read, 'spec')}"
        left = f", {plural(specs.left_out, 'combination')} left out" if specs.left_out else ""
        return [told + left, *specs.notes]

    @pytest.hookimpl
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """What the cases that ran were not checked for, also where workers of xdist ran them."""
        reports = [one for several in terminalreporter.stats.values() for one in several]
        if any("verdict" in dict(getattr(one, "user_properties", ())) for one in reports):
            terminalreporter.write_line(UNSANITIZED)

    @pytest.hookimpl
    def pytest_unconfigure(self) -> None:
        """End the child that serves kernels, also after Ctrl-C."""
        if self._session is not None:
            self._session.bench.close()


class Refusal(pytest.Item):
    """A test that fails, since there is nothing to test."""

    def __init__(self, *, text: str, **rest: object) -> None:
        super().__init__(**rest)  # type: ignore[arg-type]
        self._text = text

    def runtest(self) -> None:
        """Fail."""
        pytest.fail(self._text, pytrace=False)
