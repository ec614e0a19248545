"""The documentation as a site: `make docs` builds it, and refuses a link that leads nowhere."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("make") is None, reason="no make"),
]


def built(site: Path, pages: str = "") -> subprocess.CompletedProcess[str]:
    """`make docs` with the tools of this environment, below `site`."""
    tools = Path(sys.executable).parent
    words = ["make", "docs", f"BIN={tools}", "STAMP=", f"SITE={site}"]
    words += [f"PAGES={pages}"] if pages else []
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)


def test_every_page_is_in_the_site_and_every_link_leads_somewhere(tmp_path: Path) -> None:
    done = built(tmp_path / "site")
    assert done.returncode == 0, done.stdout + done.stderr
    home = tmp_path / "site" / "site"
    for page in (ROOT / "docs").rglob("*.md"):
        if "examples" not in page.parts:
            name = page.relative_to(ROOT).with_suffix(".html")
            assert (home / name).is_file(), page.name
    assert "tokitai" in (home / "index.html").read_text("utf-8")


def test_a_link_that_leads_nowhere_fails(tmp_path: Path) -> None:
    done = built(tmp_path / "site", pages="README.md")
    assert done.returncode != 0
    assert "docs/" in done.stdout + done.stderr
