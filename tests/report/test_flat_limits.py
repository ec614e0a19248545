"""Reports show flat limits beside the bound, the residues that were tried, and non-finite policy."""

from __future__ import annotations

import pytest

from tests.runs import run
from tokitai_cli.core.model.evidence import Evidence
from tokitai_cli.report import render


@pytest.fixture(scope="module")
def softmax(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    shapes = {"rows": [4], "cols": [65, 257, 32768]}
    return run(
        "softmax",
        tmp_path_factory.mktemp("flat"),
        shapes=shapes,
        variant=["fwd"],
        profile=["normal", "one-large"],
    )


def section(text: str, heading: str) -> list[str]:
    _, _, rest = text.partition(f"# {heading}\n")
    return rest.partition("\n#")[0].strip().splitlines()


def test_flat_limit_stands_beside_the_bound_and_says_where_it_tells_nothing(
    softmax: Evidence,
) -> None:
    (row,) = section(render(softmax, "md").decode(), "Flat limits beside the derived bound")[2:]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[:7] == ["`fwd`", "`y`", "`cpu`", "abs", "replay", "0.01", "6"]
    assert float(cells[7]) < 0.01
    assert 0.5 < float(cells[8]) <= 1  # error / bound
    assert cells[9] == "1 of 6"
    vacuous = [
        case.id
        for case in softmax.cases
        for check in case.outputs[0].checks
        if check.metric == "abs" and check.passes_zeros
    ]
    assert vacuous == ["softmax/fwd/rows=4,cols=32768/normal/0"]


def test_bound_is_never_said_to_pass_zeros(softmax: Evidence) -> None:
    checks = [check for case in softmax.cases for check in case.outputs[0].checks]
    assert not any(check.passes_zeros for check in checks if check.metric == "bound")


def test_residues_that_were_tried_are_evidence_and_the_rest_is_not_claimed(
    softmax: Evidence,
) -> None:
    told = "cols = 65, 257, 32768 (residues modulo 256: 0, 1, 65)"
    said = [one for one in softmax.statements if "was verified at" in one.text]
    assert [one.field for one in said] == ["/cases"]
    assert f"softmax fwd was verified at rows = 4 (residues modulo 256: 4), {told}." == said[0].text
    assert any(
        claim.text.startswith("shapes of softmax fwd other than those tried") and told in claim.text
        for claim in softmax.non_claims
    )


def test_policy_of_what_is_not_finite_is_told_once(softmax: Evidence) -> None:
    lines = section(render(softmax, "md").decode(), "Where outputs are not finite")
    assert lines[2:] == [
        "- `fwd`, output `y`: a row with NaN or +inf, or of -inf alone, is NaN throughout; "
        "other -inf give exactly 0"
    ]
    assert all(case.outputs[0].non_finite for case in softmax.cases)
