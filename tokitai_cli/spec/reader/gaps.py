"""What a drafted spec, or its formula, still leaves to be filled in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tokitai_cli.core import storage
from tokitai_cli.core.errors import Location, SpecError
from tokitai_cli.core.model.spec import Spec
from tokitai_cli.oracles.user.imported import file_of
from tokitai_cli.spec.reader.document import Document

GAP = "# fill in:"
GUESS = "# guess:"


def check_gaps(document: Document, text: str, spec: Spec) -> tuple[str, ...]:
    """Raise SpecError with every `# fill in:` of a spec and of the files of its oracles.

    Returns what is to be said of the guesses that still stand in them.
    """
    folder = document.file.parent
    own = [one.oracle for one in spec.variants.values() if one.own_oracle]
    texts = {document.file: text} | {(at := file_of(one, folder)): _text(at) for one in own}
    gaps = list(_marked(texts, GAP))
    if gaps:
        rows = [f"{file}:{line}: {words}" for file, line, words in gaps]
        these = "1 gap is" if len(rows) == 1 else f"{len(rows)} gaps are"
        message = "\n".join([f"{these} to be filled in first", *rows])
        file, line, _ = gaps[0]
        hint = f"write what is asked for, and take the mark `{GAP}` away"
        raise SpecError(message, where=Location(file, line), hint=hint)
    guessed = [f"{file.name}:{line}" for file, line, _ in _marked(texts, GUESS)]
    return (f"marked as a guess still: {', '.join(guessed)}",) if guessed else ()


def _text(file: Path) -> str:
    """Text of an oracle's file; empty where it cannot be read, which is told elsewhere."""
    try:
        return storage.read_plain(file).decode("utf-8", errors="replace")
    except OSError:
        return ""


def _marked(texts: dict[Path, str], mark: str) -> Iterator[tuple[Path, int, str]]:
    for file, text in texts.items():
        for number, line in enumerate(text.splitlines(), 1):
            before, found, words = line.partition(mark)
            if found:
                yield file, number, words.strip() or before.strip()
