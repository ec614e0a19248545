"""Builds last from one test session to the next, and the longest tests start first."""

from __future__ import annotations

import fcntl
import functools
import os
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import settings

from tokitai_cli.build import cache_store
from tokitai_cli.core.model.options import WATCH_VARIABLE
from tokitai_cli.core.storage import data_sha256
from tokitai_cli.devices import nvidia

LASTING = Path(__file__).parent.parent / ".pytest_cache"
BUILDS = LASTING / "builds"
# The tool's builds, those of tests/devices/cpu, and specs that cluster workers unpacked.
_PARTS = ("builds/*/artifacts/*", "cpu-children/*", "unpacked/*/*")
_DAY = 86_400.0
BEFORE = pytest.StashKey[dict[str, int]]()
# By what they take, the longest first: a long one at the end leaves a worker alone with it.
LONG = (
    "test_ziglang.py",
    "test_faults.py",
    "test_vacuity_tables.py",
    "test_ci_recipes.py",
    "test_batch_run.py",
    "test_cluster.py",
    "test_tool_killed.py",
    "test_child_faults.py",
    "test_pytest_plugin.py",
)

# A test that waits for a core has done nothing wrong.
settings.register_profile("tokitai", deadline=None)
settings.load_profile("tokitai")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Keep the tests' folders at one place: a build is named by the path of its source, too.

    Sessions beside each other have places of their own.
    """
    if config.option.basetemp is not None:
        return  # the caller's, or a worker's, whose session has chosen
    name = f"tokitai-tests-{os.getuid()}-{data_sha256(str(LASTING))[:8]}"
    place = Path(tempfile.gettempdir()) / name
    place.mkdir(mode=0o700, exist_ok=True)
    for number in range(64):
        lock = (place / f"{number}.lock").open("w")
        with suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            config.add_cleanup(lock.close)
            config.option.basetemp = str(place / str(number))
            return
        lock.close()


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new folder, in every session at the same place, whichever worker runs the test."""
    base = tmp_path_factory.getbasetemp()
    if hasattr(request.config, "workerinput"):
        base = base.parent
    words = re.sub(r"\W", "_", request.node.name)[:30]
    folder = base / f"{words}-{data_sha256(request.node.nodeid)[:12]}"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def new_path(tmp_path: Path) -> Path:
    """A folder where none has been: what lies in it has never been built."""
    folder = tmp_path / secrets.token_hex(8)
    folder.mkdir()
    return folder


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {name: place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: places.get(item.path.name, len(LONG)))


@pytest.fixture(scope="session", autouse=True)
def build_cache() -> Iterator[Path]:
    """A build is named by all that goes into it, so that one of an earlier session serves as well."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOKITAI_CACHE", str(BUILDS))
        patch.setenv(WATCH_VARIABLE, "off")  # but where a test is about it: it takes its time
        patch.delenv("SOURCE_DATE_EPOCH", raising=False)
        yield BUILDS


@functools.cache
def has_gpu() -> bool:
    """Whether this machine has one: asked once, for nvidia-smi takes its time."""
    return bool(nvidia.gpus()[0])


@pytest.fixture(scope="module", autouse=True)
def no_gpu_in_module(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fixtures of a module see a GPU of this machine where one of its tests is marked `gpu`."""
    items = [one for one in request.session.items if one.getparent(pytest.Module) is request.node]
    yield from _without_gpu(items)


@pytest.fixture(autouse=True)
def no_gpu(request: pytest.FixtureRequest) -> Iterator[None]:
    """A GPU of this machine is there for the tests marked `gpu` alone: `auto` is cpu in all others."""
    yield from _without_gpu([request.node])


def _without_gpu(items: list[pytest.Item]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if not any(one.get_closest_marker("gpu") for one in items) and has_gpu():
            patch.setenv(nvidia.VISIBLE, "")
        yield


def _sentinel() -> Path:
    """A file of the build cache that is there until a test clears what all tests share."""
    return BUILDS / cache_store.FORMAT / "logs" / "of-the-tests"


def checkout() -> dict[str, int]:
    """Files of the checkout that no test may change, by name, with their times: all but caches."""
    root = LASTING.parent
    files = [*root.glob("*"), *(root / "reports").rglob("*")]
    kept = [path for path in files if path.is_file() and not path.name.startswith(".")]
    return {str(path.relative_to(root)): path.stat().st_mtime_ns for path in kept}


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail where a test wrote into the checkout, or cleared the cache that all of them build into.

    `make verify` has left its reports in the checkout.
    """
    before = session.config.stash.get(BEFORE, None)
    if before is None or os.environ.get("TOKITAI_UPDATE_GOLDEN"):
        return
    changed = sorted(name for name, _ in before.items() ^ checkout().items())
    if changed:
        print(f"\ntests wrote into the checkout: {', '.join(dict.fromkeys(changed))}")
    if not (kept := _sentinel().exists()):
        print("\na test cleared the build cache that all tests share")
    if changed or not kept:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_sessionstart(session: pytest.Session) -> None:
    """Remove what is older than a week; what is still in use is built again."""
    if hasattr(session.config, "workerinput"):
        return
    session.config.stash[BEFORE] = checkout()
    _sentinel().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _sentinel().touch()
    for path in (path for part in _PARTS for path in LASTING.glob(part)):
        if path.stat().st_mtime < time.time() - 7 * _DAY:
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
