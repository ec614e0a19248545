"""`python -m bench.gallery PAGES`: run the commands of docs/gallery.md, keep their reports as pages.

PAGES is a copy of the checkout's pages. A verdict that is not the one of its heading is an error.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from bench._runs import ROOT, TOKITAI

PAGE = "gallery.md"
SECTION = re.compile(r"^## (?P<title>[^\n]*): (?P<verdict>[a-z]+)\n", re.MULTILINE)
BLOCK = re.compile(r"```console\n(?P<commands>(?:\$ [^\n]*\n)+)```\n")
REPORT = re.compile(r"^  (?:report|index): (?P<path>\S*\.md)$", re.MULTILINE)
VERDICTS = {"verified": 0, "refuted": 1, "inconclusive": 6}


class GalleryError(Exception):
    """An example did not do what its heading says."""


def name_of(title: str) -> str:
    """Name of a page: the heading's words, joined by `-`."""
    return "-".join(re.findall(r"[a-z0-9]+", title.lower()))


def with_reports(text: str, folder: Path) -> str:
    """The gallery's text, with what its commands print, and links to reports below `folder`/gallery."""
    headings = list(SECTION.finditer(text))
    ends = [one.start() for one in headings[1:]] + [len(text)]
    parts = [text[: headings[0].start()]]
    for heading, end in zip(headings, ends, strict=True):
        section = text[heading.start() : end]
        block = BLOCK.search(section)
        if block is None:
            parts.append(section)
            continue
        name = name_of(heading["title"])
        commands = [line.removeprefix("$ ") for line in block["commands"].splitlines()]
        printed = run(commands, heading["verdict"], folder / "gallery" / f"{name}.md")
        shown = f"```console\n{block['commands']}{printed}```\n\n[The report](gallery/{name}.md)\n"
        parts.append(section[: block.start()] + shown + section[block.end() :])
    return "".join(parts)


def run(commands: list[str], verdict: str, page: Path) -> str:
    """Run commands next to the examples, keep the report of the last as `page`; what that one prints."""
    with tempfile.TemporaryDirectory(prefix="tokitai-gallery-") as scratch:
        here = Path(scratch)
        shutil.copytree(ROOT / "docs" / "examples", here / "docs" / "examples")
        for command in commands:
            words = shlex.split(command)
            words[0] = TOKITAI if words[0] == "tokitai" else words[0]
            done = subprocess.run(words, cwd=here, capture_output=True, text=True, check=False)
            wanted = VERDICTS[verdict] if command is commands[-1] else 0
            if done.returncode != wanted:
                message = (
                    f"{command}\n{done.stdout}{done.stderr}exit {done.returncode}, not {wanted}"
                )
                raise GalleryError(message)
        report = REPORT.search(done.stdout)
        if report is None:
            raise GalleryError(f"{commands[-1]}\n{done.stdout}wrote no report in Markdown")
        page.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(here / report["path"], page)
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())


def main(words: list[str]) -> int:
    """Write the gallery below the pages' docs folder."""
    if len(words) != 1:
        sys.stderr.write("usage: python -m bench.gallery PAGES\n")
        return 2
    folder = Path(words[0]) / "docs"
    text = (ROOT / "docs" / PAGE).read_text("utf-8")
    try:
        (folder / PAGE).write_text(with_reports(text, folder), "utf-8")
    except GalleryError as error:
        sys.stderr.write(f"docs/{PAGE}: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
