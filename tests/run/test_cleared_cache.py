"""A build cache that somebody clears while a run goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runs import run
from tests.spec_example import write_example
from tokitai_cli.build import Artifact, cache
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.run.child import Server
from tokitai_cli.run.device_session import DeviceSession


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A spec whose artifact is cleared away whenever its child is to be started."""
    monkeypatch.setenv("TOKITAI_CACHE", str(tmp_path / "cache"))
    start = DeviceSession.start

    def cleared(session: DeviceSession, artifact: Artifact) -> Server:
        cache.clear()
        return start(session, artifact)

    monkeypatch.setattr(DeviceSession, "start", cleared)
    return write_example(tmp_path / "spec")


def test_what_was_cleared_is_built_again(spec: Path, tmp_path: Path) -> None:
    evidence = run(spec, tmp_path / "out")
    assert {case.verdict for case in evidence.cases} == {Verdict.VERIFIED}
    assert len(evidence.builds) == 1


def test_what_has_changed_since_is_not_run(
    spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clear = cache.clear
    source = spec.parent / "vector_add.hip"

    def changed() -> int:
        source.write_text(source.read_text(encoding="utf-8") + "// changed\n", encoding="utf-8")
        return clear()

    monkeypatch.setattr(cache, "clear", changed)
    evidence = run(spec, tmp_path / "out", profile=["normal"])  # each case would be built twice
    assert {case.verdict for case in evidence.cases} == {Verdict.NOT_RUN}
    assert all("what it was built of has changed" in case.reason for case in evidence.cases)
