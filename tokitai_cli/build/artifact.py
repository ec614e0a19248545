"""Building one harness into one executable, or finding it in the cache."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

import msgspec

from tokitai_cli import flags, process, resources
from tokitai_cli.build import entries, store
from tokitai_cli.build.compiler import COMPILE_SECONDS, command_of, compile_in, failure
from tokitai_cli.build.harness import harness_context, harness_text, template_digest
from tokitai_cli.build.headers import (
    Digests,
    probed,
    read_depfile,
    shadows,
    stamp,
)
from tokitai_cli.build.identity import identify
from tokitai_cli.build.scan import Finding, refuse
from tokitai_cli.errors import BuildError, Location
from tokitai_cli.model.device import Recipe
from tokitai_cli.model.events import BuildFinished, BuildRunning, BuildStarted, Listener
from tokitai_cli.model.evidence import BuildRecord, CompilerRecord, FactRecord
from tokitai_cli.model.harness import HarnessRequest
from tokitai_cli.storage import data_sha256, file_sha256, sha256

# Names inside the build's own folder, so that the recorded command is the same on every run.
_DEPFILE = "child.d"
_OBJECT = "child.o"
# Variables that say where things lie, not what is built; what they lead to is in the key by itself.
_PLACES = frozenset({"HOME", "PATH", "TMPDIR", "XDG_CACHE_HOME", "ZIG_GLOBAL_CACHE_DIR"})
_ATTEMPTS = 2


class Artifact(msgspec.Struct, frozen=True):
    """An executable that serves `request`.

    key: content key. seconds: time that build() took. note: a damaged entry that was rebuilt, or a
    cache that cannot be used. log_path: what the compiler printed.
    """

    path: Path
    key: str
    request: HarnessRequest
    record: BuildRecord
    cached: bool
    seconds: float
    note: str
    log_path: Path


class _Job(msgspec.Struct, frozen=True):
    """One build with everything that is known before the compiler runs."""

    request: HarnessRequest
    recipe: Recipe
    place: store.Location
    source: bytes
    findings: list[Finding]
    compiler: CompilerRecord
    first_key: str

    @property
    def log_path(self) -> Path:
        return self.place.part("logs") / f"{self.first_key[:32]}.log"


def build(
    request: HarnessRequest,
    recipe: Recipe,
    *,
    listener: Listener | None = None,
    timeout: float = COMPILE_SECONDS,
) -> Artifact:
    """Build `request`, or take it from the cache where everything that went into it is the same.

    Raises BuildError where the source cannot be read, holds what the device cannot run, or the
    compiler fails (first errors with file and line; the log's path) or runs longer than `timeout`
    seconds.
    """
    start = time.monotonic()
    try:
        job = _prepare(request, recipe)
        found, note = entries.find(job.place, job.first_key, Digests())
        cached = found is not None
        if found is None:
            if listener is not None:
                listener(BuildStarted(recipe.device, str(request.source), recipe.notice))
            found = _compile(job, timeout, listener)
    except OSError as error:
        raise BuildError(
            f"the build cache cannot be used: {error}",
            mend="set TOKITAI_CACHE to a folder on a file system with room",
        ) from error
    note = "; ".join(text for text in (job.place.note, note) if text)
    seconds = time.monotonic() - start
    if listener is not None:
        listener(BuildFinished(recipe.device, str(request.source), cached, seconds, note))
    record = found.entry.record
    return Artifact(
        found.path, found.entry.key, request, record, cached, seconds, note, job.log_path
    )


def failed_record(request: HarnessRequest, recipe: Recipe | None, error: BuildError) -> BuildRecord:
    """Evidence of a build that failed; digests of what was there."""
    digests = Digests()
    return BuildRecord(
        device=recipe.device if recipe else "",
        arch=recipe.arch if recipe else "",
        source=str(request.source),
        source_sha256=digests.of(str(request.source)),
        harness_sha256="",
        headers={},
        command=list(error.command),
        compiler=None,
        defines=dict(request.defines),
        artifact_sha256="",
        code_object=[],
        notes=[],
        failed=list(error.first_errors) or [str(error)],
    )


def _prepare(request: HarnessRequest, recipe: Recipe) -> _Job:
    try:
        source = request.source.read_bytes()
    except OSError as error:
        raise BuildError(
            f"the kernel source cannot be read: {error.strerror}", where=Location(request.source)
        ) from error
    findings = refuse(request.source, source.decode("utf-8", "replace"), recipe.device)
    place = store.location()
    compiler = identify(recipe)
    first_key = data_sha256(
        {
            "format": store.FORMAT,
            "source": [str(request.source), source],
            "harness": [template_digest(), harness_context(request)],
            "defines": request.defines,
            "command": [recipe.command, recipe.link, recipe.shared_guards],
            "environment": {
                name: value for name, value in recipe.environment.items() if name not in _PLACES
            },
            "features": recipe.resolved_features,
            "compiler": compiler,
            "device": [recipe.device, recipe.arch],
        }
    )
    return _Job(request, recipe, place, source, findings, compiler, first_key)


def _compile(job: _Job, timeout: float, listener: Listener | None) -> entries.Found:
    """Compile in a temporary folder and publish it.

    A file that changed while the compiler ran could leave an artifact under the digest of another
    text, so such a build is done once more.
    """
    for _ in range(_ATTEMPTS):
        folder = process.make_temporary_folder(job.place.part("tmp"), prefix="build-")
        try:
            started_ns = time.time_ns()
            text = harness_text(job.request)
            (folder / entries.HARNESS).write_text(text, encoding="utf-8")
            job.log_path.unlink(missing_ok=True)
            command, printed = _run_compiler(job, folder, timeout, listener)
            manifest = _manifest(job, folder, command)
            if _changed_since(job, manifest, started_ns):
                continue
            (folder / _DEPFILE).unlink()
            record = _record(job, folder, command, manifest, printed)
            return entries.publish(job.place, folder, job.first_key, manifest, record)
        finally:
            process.remove_temporary_folder(folder)
    raise BuildError(
        "the kernel source or one of its headers keeps changing while it is compiled",
        where=Location(job.request.source),
    )


def _run_compiler(
    job: _Job, folder: Path, timeout: float, listener: Listener | None
) -> tuple[tuple[str, ...], str]:
    """Compile in `folder`, and link; returns the commands and what the compiler printed."""
    recipe = job.recipe
    made = _OBJECT if recipe.link else entries.ARTIFACT
    command = command_of(
        recipe.command, {"source": entries.HARNESS, "output": made, "depfile": _DEPFILE}
    )
    printed = _run_step(job, folder, command, made, timeout, listener)
    if not recipe.link:
        return command, printed
    if recipe.shared_guards is not None:
        from tokitai_cli.build.guards import guard_shared_arrays  # brings numpy

        guard_shared_arrays(folder / made, recipe.shared_guards)
    link = command_of(recipe.link, {"object": made, "output": entries.ARTIFACT})
    printed += _run_step(job, folder, link, entries.ARTIFACT, timeout, listener)
    (folder / made).unlink()
    return (*command, "&&", *link), printed


def _run_step(
    job: _Job,
    folder: Path,
    command: tuple[str, ...],
    made: str,
    timeout: float,
    listener: Listener | None,
) -> str:
    """Run one command of a build, which makes the file `made`; returns what it printed."""

    def waiting(seconds: float) -> None:
        if listener is not None:
            listener(BuildRunning(job.recipe.device, str(job.request.source), seconds))

    done = compile_in(folder, job.recipe, command, job.log_path, timeout, waiting)
    if done.returncode != 0 or not (folder / made).is_file():
        raise failure(
            done,
            job.recipe,
            command,
            source=job.request.source,
            text=job.source.decode("utf-8", "replace"),
            findings=job.findings,
            log_path=job.log_path,
        )
    return done.stdout + done.stderr


def _manifest(job: _Job, folder: Path, command: tuple[str, ...]) -> entries.Manifest:
    depfile = folder / _DEPFILE
    if not depfile.is_file():
        raise BuildError(f"{job.recipe.compiler.name} wrote no list of headers", command=command)
    own = {folder / entries.HARNESS, job.request.source}
    used = read_depfile(depfile.read_text(encoding="utf-8", errors="surrogateescape"), folder)
    headers = [path for path in used if path not in own]
    digests = Digests()
    folders = [job.request.source.parent, *flags.include_folders(command)]
    foreign = [
        path for path in headers if not any(path.is_relative_to(folder) for folder in folders)
    ]
    ours = [path for path in headers if path not in foreign]
    present, absent = probed([job.request.source, *ours], folders)
    names = dict.fromkeys([*map(str, headers), *sorted(present)])
    return entries.Manifest(
        headers={name: digests.of(name) for name in names},
        absent=sorted({*shadows(headers, folders), *absent}),
        stamps={str(path): stamp(str(path)) for path in foreign},
    )


def _changed_since(job: _Job, manifest: entries.Manifest, started_ns: int) -> bool:
    """Whether the source, or a header, was written while the compiler ran."""
    if job.request.source.read_bytes() != job.source:
        return True
    finished_ns = time.time_ns()
    return any(
        started_ns <= os.stat(path).st_mtime_ns <= finished_ns  # noqa: PTH116 - hundreds of files
        for path in manifest.headers
    )


def _record(
    job: _Job,
    folder: Path,
    command: tuple[str, ...],
    manifest: entries.Manifest,
    printed: str,
) -> BuildRecord:
    artifact = folder / entries.ARTIFACT
    facts = [FactRecord(name="bytes", value=str(artifact.stat().st_size), source="file system")]
    if job.recipe.resolved_features:
        facts.append(
            FactRecord(
                name="cpu-features", value=job.recipe.resolved_features, source="/proc/cpuinfo"
            )
        )
    if job.recipe.inspect is not None:
        facts += [
            FactRecord(name=fact.name, value=fact.value, source=fact.source)
            for fact in job.recipe.inspect(artifact, printed)
        ]
    return BuildRecord(
        device=job.recipe.device,
        arch=job.recipe.arch,
        source=str(job.request.source),
        source_sha256=sha256(job.source),
        harness_sha256=file_sha256(folder / entries.HARNESS),
        headers=manifest.headers,
        command=list(command),
        compiler=job.compiler,
        defines=dict(job.request.defines),
        artifact_sha256=file_sha256(artifact),
        code_object=facts,
        notes=[],
        failed=[],
        header_texts=_header_texts(manifest),
    )


def _header_texts(manifest: entries.Manifest) -> dict[str, str]:
    """Texts of the user's own headers: those that came neither with the compiler nor with this tool."""
    shipped = resources.kernels_dir()
    texts = {}
    for path, digest in manifest.headers.items():
        if path not in manifest.stamps and not Path(path).is_relative_to(shipped):
            with contextlib.suppress(OSError):
                data = Path(path).read_bytes()
                if sha256(data) == digest:
                    texts[path] = data.decode("utf-8", "replace")
    return texts
