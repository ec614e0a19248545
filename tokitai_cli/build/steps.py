"""The commands of a build: the unit of the kernels, the unit that serves them, and their link."""

from __future__ import annotations

import contextlib
import re
import shutil
import threading
from pathlib import Path
from typing import Any

import msgspec

from tokitai_cli.build import branches, cache_store, entries, taking
from tokitai_cli.build.compiler import command_of, compile_in, failure
from tokitai_cli.build.dropped import refuse_dropped
from tokitai_cli.build.harness_text import harness_text, server_source
from tokitai_cli.build.inputs import Digests, Manifest, assembler_error, manifest_of, traced
from tokitai_cli.build.scan import Finding, refuse
from tokitai_cli.core import process, resources
from tokitai_cli.core.errors import BuildError, Location, TokitaiError
from tokitai_cli.core.linked_folders import link, links_of
from tokitai_cli.core.model.device import Fact, Recipe
from tokitai_cli.core.model.events import BuildRunning, Listener
from tokitai_cli.core.model.evidence import BuildRecord, CompilerRecord, FactRecord
from tokitai_cli.core.model.harness import HarnessRequest
from tokitai_cli.core.model.models import Models
from tokitai_cli.core.storage import data_sha256, file_sha256, sha256
from tokitai_cli.cpp import lexing, source_text

# Names inside the build's own folder, so that the recorded command is the same on every run.
_DEPFILE, _ASSEMBLED, _OBJECT, _SERVER = "child.d", "child.s.d", "child.o", "server.o"
_NAMES = {"depfile": _DEPFILE, "assembled": _ASSEMBLED, "object": _OBJECT, "server": _SERVER}
_PROBE, _PREPROCESSED = "branch.cpp", "branch.i"
_UNSEEN_COPIES = "not judged: the alignment of whole-vector copies, because of a union with vectors"
_TRIVIAL = re.compile("deleted|trivial")
_ASKS = "built again in every run: a macro uses __has_include"
_OTHER_BRANCH = "not judged: lines for AMD's compiler that the host cannot build"
# Variables that say where things lie, not what is built; what they lead to is in the key by itself.
_PLACES = frozenset({"HOME", "PATH", "TMPDIR", "XDG_CACHE_HOME", "ZIG_GLOBAL_CACHE_DIR"})


class Job(msgspec.Struct, frozen=True):
    """One build with everything that is known before the compiler runs."""

    request: HarnessRequest
    recipe: Recipe
    place: cache_store.Location
    source: bytes
    findings: list[Finding]
    compiler: CompilerRecord
    first_key: str
    #: What the harness text is rendered with.
    context: dict[str, Any]
    #: Of each command, in seconds.
    timeout: float
    listener: Listener | None
    #: Of the user's, that an #include is looked for in.
    folders: list[Path]
    #: Of the sources.
    models: Models

    @property
    def log_path(self) -> Path:
        """What the compiler printed."""
        return self.place.part("logs") / f"{self.first_key[:32]}.log"


class Made(msgspec.Struct, frozen=True):
    """An executable in the build's folder: the commands, what they printed, and what they read."""

    command: tuple[str, ...]
    printed: str
    manifest: Manifest
    notes: list[str] = []
    #: What the object file of the kernels tells, where there is one.
    facts: tuple[Fact, ...] = ()


def circumstances(recipe: Recipe, compiler: CompilerRecord) -> dict[str, object]:
    """What every key of a build holds, whatever is built."""
    environment = {name: value for name, value in recipe.environment.items() if name not in _PLACES}
    return {
        "format": cache_store.FORMAT,
        "environment": environment,
        "features": recipe.resolved_features,
        "compiler": compiler,
        "device": [recipe.device, recipe.arch],
    }


