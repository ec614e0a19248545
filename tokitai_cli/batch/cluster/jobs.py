"""A cluster of one's own: jobs of a batch system, by a profile in dask-jobqueue's format."""

from __future__ import annotations

import asyncio
import shlex
import shutil
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dask
import msgspec
from distributed.deploy.spec import ProcessInterface
from distributed.security import Security

from tokitai_cli.batch.cluster.security import TlsFiles, configured, encrypted
from tokitai_cli.core.errors import Location, UsageError, near

# Section of the profile -> class of dask_jobqueue.
_SYSTEMS = {
    "htcondor": "HTCondorCluster",
    "lsf": "LSFCluster",
    "moab": "MoabCluster",
    "oar": "OARCluster",
    "pbs": "PBSCluster",
    "sge": "SGECluster",
    "slurm": "SLURMCluster",
}
_EXAMPLE = "docs/cluster.md has a whole profile"
# What would let scheduler or workers speak without TLS.
_OURS = {"protocol", "security"}
_DASHBOARD = "127.0.0.1:0"


class Profile(msgspec.Struct, frozen=True):
    """A batch system with its options, how many jobs to ask for, and the credentials of all roles."""

    file: Path
    system: str
    options: dict[str, Any]
    jobs: int
    security: Security


def read_profile(file: Path, jobs: int, tls: TlsFiles | None) -> Profile:
    """Read the file, and look whether the batch system is there. Raises UsageError for every fault."""
    if jobs < 1:
        raise UsageError("--cluster: give the number of jobs to submit with --jobs N, at least 1")
    system, options = _section(file)
    _check(file, system, options)
    if tls is not None or configured():
        security = encrypted(tls)
    elif not options.get("shared-temp-directory"):
        raise _fault(
            file,
            f"jobqueue.{system}",
            "workers on other machines need TLS: Dask's messages are pickles, and whoever can connect "
            "can run code",
            "name a folder that the nodes share as shared-temp-directory, for temporary credentials, "
            "or give --tls-ca, --tls-cert and --tls-key",
        )
    else:
        security = _temporary(file)
    return Profile(file, system, options, jobs, security)


class JobCluster:
    """Jobs that run workers, and their scheduler in a thread of this process.

    Asks for the jobs when made. Raises UsageError where the options cannot be used. `refused` is what
    the batch system said to a job that it did not take, empty where it took all.
    """

    def __init__(self, profile: Profile) -> None:
        self._refusals: list[str] = []
        self._system = profile.system
        options = {f"jobqueue.{profile.system}.{k}": v for k, v in profile.options.items()}
        # Jobs read their options when they are submitted, not only here.
        setting: Any = dask.config.set
        self._configured = setting(options)
        scheduler = {
            "dashboard_address": _DASHBOARD,
            **(profile.options.get("scheduler-options") or {}),
        }
        kind = _cluster_class(profile.system)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)
                self.dask = kind(
                    job_cls=_telling(kind.job_cls, self._refusals),
                    security=profile.security,
                    scheduler_options=scheduler,
                    silence_logs="critical",
                )
        except (ValueError, TypeError, OSError, RuntimeError) as error:
            self._configured.__exit__(None, None, None)
            told = " ".join(str(error).split())
            raise _fault(profile.file, f"jobqueue.{profile.system}", told, _EXAMPLE) from error
        self.dask.scale(jobs=profile.jobs)

    @property
    def refused(self) -> str:
        """What the batch system said when it refused a job."""
        return self._refusals[0] if self._refusals else ""

    def close(self, timeout: float) -> None:
        """Cancel the jobs and end the scheduler."""
        try:
            self.dask.close(timeout)
        finally:
            self._configured.__exit__(None, None, None)
            # Keys that were written for the workers go now, not when the cluster is collected.
            for name, value in vars(self.dask).items():
                if name.startswith("_job_") and hasattr(value, "close"):
                    value.close()


