"""The table of options: command lines that run something again mean what was run."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.spec_example import write_example
from tokitai_cli import batch, verify
from tokitai_cli.batch.select.batch_options import rerun_words
from tokitai_cli.cli import app
from tokitai_cli.core.errors import UsageError
from tokitai_cli.core.model.keywords import VerifyOptions
from tokitai_cli.core.model.options import Kind, options_of
from tokitai_cli.core.model.settings import Settings
from tokitai_cli.run.commands import rerun_case, rerun_run
from tokitai_cli.run.run_options import run_options
from tokitai_cli.spec.plan import plan

GIVEN: list[dict[str, Any]] = [
    {"shapes": {"m": [16, 32], "k": "16:48:16"}, "variant": ["grad-a"], "seed": [1, 2]},
    {"suite": "quick", "profile": "normal,uniform", "timeout": 0.5, "repeat": 3, "warmup": 2},
    {"suite": "quick", "device": "cpu", "arch": "gfx90a", "gpu": 2, "warp_size": 64},
    {"suite": "full", "build_only": True, "timeout": 60.0},
]


@pytest.mark.parametrize("verb", ["verify", "sanitize"])
@pytest.mark.parametrize("given", GIVEN, ids=str)
def test_a_run_again_is_the_same_run(
    verb: str, given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    meant = run_options("gemm-bw", verb=verb, **given)
    found = again(rerun_run(meant), verb, monkeypatch)
    same = ("selection", "device", "settings", "build_only", "verb")
    assert [getattr(found, name) for name in same] == [getattr(meant, name) for name in same]


def test_a_case_again_is_that_case(monkeypatch: pytest.MonkeyPatch) -> None:
    meant = run_options("gemm-bw", **GIVEN[0], warmup=1)
    case = plan(meant.loaded, meant.selection).cases[-1]
    found = again(rerun_case(case, "cpu", meant), "verify", monkeypatch)
    assert [one.id for one in plan(found.loaded, found.selection).cases] == [case.id]
    assert (found.device, found.settings) == ("cpu", meant.settings)


def again(line: str, verb: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Options of the run that a command line asks for."""
    kept: list[Any] = []

    def keep(options: Any, *_: object) -> None:
        kept.append(options)
        raise UsageError("that is all")

    home = {"verify": "loop", "sanitize": "sanitizing"}[verb]
    monkeypatch.setattr(f"tokitai_cli.run.{home}.{verb}", keep)
    words = shlex.split(line)
    assert words[0] == "tokitai"
    assert app.run([*words[1:], "-q"]) == 2
    return kept[0]


@pytest.mark.parametrize(
    "given",
    [
        {"suite": ["a", "b"], "op": "x", "keyword": "a and not b", "seed": "3:5", "shard": "2/3"},
        {"variant": ["u,v"], "profile": ["p"], "gpu": "1,2", "repeat": 4, "timeout": 7.5},
        {"device": "cpu", "warp_size": 64, "arch": "gfx942", "warmup": 3},
    ],
    ids=str,
)
def test_a_batch_again_is_the_same_batch(
    given: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[Any] = []

    def keep(options: Any) -> None:
        kept.append(options)
        raise UsageError("that is all")

    monkeypatch.setattr(batch, "collect", keep)
    meant = batch.batch_options([write_example(tmp_path)], out=tmp_path / "out", **given)
    assert app.run(shlex.split(rerun_words(meant))[1:]) == 2
    assert kept == [meant]


def test_settings_and_options_have_the_same_names_and_defaults() -> None:
    plain = msgspec.structs.asdict(Settings())
    implied = {"verify": set[str](), "sanitize": {"sanitize"}, "batch": {"threads"}}
    for verb, names in implied.items():
        assert {*plain} - {*options_of(verb)} == names
    resolved = run_options("gemm-bw")
    assert resolved.settings == Settings()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"repeat": "3"}, "--repeat 3: no integer"),
        ({"repeat": True}, "--repeat True: no integer"),
        ({"timeout": "7"}, "--timeout 7: no number"),
        ({"gpu": 1.5}, "--gpu 1.5: no integer"),
        ({"seed": [1.5]}, "--seed 1.5: no integer"),
        ({"seed": []}, "--seed: no value given"),
        ({"shapes": {"m": []}}, "--m: no value given"),
        ({"json": True}, "verify has no option --json"),
    ],
    ids=str,
)
def test_python_is_told_what_the_command_line_is_told(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        run_options("gemm-bw", **given)


def test_every_option_says_what_it_takes() -> None:
    for verb in ("verify", "sanitize", "batch", "merge"):
        for option in options_of(verb).values():
            assert option.help.endswith(".")
            several = option.kind in {Kind.NAMES, Kind.NUMBERS}
            assert isinstance(option.default_of(verb), tuple) == several


def test_the_keywords_of_verify_are_its_options() -> None:
    table = {name for name, one in options_of("verify").items() if not one.front}
    assert set(VerifyOptions.__annotations__) == table | {"shapes"}


def test_an_outcome_is_short_and_a_table_in_notebooks(tmp_path: Path) -> None:
    outcome = verify(
        str(write_example(tmp_path)), shapes={"n": 4}, device="cpu", out=tmp_path / "o"
    )
    assert repr(outcome).startswith("<vector-add: verified (3 verified); ")
    shown = outcome._repr_html_()
    assert shown.startswith("<p>&lt;vector-add: verified")
    assert shown.count("<tr>") == 4
