"""Names that macros put together (`scale_##NAME`), by the lines on which the macros are called."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tokitai_cli.core import resources
from tokitai_cli.cpp.policy import CUDA, host_pass
from tokitai_cli.cpp.source.blanking import Macro
from tokitai_cli.cpp.unit import preprocess


def pasted_words(
    roots: Iterable[Path], folders: Sequence[Path], macros: Mapping[str, Macro]
) -> dict[tuple[Path, int], frozenset[str]]:
    """Names in what macros made, by file and line; none where no macro puts any together."""
    if not any("##" in body for one in macros.values() for body in one.bodies):
        return {}
    shipped = resources.kernels_dir()
    own = [folder for folder in folders if not folder.is_relative_to(shipped)]
    found: dict[tuple[Path, int], frozenset[str]] = {}
    for root in roots:
        made = preprocess(root, own, host_pass(root.suffix in CUDA)).made_names()
        for (file, line), names in made.items():
            place = Path(file), line
            found[place] = found.get(place, frozenset()) | names
    return found
