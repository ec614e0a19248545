"""A batch on many machines, over Dask distributed (extra `cluster`).

Importing it without the extra raises UsageError that says how to install it.
"""

from __future__ import annotations

from pathlib import Path

from tokitai_cli.core.errors import UsageError

try:
    import distributed  # noqa: F401 - only looked for
except ImportError as error:
    raise UsageError(
        f"other machines need packages that are not installed ({error})",
        hint="pip install 'tokitai[cluster]'",
    ) from error

from tokitai_cli.batch.cluster.dask_executor import DaskExecutor
from tokitai_cli.batch.cluster.jobs import Profile, read_profile
from tokitai_cli.batch.cluster.security import Address, TlsFiles, checked
from tokitai_cli.batch.cluster.spec_archive import pack
from tokitai_cli.batch.select.collected import Collected
from tokitai_cli.core.model.events import Event, Listener

__all__ = ["DaskExecutor", "TlsFiles", "open_executor"]


def _silent(event: Event) -> None:
    """Tell nobody."""


def open_executor(
    collected: Collected,
    *,
    scheduler: str = "",
    cluster_file: Path | None = None,
    jobs: int = 0,
    tls: TlsFiles | None = None,
    listener: Listener = _silent,
    wait: float | None = None,
) -> DaskExecutor:
    """Executor over the workers of a scheduler, by its address, or over jobs, by a profile.

    scheduler: tcp://HOST:PORT on loopback, or tls://HOST:PORT. cluster_file: YAML in dask-jobqueue's own
    format, of which `jobs` are asked for. listener: gets notes while workers are missing; wait: seconds
    after which that is an error (60 for a scheduler, no limit for jobs). Nothing is connected before
    the executor is entered. Raises UsageError for what cannot be used or would not be safe.
    """
    target: Address | Profile
    if bool(scheduler) == (cluster_file is not None):
        raise UsageError(
            "other machines need either --scheduler or --cluster",
            hint="--scheduler tls://HOST:8786, or --cluster PROFILE.yaml --jobs N",
        )
    if cluster_file is not None:
        target = read_profile(cluster_file, jobs, tls)
    elif jobs:
        raise UsageError("--jobs needs --cluster: a scheduler already has its workers")
    else:
        target = checked(scheduler, tls)
    archives = {one.entry.digest: pack(one.loaded) for one in collected.specs}
    return DaskExecutor(collected, archives, target, listener=listener, wait=wait)
