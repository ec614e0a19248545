"""The gallery: the commands of docs/gallery.md run, and their reports become pages."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from bench.gallery import BLOCK, PAGE, SECTION, GalleryError, name_of, with_reports

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docs" / PAGE).read_text("utf-8")
REFUTED = """
The kernel lacks a term.

```console
$ tokitai verify docs/examples/dropped_term/spec.yaml --device cpu --watch off
```

More words.
"""


def test_ten_examples_and_the_reports_of_those_that_run_are_in_the_site() -> None:
    titles = [match["title"] for match in SECTION.finditer(TEXT)]
    assert len(titles) == 10
    pages = [
        title
        for title, part in zip(titles, SECTION.split(TEXT)[3::3], strict=True)
        if BLOCK.search(part)
    ]
    loaded = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))
    nav = next(part["Gallery"] for part in loaded["nav"] if "Gallery" in part)
    shown = [path for entry in nav for path in entry.values()]
    assert shown == [f"docs/{PAGE}", *(f"docs/gallery/{name_of(title)}.md" for title in pages)]


def test_a_section_gets_what_its_command_prints_and_a_link_to_the_report(tmp_path: Path) -> None:
    text = with_reports(f"# Gallery\n\n## A lost term: refuted\n{REFUTED}", tmp_path)
    assert text.startswith("# Gallery\n\n## A lost term: refuted\n\nThe kernel lacks")
    assert "dropped-term: refuted (1 refuted)" in text
    assert "[The report](gallery/a-lost-term.md)" in text
    assert text.endswith("\n\nMore words.\n")
    assert (
        (tmp_path / "gallery" / "a-lost-term.md")
        .read_text("utf-8")
        .startswith("# dropped-term: refuted")
    )


def test_another_verdict_than_the_headings_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(GalleryError, match="exit 1, not 0"):
        with_reports(f"## A lost term: verified\n{REFUTED}", tmp_path)
