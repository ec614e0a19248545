"""What a drafted spec, or its formula, still leaves to be filled in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tokitai_cli.core import storage
from tokitai_cli.core.errors import Location, SpecError
from tokitai_cli.core.model.guesses import GAP, GUESS, Guess
from tokitai_cli.core.model.spec import Spec
from tokitai_cli.oracles.user.imported import file_of
from tokitai_cli.spec.reader.document import Document, KeyPath

__all__ = ["GAP", "GUESS", "check_gaps", "guesses_of", "noted"]


def check_gaps(document: Document, text: str, spec: Spec | None) -> None:
    """Raise SpecError with every `# fill in:` of a spec and, with `spec`, of its oracles' files."""
    texts = _texts(document, text, spec)
    gaps = list(_marked(texts, GAP))
    if gaps:
        rows = [f"{file}:{line}: {words}" for file, line, words in gaps]
        these = "1 gap" if len(rows) == 1 else f"{len(rows)} gaps"
        message = "\n".join([f"{these} must be filled in first", *rows])
        file, line, _ = gaps[0]
        hint = f"write what is missing, then remove the mark `{GAP}`"
        raise SpecError(message, where=Location(file, line), hint=hint)


def guesses_of(document: Document, text: str, spec: Spec | None = None) -> tuple[Guess, ...]:
    """Every line of a spec that is marked as a guess still; with `spec`, of its oracles' files too."""
    return tuple(
        Guess(
            file=file.name,
            line=line,
            key=_key_at(document, line) if file == document.file else (),
            words=words,
        )
        for file, line, words in _marked(_texts(document, text, spec), GUESS)
    )


def noted(guesses: Sequence[Guess]) -> tuple[str, ...]:
    """What is to be said of the guesses that still stand in a spec, of as many notes as it takes."""
    places = ", ".join(one.place for one in guesses)
    return (f"still marked as guesses: {places}",) if guesses else ()


def _key_at(document: Document, line: int) -> KeyPath:
    """What the spec says on a line: the value of its only outermost key, or what has all of those.

    A line of its own marks the one below it.
    """
    below = [place[0] for place in document.keys.values() if place[0] >= line]
    below += [place[0] for place in document.values.values() if place[0] >= line]
    at = min(below, default=line)
    here = [path for path, place in document.keys.items() if place[0] == at]
    here = here or [path for path, place in document.values.items() if place[0] == at]
    outer = [path for path in here if len(path) == min(map(len, here))]
    return (outer[0] if len(outer) == 1 else outer[0][:-1]) if outer else ()


def _texts(document: Document, text: str, spec: Spec | None) -> dict[Path, str]:
    """The texts that may hold marks: the spec's, and those of the files of its oracles."""
    folder = document.file.parent
    variants = spec.variants.values() if spec is not None else ()
    own = [one.oracle for one in variants if one.own_oracle]
    return {document.file: text} | {(at := file_of(one, folder)): _text(at) for one in own}


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
