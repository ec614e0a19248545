"""The CI recipes of docs/ci.md, run as a runner would: job by job, each in a checkout of its own."""

from __future__ import annotations

import contextlib
import fnmatch
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec
import pytest
import yaml

from tests.runs import KERNELS, derived_spec, tokitai
from tests.spec_example import write_example
from tests.support import slow

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "docs" / "examples" / "ci"
GUIDE = "".join((ROOT / "docs" / name).read_text("utf-8") for name in ("ci.md", "pytest.md"))
TOKITAI = "git+https://example.org/tokitai@0123abc"


@pytest.mark.parametrize("path", sorted(RECIPES.iterdir()), ids=lambda path: path.name)
def test_the_guide_shows_the_recipe_as_it_is(path: Path) -> None:
    language = {".yml": "yaml", ".ini": "ini"}[path.suffix]
    assert f"```{language}\n{path.read_text(encoding='utf-8')}```" in GUIDE


def parsed(name: str) -> dict[str, Any]:
    tree = yaml.safe_load((RECIPES / name).read_text(encoding="utf-8"))
    assert isinstance(tree, dict)
    return tree


# --- a runner


class Site(msgspec.Struct):
    """A place where jobs run: programs on PATH, caches and artifacts that outlive a job.

    failed: jobs that ended with another exit code than 0, by name; installed: what pip was asked for.
    """

    folder: Path
    project: Path
    failed: dict[str, int] = {}
    hits: list[str] = []

    @property
    def programs(self) -> Path:
        """Folder in front of all others on PATH: this checkout's tool, and a pip that only notes."""
        folder = self.folder / "bin"
        if not folder.exists():
            folder.mkdir(parents=True)
            tool = f'exec {shlex.quote(sys.executable)} -m tokitai_cli "$@"'
            python = (
                f'if [ "$1 $2 $3" = "-m pip install" ]; then echo "$4" >> {self.folder}/installed\n'
                f'else exec {shlex.quote(sys.executable)} "$@"; fi'
            )
            for name, text in {"tokitai": tool, "python": python}.items():
                (folder / name).write_text(f"#!/bin/sh\n{text}\n")
                (folder / name).chmod(0o755)
        return folder

    @property
    def installed(self) -> set[str]:
        """What pip was asked to install."""
        return set((self.folder / "installed").read_text().splitlines())

    def workspace(self, job: str) -> Path:
        """A checkout for a job."""
        path = self.folder / "work" / job
        shutil.copytree(self.project, path)
        return path

    def run(self, script: str, where: Path, variables: Mapping[str, str]) -> int:
        """Exit code of a script, as the shell of a runner has it. No traceback may be seen."""
        path = os.pathsep.join((str(self.programs), os.environ["PATH"]))
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": path, **variables}
        done = subprocess.run(
            ["bash", "-e", "-c", script],
            cwd=where,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert "Traceback" not in done.stdout + done.stderr
        assert done.returncode in (0, 1), done.stdout + done.stderr
        return done.returncode


def carried(source: Path, target: Path) -> None:
    """Copy what an artifact or a cache holds: files with their folders, and no empty folder."""
    found = [path for path in source.rglob("*") if path.is_file()]
    assert found, f"nothing in {source}"
    for path in found:
        place = target / path.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, place)


