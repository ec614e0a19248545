"""Drafts have shapes and draws that reach what a kernel branches on, and where its faults show."""

from __future__ import annotations

from typing import Any

import pytest

from tests.drafts.telling_kernels import KERNELS
from tokitai_cli.core import expressions
from tokitai_cli.drafts.model import SpecDraft
from tokitai_cli.drafts.search import drafts_of


def holds(draw: Any, value: float) -> bool:
    """Whether a draw may give that value."""
    if draw["kind"] == "mix":
        return any(holds(part["draw"], value) for part in draw["parts"])
    if draw["kind"] == "constant":
        return bool(draw["value"] == value)
    return value == draw.get("lo", 0) if draw["kind"] in {"uniform", "index-uniform"} else False


def has(model: SpecDraft, want: tuple[str | float, ...]) -> bool:
    """Whether a draft has what is wanted."""
    kind, *what = want
    shapes = [one.sizes for one in model.suites.value["quick"]]
    profiles = model.profiles.value
    if kind == "shape":
        return any(expressions.holds(str(what[0]), one) for one in shapes)
    if kind == "unequal":
        return all(len({*one.values()}) == what[0] for one in shapes[1:])
    if kind in {"profile", "noprofile"}:
        return (what[0] in profiles) == (kind == "profile")
    if kind == "number":
        name, value = what
        defaults = {key: one.default for key, one in model.params.items()}
        text = str(model.scalars[str(name)].value)
        told = {expressions.evaluate_real(text, {**defaults, **one}) for one in shapes}
        return value in told and len(told) > 1
    draws = [one.inputs.value.get(str(what[0])) for one in profiles.values()]
    if kind == "indices":
        return all(one is not None and "index" in str(one) for one in draws)
    return any(one is not None and holds(one, float(what[1])) for one in draws)


WANTS = [(name, one) for name, (_, wants) in KERNELS.items() for one in wants]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, SpecDraft]:
    folder = tmp_path_factory.mktemp("telling")
    found = {}
    for name, (source, _) in KERNELS.items():
        (folder / f"{name}.cu").write_text(source)
        drafted = drafts_of(folder / f"{name}.cu", (), folder / "spec", room=False)
        assert isinstance(drafted, tuple)
        model = drafted[0][-1].model
        assert model is not None, name
        found[name] = model
    return found


@pytest.mark.parametrize(("name", "want"), WANTS)
def test_a_draft_reaches_what_tells(
    models: dict[str, SpecDraft], name: str, want: tuple[str | float, ...]
) -> None:
    assert has(models[name], want)
