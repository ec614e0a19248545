"""From options to an executor: everything that can be refused is refused before anything connects."""

from __future__ import annotations

from pathlib import Path

from tokitai_cli.batch.collected import Collected
from tokitai_cli.cluster.executor import DaskExecutor
from tokitai_cli.cluster.jobs import Profile, read_profile
from tokitai_cli.cluster.parcel import pack
from tokitai_cli.cluster.security import Address, TlsFiles, checked
from tokitai_cli.errors import UsageError
from tokitai_cli.model.events import Event, Listener


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
            "--executor dask needs either --scheduler or --cluster",
            mend="--scheduler tls://HOST:8786, or --cluster PROFILE.yaml --jobs N",
        )
    if cluster_file is not None:
        target = read_profile(cluster_file, jobs, tls)
    elif jobs:
        raise UsageError("--jobs goes with --cluster: a scheduler has the workers that it has")
    else:
        target = checked(scheduler, tls)
    parcels = {one.entry.digest: pack(one.loaded) for one in collected.specs}
    return DaskExecutor(collected, parcels, target, listener=listener, wait=wait)