def _section(file: Path) -> tuple[str, dict[str, Any]]:
    """The batch system that the profile is for, and its options with dashes in their names."""
    if not file.is_file():
        raise UsageError(f"--cluster {file}: no such file", hint=_EXAMPLE)
    try:
        read = [*dask.config.collect_yaml([str(file)])]
    except (ValueError, OSError) as error:
        raise UsageError(f"--cluster {file}: {' '.join(str(error).split())}") from error
    content = read[0] if read else {}
    found = content.get("jobqueue") if isinstance(content, Mapping) else None
    if not isinstance(found, Mapping) or len(found) != 1:
        raise _fault(file, "jobqueue", "one section of one batch system is needed", _EXAMPLE)
    (system, options), *_ = found.items()
    if system not in _SYSTEMS:
        raise _fault(file, f"jobqueue.{system}", "unknown system", near(str(system), _SYSTEMS))
    if not isinstance(options, Mapping):
        raise _fault(file, f"jobqueue.{system}", "options are needed", _EXAMPLE)
    return system, {str(name).replace("_", "-"): value for name, value in options.items()}


def _check(file: Path, system: str, options: Mapping[str, Any]) -> None:
    """Raise UsageError for options that dask-jobqueue would overlook or that switch TLS off."""
    kind = _cluster_class(system)
    known = {name.replace("_", "-") for name in dask.config.get(f"jobqueue.{system}")}
    for name in options:
        if name not in known:
            where = f"jobqueue.{system}.{name}"
            raise _fault(file, where, "unknown option", near(name, known))
    scheduler = options.get("scheduler-options") or {}
    extra = [str(word) for word in options.get("worker-extra-args") or ()]
    taken = [f"scheduler-options.{name}" for name in sorted(_OURS & set(scheduler))]
    taken += [f"worker-extra-args {word}" for word in extra if _is_security(word)]
    if taken:
        raise _fault(
            file,
            f"jobqueue.{system}",
            f"{taken[0]}: workers and scheduler support only TLS",
            "remove it; credentials are given by --tls-ca, --tls-cert and --tls-key",
        )
    command = shlex.split(kind.job_cls.submit_command)[0]
    if shutil.which(command) is None:
        raise UsageError(
            f"--cluster {file}: {system} is not on this machine: there is no {command}",
            hint="run on a machine that can submit jobs, or give the address of a scheduler",
        )


def _temporary(file: Path) -> Security:
    """Credentials for this one cluster, made now."""
    kind: Any = Security
    try:
        made: Security = kind.temporary()
    except ImportError as error:
        raise UsageError(
            f"--cluster {file} needs a package that is not installed ({error})",
            hint="pip install 'tokitai[cluster]'",
        ) from error
    return made


def _is_security(word: str) -> bool:
    return word.partition("=")[0] == "--protocol" or word.startswith("--tls-")


def _cluster_class(system: str) -> Any:
    try:
        import dask_jobqueue
    except ImportError as error:
        raise UsageError(
            f"--cluster needs a package that is not installed ({error})",
            hint="pip install 'tokitai[cluster]'",
        ) from error
    return getattr(dask_jobqueue, _SYSTEMS[system])


def _telling(job: type[Any], refusals: list[str]) -> type[Any]:
    """The class of jobs, with what is wrong with a submission kept where it else is only logged."""

    class Telling(job):  # type: ignore[misc]
        async def start(self) -> None:
            try:
                await super().start()
            except asyncio.CancelledError:
                raise
            except Exception as error:  # noqa: BLE001 - whatever the submission ran into
                refusals.append(" ".join(str(error).split()))
                # Counts as started: nothing would pick up the error, and there is no job to end.
                started: Any = ProcessInterface.start
                await started(self)

    return Telling


def _fault(file: Path, key: str, message: str, hint: str) -> UsageError:
    return UsageError(message, where=Location(file, key=key), hint=hint)
