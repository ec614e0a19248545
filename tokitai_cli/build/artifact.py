"""Building one harness into one executable, or finding it in the cache."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import msgspec

from tokitai_cli.build import cache_store, entries
from tokitai_cli.build.compiler import COMPILE_SECONDS
from tokitai_cli.build.harness_text import harness_context, template_digest
from tokitai_cli.build.identity import identify
from tokitai_cli.build.inputs import Digests, Manifest
from tokitai_cli.build.scan import Finding, refuse, refuse_cuda, refuse_textures
from tokitai_cli.build.steps import Job, circumstances, make, record_of
from tokitai_cli.core import flags, process, resources
from tokitai_cli.core.errors import BuildError, Location, UntranslatedError
from tokitai_cli.core.file_kind import is_machine_code
from tokitai_cli.core.model.device import Recipe
from tokitai_cli.core.model.events import BuildFinished, BuildStarted, Listener
from tokitai_cli.core.model.evidence import BuildRecord
from tokitai_cli.core.model.harness import HarnessRequest
from tokitai_cli.core.model.models import Models
from tokitai_cli.core.storage import data_sha256
from tokitai_cli.cpp import source_text
from tokitai_cli.cpp.source.source_files import VERSION

_ATTEMPTS = 2


class Artifact(msgspec.Struct, frozen=True):
    """An executable that serves `request`."""

    path: Path
    #: Content key.
    key: str
    request: HarnessRequest
    record: BuildRecord
    cached: bool
    #: Time that build() took.
    seconds: float
    #: A damaged entry that was rebuilt, or a cache that cannot be used.
    note: str
    #: What the compiler printed.
    log_path: Path


def build(
    request: HarnessRequest,
    recipe: Recipe,
    *,
    listener: Listener | None = None,
    timeout: float = COMPILE_SECONDS,
    models: Models | None = None,
) -> Artifact:
    """Build `request`, or take it from the cache where everything that went into it is the same.

    models: of the sources, which others may have read before. Raises BuildError where the source cannot
    be read, holds what the device cannot run, or the compiler fails (first errors with file and line;
    the log's path) or runs longer than `timeout` seconds.
    """
    start = time.monotonic()
    try:
        job = _prepare(request, recipe, timeout, listener, models or Models())
        found, note = entries.find(job.place, job.first_key, Digests())
        cached = found is not None
        if found is None:
            if listener is not None:
                listener(BuildStarted(recipe.device, str(request.source), recipe.notice))
            found = _compile(job)
    except OSError as error:
        raise BuildError(
            f"the build cache cannot be used: {error}",
            hint="set TOKITAI_CACHE to a folder on a file system with free space",
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


def _prepare(
    request: HarnessRequest,
    recipe: Recipe,
    timeout: float,
    listener: Listener | None,
    models: Models,
) -> Job:
    try:
        source = request.source.read_bytes()
    except OSError as error:
        raise BuildError(
            f"the kernel source cannot be read: {error.strerror}", where=Location(request.source)
        ) from error
    if is_machine_code(request.source):
        recipe = _of_machine_code(request, recipe)
    place = cache_store.location()
    compiler = identify(recipe)
    shipped = resources.kernels_dir()
    folders = flags.include_folders(recipe.command)
    own = [folder for folder in folders if not folder.is_relative_to(shipped)]
    findings: list[Finding] = []
    if recipe.unit is not None:
        context: dict[str, Any] = {"unit": recipe.unit.version, "kernels": request.kernels}
    else:
        texts = tuple(source_text.own_texts(request.source, own))
        refuse_cuda(request.source, texts, recipe.device)
        refuse_textures(request, recipe.device)
        context = harness_context(request, recipe, own, texts, models)
        if "taken" not in context:
            try:
                findings = refuse(request, source.decode("utf-8", "replace"), recipe.device)
            except BuildError:
                if not request.kernels:
                    raise
                context["taken"] = VERSION  # the kernels may do without it
    first_key = data_sha256(
        {
            "source": [str(request.source), source],
            "harness": [template_digest(), context],
            "defines": request.defines,
            "command": [recipe.command, recipe.link, recipe.server, recipe.shared_guards],
            **{f"stage {one.makes}": [one.command, one.version] for one in recipe.stages},
            **circumstances(recipe, compiler),
        }
    )
    return Job(
        request,
        recipe,
        place,
        source,
        findings,
        compiler,
        first_key,
        context,
        timeout,
        listener,
        own,
        models,
    )


def _of_machine_code(request: HarnessRequest, recipe: Recipe) -> Recipe:
    """The recipe for a source that is machine code; UntranslatedError for a device that has none."""
    if recipe.machine_code is not None:
        return recipe.machine_code
    raise UntranslatedError(
        f"{request.source.name} is machine code of GPUs, which the {recipe.device} device cannot "
        "execute; the host cannot run it",
        hint="--device gfx executes AMD's on the host's processor, --device rocm on an AMD GPU, "
        "--device cuda runs a cubin or PTX on an NVIDIA GPU",
    )


def _compile(job: Job) -> entries.Found:
    """Compile in a temporary folder and publish it.

    A file that changed while the compiler ran could leave an artifact under the digest of another
    text, so such a build is done once more; so is one that is cleared, with the whole cache, as it comes
    in.
    """
    reason = ""
    for _ in range(_ATTEMPTS):
        folder = process.make_temporary_folder(job.place.part("tmp"), prefix="build-")
        try:
            started_ns = time.time_ns()
            job.log_path.unlink(missing_ok=True)
            made = make(job, folder)
            if _changed_since(job, made.manifest, started_ns):
                reason = "the kernel source or a file that it includes keeps changing"
                continue
            record = record_of(job, folder, made, job.request.source, job.source)
            return entries.publish(job.place, folder, job.first_key, made.manifest, record)
        except entries.DamagedError:
            reason = "the build cache is cleared again and again"
        finally:
            process.remove_temporary_folder(folder)
    raise BuildError(reason, where=Location(job.request.source))


def _changed_since(job: Job, manifest: Manifest, started_ns: int) -> bool:
    """Whether the source, or what was read besides, was written while the compiler ran."""
    if job.request.source.read_bytes() != job.source:
        return True
    finished_ns = time.time_ns()
    return any(
        started_ns <= os.stat(path).st_mtime_ns <= finished_ns  # noqa: PTH116 - hundreds of files
        for path in manifest.headers
    )
