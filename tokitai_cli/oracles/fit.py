"""Whether a built-in formula fits the case that it is to judge."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from tokitai_cli.core.dtypes import FORMATS, numpy_dtype
from tokitai_cli.core.errors import Location, SpecError
from tokitai_cli.core.model.case import BufferPlan, Case, Role
from tokitai_cli.oracles.case_request import Arrays, request, scalars, shapes
from tokitai_cli.oracles.formula import NoRuleError
from tokitai_cli.oracles.formula.known import MissingError, ReductionError
from tokitai_cli.oracles.user.answer_parts import AnswerError
from tokitai_cli.oracles.variants.answer import evaluated
from tokitai_cli.oracles.variants.request import FormulaCall, request_of
from tokitai_cli.oracles.variants.wrong_outputs import recorded

# Elements of a case on which a built-in formula is tried before a run.
_TRIED = 1 << 16


@contextlib.contextmanager
def placed(case: Case, name: str, key: str = "oracle") -> Iterator[None]:
    """What a built-in formula raises is a misfit of the spec; SpecError says which."""
    try:
        yield
    except ReductionError as error:
        raise _misfit(case, str(error), "", error.key) from None
    except AnswerError as error:
        raise _misfit(case, f"oracle {name}: {error}", error.hint, key) from None
    except MissingError as error:
        raise _misfit(case, f"oracle {name} reads {error.name}", f"add {error.name}", key) from None
    except NoRuleError as error:
        raise _misfit(case, f"oracle {name}: {error}", "write an oracle of your own", key) from None
    except (IndexError, TypeError, ValueError) as error:
        raise _misfit(case, f"shapes do not fit oracle {name}: {error}", "", key) from None


def require(case: Case, name: str, key: str, file: Path, function: Callable[..., Any]) -> None:
    """Raise SpecError where a built-in formula does not fit the case's arrays, claims or outputs.

    It is tried on zeros; not at a large shape that cannot be made small, which tells in its run. key:
    of the variant, which names the formula. file: where its `function` is.
    """
    small = _small(case)
    if small is None:
        return
    case = small
    plans = case.buffers_of(Role.INPUT, Role.INOUT, Role.SYMBOL)
    arrays = {plan.name: np.zeros(plan.shape, numpy_dtype(plan.dtype)) for plan in plans}
    wanted = request_of(request(case), str(file))
    asked = FormulaCall(function, dict(case.sizes), dict(arrays), scalars(case))
    with placed(case, name, key):
        formula = recorded(asked, wanted)
        found = evaluated(asked, wanted)
        values = {key: parts.reference for key, parts in found.items()}
        require_outputs(case.buffers_of(Role.OUTPUT, Role.INOUT), case, name, values)
    for plan in case.buffers_of(Role.OUTPUT, Role.INOUT):
        if plan.dtype in FORMATS and plan.name not in formula.behind:
            said = f"oracle {name} makes {plan.name} of integers only"
            raise _misfit(case, said, "give it arrays of floats")


def _small(case: Case) -> Case | None:
    """The case, or where it is large one with smaller params; None where its shapes are not theirs."""
    if sum(plan.elements for plan in case.buffers) <= _TRIED:
        return case
    texts = {text for shape in shapes(case).values() for text in shape}
    if not texts <= case.shape.keys():  # a derived size may have no value at small params
        return None
    sizes = sorted(set(case.shape.values()))
    shape = {name: min(value, 3 + sizes.index(value)) for name, value in case.shape.items()}
    buffers = tuple(
        msgspec.structs.replace(plan, shape=tuple(shape[text] for text in shapes(case)[plan.name]))
        for plan in case.buffers
        if plan.name in shapes(case)
    )
    return msgspec.structs.replace(case, shape=shape, buffers=buffers)


def require_outputs(plans: Iterable[BufferPlan], case: Case, name: str, given: Arrays) -> None:
    """Raise SpecError where an output is not `given` in its shape."""
    for plan in plans:
        if plan.name not in given:
            raise _misfit(case, f"oracle {name} judges {', '.join(given)}, not {plan.name}", "")
        shape = given[plan.name].shape
        if shape != plan.shape:
            said = f"oracle {name} cannot judge {plan.name} {list(plan.shape)}, not {list(shape)}"
            raise _misfit(case, said, "")


def _misfit(case: Case, message: str, hint: str, key: str = "oracle") -> SpecError:
    where = Location(file=case.loaded.path, key=f"variants.{case.variant_name}.{key}")
    return SpecError(message, where=where, hint=hint)