class GitHub:
    """Runs the jobs of a workflow one after the other."""

    def __init__(self, site: Site, variables: Mapping[str, str]) -> None:
        self._site = site
        self._tree = parsed("github.yml")
        self._known = {f"vars.{name}": text for name, text in variables.items()}

    def everything(self) -> None:
        """Run every job in the order of the file, which is that of their needs."""
        done: set[str] = set()
        for name, job in self._tree["jobs"].items():
            needs = job.get("needs", [])
            assert {needs} if isinstance(needs, str) else set(needs) <= done
            matrix = job.get("strategy", {}).get("matrix", {"": [""]})
            ((axis, values),) = matrix.items()
            for value in values:
                self._job(name, job, {f"matrix.{axis}": str(value)})
            done.add(name)

    def _job(self, name: str, job: dict[str, Any], matrix: dict[str, str]) -> None:
        title = "-".join(filter(None, (name, *matrix.values())))
        where = self._site.folder / "work" / title
        known = {**self._known, **matrix, "github.workspace": str(where)}
        files = {kind: self._site.folder / f"{title}.{kind}" for kind in ("output", "summary")}
        for file in files.values():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
        variables = {
            "GITHUB_OUTPUT": str(files["output"]),
            "GITHUB_STEP_SUMMARY": str(files["summary"]),
        }
        for level in (self._tree, job):
            variables |= {
                key: self._text(text, known) for key, text in level.get("env", {}).items()
            }
        saves: list[tuple[str, str]] = []
        code = 0
        for step in job["steps"]:
            if code and step.get("if") != "${{ !cancelled() }}":
                continue
            if "run" in step:
                assert "${{" not in step["run"], "values reach a script through its environment"
                ended = self._site.run(step["run"], where, variables)
                code = code or ended
                for line in files["output"].read_text().splitlines():
                    key, _, value = line.partition("=")
                    known[f"steps.{step['id']}.outputs.{key}"] = value
                files["output"].write_text("")
            else:
                given = {key: self._text(text, known) for key, text in step.get("with", {}).items()}
                self._use(step["uses"].partition("@")[0], given, where, title, saves)
        for path, key in saves:
            carried(where / path, self._site.folder / "caches" / key)
        if code:
            self._site.failed[title] = code

    def _use(
        self, action: str, given: Mapping[str, str], where: Path, title: str, saves: list[Any]
    ) -> None:
        artifacts = self._site.folder / "artifacts"
        match action:
            case "actions/checkout":
                self._site.workspace(title)
            case "actions/setup-python":
                assert given.keys() == {"python-version"}
            case "actions/cache":
                held = self._site.folder / "caches" / given["key"]
                if held.exists():
                    self._site.hits.append(given["key"])
                    carried(held, where / given["path"])
                else:  # saved once, at the end of the job
                    saves.append((given["path"], given["key"]))
                assert given["key"].startswith(given["restore-keys"])
            case "actions/upload-artifact":
                carried(where / given["path"], artifacts / given["name"])
            case "actions/download-artifact":
                names = fnmatch.filter(
                    (path.name for path in artifacts.iterdir()), given["pattern"]
                )
                for name in names:
                    carried(artifacts / name, where / given["path"] / name)
            case _:
                raise AssertionError(f"an action that the test does not know: {action}")

    def _text(self, text: object, known: Mapping[str, str]) -> str:
        def value(match: re.Match[str]) -> str:
            if match[1] == "hashFiles('specs/**')":
                assert list(self._site.project.glob("specs/**/*"))
                return "hash"
            return known[match[1]]

        return re.sub(r"\$\{\{ (.*?) \}\}", value, str(text))


