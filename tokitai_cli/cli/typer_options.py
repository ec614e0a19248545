"""Options of a verb for typer: those of the table, and one per parameter of the op."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tokitai_cli.cli.ending import answer_for_libraries
from tokitai_cli.cli.project_file import options_from_file
from tokitai_cli.core.errors import TokitaiError
from tokitai_cli.core.model.device import TRAITS
from tokitai_cli.core.model.options import Kind, Option, flag, options_of
from tokitai_cli.core.model.wording import visible
from tokitai_cli.report import EVIDENCE_FORMATS

if TYPE_CHECKING:
    from tokitai_cli.core.model.case import LoadedSpec
    from tokitai_cli.core.model.spec import Spec

Verb = Callable[..., Any]
_TYPES: dict[Kind, Any] = {
    Kind.FLAG: bool,
    Kind.TEXT: str,
    Kind.NAMES: list[str],
    Kind.NUMBER: int,
    Kind.NUMBERS: list[str],
    Kind.SECONDS: float,
}
HELP = ("-h", "--help")
# Variable in which a shell says that it asks what may follow.
COMPLETE = "_TOKITAI_COMPLETE"


def with_options(
    verb: Verb, name: str, *arguments: inspect.Parameter, spec: Spec | None = None
) -> Verb:
    """`verb` with `arguments` before the options that the table has for `name`.

    spec: what a shell is told of variants and the like.
    """

    @functools.wraps(verb)
    def run_verb(**given: Any) -> Any:
        return verb(**given)

    from_file = options_from_file(name) if COMPLETE not in os.environ else {}
    options = [
        _parameter(option, name, spec, from_file.get(option.name))
        for option in options_of(name).values()
    ]
    run_verb.__signature__ = inspect.Signature([*arguments, *options])  # type: ignore[attr-defined]
    run_verb.__annotations__ = {}
    return run_verb


def with_op(
    verb: Verb, name: str, words: Sequence[str], *, is_source: Callable[[str], bool] | None = None
) -> Verb:
    """`verb` with OP, OP's parameters and the options of `name`.

    Which parameters there are is looked up in `words`, the command line. The verb gets the loaded spec
    as `op`, or nothing where none is named, and the parameters as `shapes`. is_source: of a verb
    that takes sources too, which it gets as they are, and specs whose formula is still to be written.
    """
    called = find_op(words, name)
    loaded: LoadedSpec | None = None
    if called is not None and not (is_source and is_source(called)):
        from tokitai_cli.run.run_options import check_surroundings
        from tokitai_cli.run.specs import load_op

        answer_for_libraries()
        check_surroundings()
        try:
            loaded = load_op(called, judged=is_source is None)
        except TokitaiError:
            if COMPLETE not in os.environ:  # else it is half typed
                raise
    params = tuple(loaded.spec.params) if loaded is not None else ()

    @functools.wraps(verb)
    def run_verb(**given: Any) -> Any:
        shapes = {name: one for name in params if (one := given.pop(name))}
        given["op"] = loaded if loaded and given["op"] == called else given["op"]
        return verb(shapes=shapes, **given)

    help = "A built-in op, or the path of a spec file."
    if is_source is not None:
        help = "A built-in op, the path of a spec file, or a source or folder with kernels."
    op = argument("op", str, "OP", help, default="" if "all" in options_of(name) else _NEEDED)
    spec = None if loaded is None else loaded.spec
    own = [] if spec is None else [_param(spec, name) for name in params]
    return with_options(run_verb, name, op, *own, spec=spec)


_NEEDED = inspect.Parameter.empty


def argument(
    name: str, kind: Any, metavar: str, help: str, default: Any = _NEEDED
) -> inspect.Parameter:
    """A positional argument of a verb."""
    asked = typer.Argument(
        metavar=metavar,
        help=help,
        show_default=False,
        autocompletion=_ops if name == "op" else None,
    )
    return _keyword(name, Annotated[kind, asked], default)


def _param(spec: Spec, name: str) -> inspect.Parameter:
    asked = typer.Option(
        flag(name), help=param_help(spec, name), metavar="N[,N...]", show_default=False
    )
    return _keyword(name, Annotated[list[str], asked], [])


def _ops(incomplete: str) -> list[str]:
    """Built-in ops for a shell, which knows files itself."""
    from tokitai_cli import spec

    return [name for name, _ in spec.builtin() if name.startswith(incomplete)]


def _values(option: Option, spec: Spec | None) -> Callable[[str], list[str]] | None:
    """What can be given for an option, for a shell; None where that is not a list."""
    known: dict[str, Iterable[str]] = {
        "format": EVIDENCE_FORMATS,
        "device": ["auto", "all", *TRAITS],
    }
    if spec is not None:
        known |= {"variant": spec.variants, "profile": spec.profiles, "suite": spec.suites}
    if not (words := [*known.get(option.name, map(str, option.choices))]):
        return None

    def values(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return values


def _parameter(
    option: Option, verb: str, spec: Spec | None, from_file: Any = None
) -> inspect.Parameter:
    """The option, whose default is the project file's where that says one."""
    default = option.default_of(verb) if from_file is None else from_file
    if isinstance(default, tuple):
        default = [str(one) for one in default]
    takes = option.kind is not Kind.FLAG
    ranged = option.kind in {Kind.NUMBER, Kind.SECONDS}
    asked = typer.Option(
        # What a file switches on can be switched off.
        *filter(
            None,
            (f"{option.flag}/{_off(option)}" if from_file is True else option.flag, option.short),
        ),
        help=option.help.replace("{formats}", ", ".join(EVIDENCE_FORMATS)),
        metavar=option.metavar if takes else None,
        min=option.least if ranged else None,
        max=option.most if ranged else None,
        autocompletion=_values(option, spec) if COMPLETE in os.environ else None,
    )
    return _keyword(option.name, Annotated[_TYPES[option.kind], asked], default)


