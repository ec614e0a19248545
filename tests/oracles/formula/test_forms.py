"""Right kernels in other forms than the formula's, and wrong ones, before the derived bounds."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from tests.oracles.formula.forms import FORMS, Forms, Function, drawn
from tests.support import make_case, make_result
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.judge import judge
from tokitai_cli.judge.judgement import Judgement
from tokitai_cli.oracles.builtin import again, with_refined
from tokitai_cli.oracles.formula import Precision
from tokitai_cli.oracles.user.answer_parts import expectation
from tokitai_cli.oracles.variants.answer import answer
from tokitai_cli.oracles.variants.request import FormulaCall, Request

SEEDS = (0, 1)
# Right forms that lose more than the formula's own form may, by formula and name, and what is said.
LOSING = {
    ("square minus one", "factored"): "within 2 ulp.*another form (sums of products factored)",
    ("lerp", "by the difference"): "another form ((1 - t) a + t b as a + t (b - a)",
    ("gelu by tanh", "reciprocal"): "within 2 ulp.*; the formula's own form is tighter",
}


def judged(forms: Forms, seed: int, dtype: str) -> Any:
    """A function that judges a kernel on one draw."""
    x, w = drawn(forms, seed)

    def formula(params: Any, inputs: Any, scalars: Any) -> Any:
        return {"y": forms.formula(inputs["x"], inputs["w"])}

    asked = FormulaCall(formula, {}, {"x": x, "w": w}, {})
    wanted = Request({"y": dtype}, precision=Precision(), file=__file__)
    parts = answer(asked, wanted)["y"]
    shape = parts.reference.shape
    case = make_case(shape=shape, dtype=dtype)
    answered = {"y": expectation(case.buffers[1], parts)}
    (want,) = with_refined(case, answered, functools.partial(again, asked, wanted, None)).values()

    def of(kernel: Function) -> Judgement:
        with np.errstate(all="ignore"):
            got = np.asarray(kernel(x, w))
        assert got.dtype == np.float32
        whole = np.ascontiguousarray(np.broadcast_to(got, shape)).astype(dtype)
        return judge(case, {"y": want}, {}, make_result({"y": whole}))

    return of


def test_there_are_sixty_of_each() -> None:
    assert len(FORMS) == 20
    assert {len(kernels) for forms in FORMS.values() for kernels in (forms.right, forms.wrong)} == {
        3
    }


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", FORMS)
def test_right_forms_pass_and_planted_faults_do_not(name: str, dtype: str) -> None:
    forms = FORMS[name]
    for seed in SEEDS:
        of = judged(forms, seed, dtype)
        for kernel, right in forms.right.items():
            judgement = of(right)
            if judgement.verdict is Verdict.REFUTED:
                assert dtype == "float32"
                for words in LOSING[name, kernel].split(".*"):
                    assert words in judgement.reason
        for kernel, wrong in forms.wrong.items():
            if (name, kernel) == ("three factors", "off by eight roundings") and dtype == "float16":
                continue  # float16 has no place for it
            judgement = of(wrong)
            assert judgement.verdict is Verdict.REFUTED, kernel
            assert "another form (" not in judgement.reason, kernel