class GitLab:
    """Runs the jobs of a pipeline one after the other."""

    def __init__(self, site: Site, variables: Mapping[str, str]) -> None:
        self._site = site
        self._tree = parsed("gitlab-ci.yml")
        self._variables = variables

    def everything(self) -> None:
        """Run the jobs stage by stage; after one that failed, those that always run."""
        jobs = {name: job for name, job in self._tree.items() if "script" in job}
        for stage in self._tree["stages"]:
            failed = bool(self._site.failed)
            for name, job in jobs.items():
                if job["stage"] == stage and (not failed or job.get("when") == "always"):
                    for index in range(1, job.get("parallel", 1) + 1):
                        self._job(f"{name}-{index}", job, index)

    def _job(self, title: str, job: dict[str, Any], index: int) -> None:
        where = self._site.workspace(title)
        own = {
            "CI_PROJECT_DIR": str(where),
            "CI_NODE_INDEX": str(index),
            "CI_NODE_TOTAL": str(job.get("parallel", 1)),
        }
        given = {**self._tree["variables"], **self._variables}
        variables = own | {key: _filled(text, own) for key, text in given.items()}
        artifacts = self._site.folder / "artifacts"
        for path in artifacts.glob("*"):
            if path.name.rpartition("-")[0] in job.get("needs", []):
                carried(path, where)
        with self._cached(job, where, own):
            script = "\n".join([*self._tree["default"]["before_script"], *job["script"]])
            if code := self._site.run(script, where, variables):
                self._site.failed[title] = code
        for name in job["artifacts"]["paths"]:
            carried(where / name, artifacts / title / name)
        for report in job["artifacts"].get("reports", {}).values():
            assert (where / report).is_file()

    @contextlib.contextmanager
    def _cached(self, job: dict[str, Any], where: Path, own: Mapping[str, str]) -> Iterator[None]:
        cache = job.get("cache", {"key": "none", "paths": []})
        held = self._site.folder / "caches" / _filled(cache["key"], own)
        if held.exists():
            self._site.hits.append(held.name)
            carried(held, where)
        yield
        for name in cache["paths"]:
            carried(where / name, held / name)


def _filled(text: str, variables: Mapping[str, str]) -> str:
    return re.sub(r"\$(\w+)", lambda match: variables[match[1]], text)


class Runner(Protocol):
    """Runs a recipe at a site, with the variables that a project has set."""

    def __init__(self, site: Site, variables: Mapping[str, str]) -> None: ...

    def everything(self) -> None:
        """Run all jobs."""


# --- the recipes


def project(folder: Path, kernels: Sequence[str]) -> Path:
    """A repository with one spec, of as many groups as there are kernels; returns the spec's path."""
    (folder / "specs").mkdir(parents=True)
    shutil.copy(KERNELS / "gemm_faults.hip", folder / "specs" / "kernels.hip")
    return derived_spec(
        folder / "specs", "gemm-bw", "grad-a", kernels, source=folder / "specs" / "kernels.hip",
        replay=False, profiles={"normal": {"draw": "normal"}},
        params={name: {"default": 32} for name in "mnk"},
    )  # fmt: skip


RUNNERS: dict[str, type[Runner]] = {"github": GitHub, "gitlab": GitLab}
SUMMARY = {"github": "artifacts/whole", "gitlab": "artifacts/summary-1/results/whole"}


@pytest.mark.parametrize("name", ["github", slow("gitlab")])
def test_a_recipe_from_checkout_to_summary(name: str, tmp_path: Path) -> None:
    """A commit whose wrong kernel is known to be so, and one that no longer says it."""
    spec = project(tmp_path / "project", ["plain", "tiled", "last_term"])
    document = yaml.safe_load(spec.read_text(encoding="utf-8"))
    known = {"variant": "last-term", "reason": "drops a term"}
    spec.write_text(yaml.safe_dump({**document, "known_bugs": [known]}), encoding="utf-8")
    site = Site(tmp_path / "site", tmp_path / "project")
    runner = RUNNERS[name](site, {"TOKITAI": TOKITAI})
    runner.everything()
    assert site.failed == {}
    assert site.installed == {TOKITAI}
    whole = site.folder / SUMMARY[name]
    index = json.loads((whole / "index.json").read_text(encoding="utf-8"))
    assert index["shards"] == ["1/2", "2/2"]
    assert index["counts"] == {"expected-failure": 1, "verified": 2}
    assert len(list(ET.parse(whole / "junit.xml").iter("testcase"))) == 3
    assert (whole / "evidence").is_dir()
    assert site.hits == []

    shutil.rmtree(site.folder / "work")
    shutil.rmtree(site.folder / "artifacts")
    spec.write_text(yaml.safe_dump(document), encoding="utf-8")
    runner.everything()
    shard, summary = site.failed
    assert shard.startswith("verify-")
    assert summary.startswith("summary")
    assert set(site.failed.values()) == {1}
    index = json.loads((whole / "index.json").read_text(encoding="utf-8"))
    assert index["verdict"] == "refuted"
    assert index["counts"] == {"refuted": 1, "verified": 2}
    if name == "github":
        assert "last-term" in (site.folder / "summary.summary").read_text(encoding="utf-8")
    # Nothing is built a second time.
    assert len(site.hits) == 2
    evidence = json.loads(next((whole / "evidence").glob("*.json")).read_text(encoding="utf-8"))
    assert set(evidence["volatile"]["build_cached"].values()) == {True}