def make(job: Job, folder: Path) -> Made:
    """Compile in `folder`, and link where the recipe does so apart. Raises BuildError, OSError."""
    recipe, source = job.recipe, job.request.source
    link(folder, resources.kernels_dir(), source.parent, job.folders)
    words = job.context | {"source": links_of(folder).word(str(source))}
    job, taken = msgspec.structs.replace(job, context=words), None
    if "taken" in job.context:
        taken = taking.write_extracted(job.request, recipe, job.folders, folder, job.models)
        job = msgspec.structs.replace(
            job,
            context={**job.context, **taking.context_of(taken)},
            findings=refuse(job.request, taken.text, recipe.device),
        )
    made = recipe.makes or (_OBJECT if recipe.link else entries.ARTIFACT)
    command = command_of(recipe.command, {**_NAMES, "source": entries.HARNESS, "output": made})
    serving = _Serving(job, folder / _SERVER) if recipe.server else None
    try:
        if recipe.unit is not None:
            text, facts = recipe.unit.make(job.request)
            (folder / entries.HARNESS).write_text(text, encoding="utf-8")
            printed, note = run(job, folder, command, made), ""
        else:
            (printed, note), facts = _compile(job, folder, command, made), ()
        if not (folder / _DEPFILE).is_file():
            raise BuildError(f"{recipe.compiler.name} wrote no list of headers", command=command)
        if recipe.assembly:
            _refuse_assembled(job, folder)
        if recipe.inspect_object:
            facts = recipe.inspect_object(folder / made)
        more, told, stated = _staged(job, folder)
    except BuildError:
        if serving is not None:
            serving.join()  # else it would go on in a folder that is gone
        raise
    commands, printed, facts = (*command, *more), printed + told, (*facts, *stated)
    known = (_DEPFILE, _ASSEMBLED, *recipe.depfiles)
    depfiles = [name for name in known if (folder / name).is_file()]
    linked, server = list[Path](), None
    if recipe.link:
        commands, server, linked, told = _link(job, folder, commands, serving)
        printed += told
    manifest = manifest_of(job.request.source, commands, folder, depfiles, linked, taken)
    staged = {recipe.makes, *(stage.makes for stage in recipe.stages)} - {"", *recipe.kept}
    for name in (*depfiles, *staged, _OBJECT, _SERVER):
        (folder / name).unlink(missing_ok=True)
    whole = manifest if server is None else manifest.merged(server)
    notes = [*filter(None, [note, _ASKS if whole.made else ""])]
    return Made(
        commands,
        printed,
        whole,
        [*notes, *(taking.extraction_notes(taken) if taken else ())],
        facts,
    )


def _link(
    job: Job, folder: Path, commands: tuple[str, ...], serving: _Serving | None
) -> tuple[tuple[str, ...], Manifest | None, list[Path], str]:
    """Link the executable: all commands so far, what the server was built from, files read, words."""
    recipe, server = job.recipe, None
    if recipe.shared_guards is not None:
        from tokitai_cli.build.guards import guard_shared_arrays  # brings numpy

        guard_shared_arrays(folder / _OBJECT, recipe.shared_guards)
    if serving is not None:
        served, server = serving.result()
        commands = (*served, "&&", *commands)
    link = command_of(recipe.link, {**_NAMES, "output": entries.ARTIFACT})
    linked, told = traced(run(job, folder, link, entries.ARTIFACT), folder)
    return (*commands, "&&", *link), server, linked, told


def _staged(job: Job, folder: Path) -> tuple[tuple[str, ...], str, tuple[Fact, ...]]:
    """Make what the further stages of the recipe make: their commands, what was printed, and facts."""
    commands: tuple[str, ...] = ()
    printed, facts = "", tuple[Fact, ...]()
    for stage in job.recipe.stages:
        if stage.call is not None:
            facts = (*facts, *stage.call(folder, job.request))
        else:
            printed += run(job, folder, stage.command, stage.makes)
        commands = (*commands, "&&", *(stage.command or ("tokitai:", stage.makes)))
    return commands, printed, facts


def _compile(job: Job, folder: Path, command: tuple[str, ...], made: str) -> tuple[str, str]:
    """Compile the unit of the kernels: on the branch of the GPU's compiler, where the host can.

    Else on the branch that is left, with a note of the lines that are not in it. Returns what the
    compiler printed, and the note.
    """

    def attempt(**differs: Any) -> str:
        text = harness_text({**job.context, **differs})
        (folder / entries.HARNESS).write_text(text, encoding="utf-8")
        printed = run(job, folder, command, made)
        refuse_dropped(printed, job.recipe.compiler.name)
        return printed

    try:
        return attempt(), ""
    except BuildError as error:
        first = error
    # A union with a vector in it can be copied only where the vector's own copy is trivial.
    if job.context["copies"] and _TRIVIAL.search(first.log):
        with contextlib.suppress(BuildError):
            return attempt(copies=False), _UNSEEN_COPIES
    if lines := _only_there(job, folder, command) if job.context["branch"] else set():
        with contextlib.suppress(BuildError):
            return attempt(branch={}), f"{_OTHER_BRANCH}: {branches.line_ranges(lines)}"
    raise first


def _refuse_assembled(job: Job, folder: Path) -> None:
    """Raise BuildError where an assembler takes in a file, in whatever way the source says so."""
    if not any("asm" in text for text in source_text.own_texts(job.request.source)):
        return
    names = {**_NAMES, "source": entries.HARNESS, "depfile": _PROBE, "output": _PREPROCESSED}
    run(job, folder, command_of(job.recipe.assembly, names), _PREPROCESSED)
    if lexing.assembled_line(source_text.read(folder / _PREPROCESSED) or b""):
        raise assembler_error(Location(job.request.source))
    for name in (_PROBE, _PREPROCESSED):
        (folder / name).unlink(missing_ok=True)


