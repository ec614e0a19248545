"""`[tool.tokitai]` of pyproject.toml: defaults of options, below the command line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tokitai_cli.cli.app import run
from tokitai_cli.cli.project_file import options_from_file
from tokitai_cli.core.errors import UsageError


def written(folder: Path, text: str) -> Path:
    (folder / "pyproject.toml").write_text(text)
    return folder


def test_the_nearest_file_with_the_table_counts(tmp_path: Path) -> None:
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    written(tmp_path, '[tool.tokitai]\nrepeat = 3\ndevice = "cpu"\n')
    written(tmp_path / "a", '[tool.other]\nx = "tokitai"\n')
    assert options_from_file("verify", below) == {"repeat": 3, "device": "cpu"}
    assert options_from_file("verify", tmp_path.parent) == {}


def test_a_table_of_the_verb_goes_before_the_common_one(tmp_path: Path) -> None:
    text = "[tool.tokitai]\nrepeat = 3\njobs = 2\n[tool.tokitai.verify]\nrepeat = 4\n"
    folder = written(tmp_path, text)
    assert options_from_file("verify", folder) == {"repeat": 4}
    assert options_from_file("batch", folder) == {"repeat": 3, "jobs": 2}


def test_lists_and_texts_are_read_as_on_the_command_line(tmp_path: Path) -> None:
    text = '[tool.tokitai]\nseed = [1, "3:5:1"]\n'
    with pytest.raises(UsageError, match="not of type"):
        options_from_file("verify", written(tmp_path, text))
    folder = written(tmp_path, '[tool.tokitai]\nseed = "3:5:1"\nformat = ["md", "html"]\n')
    assert options_from_file("verify", folder) == {"seed": (3, 4, 5), "format": ("md", "html")}


@pytest.mark.parametrize(
    ("text", "where", "words"),
    [
        ("[tool.tokitai]\n\nrepet = 3\n", "pyproject.toml:3", "no such option"),
        ("[tool.tokitai]\nrepeat = 1\n", "pyproject.toml:2", "at least 2"),
        ('[tool.tokitai]\nrepeat = "x"\n', "pyproject.toml:2", "not of type int"),
        ("[tool.tokitai]\nstrict = 1\n", "pyproject.toml:2", "not of type bool"),
        ('[tool.tokitai]\nformat = "htm"\n', "pyproject.toml:2", "unknown report format"),
        (
            "[tool.tokitai.verifi]\nrepeat = 3\n",
            "pyproject.toml:1",
            "no command that takes options",
        ),
        ("[tool.tokitai.verify]\njobs = 3\n", "pyproject.toml:2", "no option of verify"),
        ('[tool.tokitai]\nvariant = "a"\n', "pyproject.toml:2", "only the command line"),
        ("[tool.tokitai]\nrun-authors-code = true\n", "pyproject.toml:2", "only the command line"),
        ("[tool.tokitai\n", "pyproject.toml", "cannot be read"),
        ("[tool]\ntokitai = 3\n", "pyproject.toml", "is no table"),
    ],
)
def test_faults_are_errors_with_their_line(
    tmp_path: Path, text: str, where: str, words: str
) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        options_from_file("verify", written(tmp_path, text))
    assert where in str(caught.value.where)


def test_a_file_in_another_encoding_is_an_error(tmp_path: Path) -> None:
    for data in ("[tool.tokitai]\nrepeat = 3\n".encode("utf-16"), b"[tool.tokitai]\n# \xe9\n"):
        (tmp_path / "pyproject.toml").write_bytes(data)
        with pytest.raises(UsageError, match="cannot be read"):
            options_from_file("verify", tmp_path)


def test_a_pipe_of_that_name_is_no_file(tmp_path: Path) -> None:
    folder = written(tmp_path, "[tool.tokitai]\nrepeat = 3\n") / "below"
    folder.mkdir()
    os.mkfifo(folder / "pyproject.toml")
    assert options_from_file("verify", folder) == {"repeat": 3}


def test_the_command_line_goes_before_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(written(tmp_path, "[tool.tokitai]\nrepeat = 1\n"))
    assert run(["verify", "--help"]) == 2
    assert "tool.tokitai.repeat: --repeat 1: at least 2" in capsys.readouterr().err
    written(tmp_path, "[tool.tokitai]\nrepeat = 7\nstrict = true\n")
    assert run(["verify", "--help"]) == 0
    told = capsys.readouterr().out
    assert "--strict / --no-strict" in told
    assert "[default: 7;" in told
    # The value of the command line is the one that is refused.
    assert run(["verify", "gemm-bw", "--repeat", "1"]) == 2
    assert "'--repeat': 1 is not in the range" in capsys.readouterr().err
    assert run(["verify", "gemm-bw", "--no-strict", "--suite", "none-such"]) == 2
    assert "none-such" in capsys.readouterr().err