def test_exit_codes_of_the_guide_are_those_of_the_verdicts() -> None:
    from tokitai_cli.core.model.verdict import Verdict

    rows = re.findall(r"^\| ([\d, ]+) \| ", GUIDE, re.MULTILINE)
    told = {int(code) for row in rows for code in row.split(",")}
    assert told == {one.exit_code for one in Verdict} - {130} | {2}


# --- the action and the hook of this repository


def _inputs(tree: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, str]:
    return {
        f"inputs.{name}": given.get(name, one["default"]) for name, one in tree["inputs"].items()
    }


def _expanded(text: str, known: Mapping[str, str]) -> str:
    """Text with its expressions: a name, or the first of two that is not empty."""

    def value(match: re.Match[str]) -> str:
        names = [name.strip() for name in match[1].split("||")]
        return next((known[name] for name in names if known[name]), "")

    return re.sub(r"\$\{\{ ([\w.| ]+) \}\}", value, text)


@pytest.mark.parametrize(("wrong", "code"), [(False, 0), (True, 1)])
def test_the_action_runs_its_steps(tmp_path: Path, wrong: bool, code: int) -> None:
    tree = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    project = tmp_path / "project"
    path = write_example(project / "specs")
    if wrong:
        kernel = path.with_name("vector_add.hip")
        kernel.write_text(kernel.read_text().replace("a[i] + b[i]", "a[i] - b[i]"))
    site = Site(tmp_path / "site", project)
    where = site.workspace("job")
    summary = tmp_path / "summary"
    known = {**_inputs(tree, {"options": "--suite quick -q"}), "github.action_path": str(ROOT)}
    codes, said = [], []
    for step in tree["runs"]["steps"]:
        variables = {name: _expanded(text, known) for name, text in step.get("env", {}).items()}
        environment = {
            **os.environ, "PYTHONPATH": str(ROOT), "GITHUB_ACTIONS": "true",
            "PATH": os.pathsep.join((str(site.programs), os.environ["PATH"])),
            "GITHUB_STEP_SUMMARY": str(summary), **variables,
        }  # fmt: skip
        done = subprocess.run(
            ["bash", "-e", "-c", step["run"]],
            cwd=where, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        codes.append(done.returncode)
        said.append(done.stdout)
    assert codes == [0, code, 0]
    assert site.installed == {str(ROOT)}
    assert "# Batch: " in summary.read_text("utf-8")
    place = r"::error file=specs/vector_add\.hip,line=[1-9]\d*,title=refuted%3A "
    assert bool(re.search(place, said[1])) == wrong


def test_the_hook_refuses_a_spec_that_cannot_be_used(tmp_path: Path) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    good = write_example(tmp_path / "specs" / "good")
    bad = write_example(tmp_path / "specs" / "bad")
    bad.write_text(bad.read_text().replace("op: vector-add", "op: other") + "unknown_key: 1\n")
    assert re.search(hook["files"], "a/specs/good/spec.yaml")
    assert not re.search(hook["files"], "ci/build.yaml")
    words = shlex.split(hook["entry"])
    assert words[0] == "tokitai"
    for files, code in (([good], 0), ([good, bad], 2), ([bad], 2)):
        done = tokitai(*words[1:], *files, cwd=tmp_path)
        assert done.returncode == code, done.stderr
    assert "unknown_key" in done.stderr