def _only_there(job: Job, folder: Path, command: tuple[str, ...]) -> set[tuple[str, int]]:
    """Lines of the user's files that only the branch of the GPU's compiler has."""
    found: list[set[tuple[str, int]]] = []
    for branch in (dict[str, str](job.context["branch"]), dict[str, str]()):
        text = harness_text({**job.context, "branch": branch})
        (folder / _PROBE).write_text(text, encoding="utf-8")
        words = branches.preprocessor(command, _PROBE, _PREPROCESSED)
        done = compile_in(folder, job.recipe, words, job.log_path, job.timeout)
        if done.returncode != 0:
            return set()
        text = (folder / _PREPROCESSED).read_text("utf-8", "replace")
        found.append(branches.lines_of(text, links_of(folder)))
        (folder / _PROBE).unlink()
        (folder / _PREPROCESSED).unlink()
    return found[0] - found[1]


class _Serving(threading.Thread):
    """Builds the unit that serves kernels while the unit of the kernels is compiled."""

    def __init__(self, job: Job, target: Path) -> None:
        super().__init__(daemon=True)
        self._job = msgspec.structs.replace(job, listener=None)
        self._target = target
        self._made: tuple[tuple[str, ...], Manifest] | None = None
        self._error: Exception | None = None
        self.start()

    def run(self) -> None:
        """Called by the thread."""
        try:
            self._made = _serve(self._job, self._target)
        except (TokitaiError, OSError, entries.DamagedError, msgspec.DecodeError) as error:
            self._error = error

    def result(self) -> tuple[tuple[str, ...], Manifest]:
        """What `_serve` returned or raised, waited for."""
        self.join()
        if self._made is None:
            raise self._error or RuntimeError("the thread ended without a result")
        return self._made


def _serve(job: Job, target: Path) -> tuple[tuple[str, ...], Manifest]:
    """Put the unit that serves kernels at `target`: it is built once for a recipe.

    Returns its command, and what it was built from.
    """
    recipe, place, source = job.recipe, job.place, server_source()
    names = {**_NAMES, "source": str(source), "output": entries.ARTIFACT}
    command = command_of(recipe.server, names)
    key = data_sha256({"command": command, **circumstances(recipe, job.compiler)})
    found, _ = entries.find(place, key, Digests())
    if found is None:
        folder = process.make_temporary_folder(place.part("tmp"), prefix="build-")
        try:
            link(folder, resources.kernels_dir())
            printed = run(job, folder, command, entries.ARTIFACT)
            made = Made(command, printed, manifest_of(source, command, folder, [_DEPFILE]))
            (folder / _DEPFILE).unlink()
            # The cache holds what can be executed, and throws away what cannot.
            (folder / entries.ARTIFACT).chmod(0o755)
            record = record_of(job, folder, made, source, source.read_bytes())
            found = entries.publish(place, folder, key, made.manifest, record)
        finally:
            process.remove_temporary_folder(folder)
    try:
        shutil.copyfile(found.path, target)
        return command, entries.manifest(place, key, found.entry.key)
    except FileNotFoundError as error:
        raise entries.DamagedError("the cache was cleared") from error


def record_of(job: Job, folder: Path, made: Made, source: Path, data: bytes) -> BuildRecord:
    """What the evidence says of the artifact in `folder`, made of `source` with the bytes `data`."""
    artifact, harness, recipe = folder / entries.ARTIFACT, folder / entries.HARNESS, job.recipe
    facts = [FactRecord(name="bytes", value=str(artifact.stat().st_size), source="file system")]
    if recipe.resolved_features:
        facts.append(
            FactRecord(name="cpu-features", value=recipe.resolved_features, source="/proc/cpuinfo")
        )
    told = made.facts
    if recipe.inspect is not None and harness.is_file():
        told += recipe.inspect(artifact, made.printed)
    facts += [FactRecord(name=fact.name, value=fact.value, source=fact.source) for fact in told]
    return BuildRecord(
        device=recipe.device,
        arch=recipe.arch,
        source=str(source),
        source_sha256=sha256(data),
        harness_sha256=Digests().of(str(harness)),
        headers=made.manifest.headers,
        command=list(made.command),
        compiler=job.compiler,
        defines=dict(job.request.defines),
        artifact_sha256=file_sha256(artifact),
        code_object=facts,
        notes=made.notes,
        failed=[],
        header_texts=made.manifest.own_texts(),
    )


def run(job: Job, folder: Path, command: tuple[str, ...], made: str) -> str:
    """Run one command of a build, which makes the file `made`; returns what it printed."""

    def waiting(seconds: float) -> None:
        if job.listener is not None:
            job.listener(BuildRunning(job.recipe.device, str(job.request.source), seconds))

    done = compile_in(folder, job.recipe, command, job.log_path, job.timeout, waiting)
    if done.returncode != 0 or not (folder / made).is_file():
        raise failure(
            done,
            job.recipe,
            command,
            request=job.request,
            findings=job.findings,
            log_path=job.log_path,
        )
    return done.stdout + done.stderr
