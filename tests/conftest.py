"""Every test session has a build cache of its own, shared by its workers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# A test that waits for a core has done nothing wrong.
settings.register_profile("tokitai", deadline=None)
settings.load_profile("tokitai")


@pytest.fixture(scope="session", autouse=True)
def build_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    folder = base / "build-cache"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOKITAI_CACHE", str(folder))
        patch.delenv("SOURCE_DATE_EPOCH", raising=False)
        yield folder