def _off(option: Option) -> str:
    return flag(f"no_{option.name}")


def _keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def find_op(words: Sequence[str], verb: str) -> str | None:
    """First positional argument behind `verb`, or None. Needed before the options are known."""
    alone = set(HELP)
    for option in options_of(verb).values():
        if option.kind is Kind.FLAG:
            alone |= {option.flag, option.short, _off(option)}
    rest = iter(words)
    if next(rest, None) != verb:
        return None
    for word in rest:
        if word == "--":
            return next(rest, None)
        if not word.startswith("-") or word == "-":
            return word
        if word not in alone and "=" not in word:
            next(rest, None)
    return None


def split(verb: str, given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is given for the work of a verb, and for the command line itself, which is checked."""
    from tokitai_cli.run.run_options import checked

    front = {name for name, option in options_of(verb).items() if option.front}
    work = {name: value for name, value in given.items() if name not in front}
    mine = {name: value for name, value in given.items() if name in front}
    return work, checked(verb, mine, front=True)


def param_help(spec: Spec, name: str) -> str:
    """Help of a parameter: what it is, its default and every constraint on it."""
    param = spec.params[name]
    limits = [f"default {param.default}", f"at least {param.min}"]
    if param.max is not None:
        limits.append(f"at most {param.max}")
    if param.multiple_of != 1:
        limits.append(f"a multiple of {param.multiple_of}")
    needs: dict[str, list[str]] = {}
    for variant_name, variant in spec.variants.items():
        for requirement in variant.requires:
            if name in requirement.replace("(", " ").replace(")", " ").split():
                needs.setdefault(requirement, []).append(variant_name)
    for requirement, variants in needs.items():
        who = "" if len(variants) == len(spec.variants) else f" for {', '.join(variants)}"
        limits.append(f"{requirement}{who}")
    return visible(f"{param.help or name} [{'; '.join(limits)}]")
