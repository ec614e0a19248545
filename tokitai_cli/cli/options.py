"""The options of `verify`: a fixed table, and one option per parameter of the op."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from tokitai_cli.model.spec import Spec
from tokitai_cli.report import EVIDENCE_FORMATS

# name -> (annotation, default); the order is that of the help.
_TABLE: dict[str, tuple[Any, Any]] = {
    "device": (
        Annotated[
            str,
            typer.Option(
                metavar="NAME", help="auto (first of rocm, cuda, cpu), all, or one device's name."
            ),
        ],
        "auto",
    ),
    "variant": (
        Annotated[
            list[str], typer.Option(metavar="NAME", help="Only this variant; may be repeated.")
        ],
        [],
    ),
    "profile": (
        Annotated[
            list[str],
            typer.Option(metavar="NAME", help="Only this input profile; may be repeated."),
        ],
        [],
    ),
    "suite": (
        Annotated[str, typer.Option(metavar="NAME", help="Shapes of this suite of the spec.")],
        "",
    ),
    "seed": (
        Annotated[
            list[str],
            typer.Option(metavar="N[,N...]", help="Seed of the inputs; a list runs each."),
        ],
        ["0"],
    ),
    "repeat": (
        Annotated[
            int, typer.Option(metavar="N", min=2, max=1000, help="Repetitions of each case.")
        ],
        2,
    ),
    "warmup": (
        Annotated[
            int,
            typer.Option(metavar="N", min=0, max=1000, help="Runs before the timed repetitions."),
        ],
        0,
    ),
    "timeout": (
        Annotated[
            float,
            typer.Option(
                metavar="SECONDS", min=0.1, help="Seconds until a kernel or an oracle is ended."
            ),
        ],
        60.0,
    ),
    "arch": (
        Annotated[str, typer.Option(metavar="NAME", help="GPU architecture to build for.")],
        "",
    ),
    "gpu": (Annotated[int, typer.Option(metavar="N", min=0, help="Index of the GPU to use.")], 0),
    "warp_size": (
        Annotated[
            int,
            typer.Option(
                metavar="32|64",
                help="Lanes of a warp on the cpu device; 32 by itself.",
                show_default=False,
            ),
        ],
        0,
    ),
    "build_only": (
        Annotated[bool, typer.Option("--build-only", help="Build, run nothing.")],
        False,
    ),
    "out": (
        Annotated[str, typer.Option(metavar="DIR", help="Folder for the evidence files.")],
        "reports",
    ),
    "name": (
        Annotated[
            str, typer.Option(metavar="NAME", help="Base name of the files; default the op's.")
        ],
        "",
    ),
    "format": (
        Annotated[
            list[str],
            typer.Option(
                metavar="NAME",
                help=f"Report format: {', '.join(EVIDENCE_FORMATS)}; may be repeated.",
            ),
        ],
        ["md"],
    ),
    "json": (
        Annotated[bool, typer.Option("--json", help="Print the evidence JSON on stdout.")],
        False,
    ),
    "save_arrays": (
        Annotated[
            bool,
            typer.Option("--save-arrays", help="Keep inputs, got and want of failing cases."),
        ],
        False,
    ),
    "quiet": (Annotated[bool, typer.Option("--quiet", "-q", help="No progress lines.")], False),
}
_FLAGS = frozenset({"--all", "--build-only", "--json", "--save-arrays", "--quiet", "-q", "--help"})


def entry(name: str) -> tuple[Any, Any]:
    """Annotation and default of an option that other verbs have too."""
    return _TABLE[name]


def reserved_names() -> frozenset[str]:
    """Option names that a spec's parameter cannot have."""
    return frozenset(_TABLE) | {"all", "help", "op"}


def find_op(arguments: Sequence[str], verb: str) -> str | None:
    """First positional argument behind `verb`, or None. Needed before the options are known."""
    rest = iter(arguments)
    if next(rest, None) != verb:
        return None
    for word in rest:
        if word == "--":
            return next(rest, None)
        if not word.startswith("-") or word == "-":
            return word
        if word not in _FLAGS and "=" not in word:
            next(rest, None)
    return None


# What `sanitize` runs where nothing else is said: a watched kernel takes ten to a hundred times longer.
SANITIZE_DEFAULTS = {"device": "cuda", "timeout": 600.0}


def signature(
    spec: Spec | None, defaults: Mapping[str, Any] | None = None, *, every: bool = False
) -> inspect.Signature:
    """Signature of `verify` for one op: OP, the op's parameters, then the fixed options.

    `defaults` replace those of the table. With `every` there is --all, and OP may be left out.
    """
    changed = defaults or {}
    kind = inspect.Parameter.KEYWORD_ONLY
    op = Annotated[
        str,
        typer.Argument(
            metavar="OP", help="A built-in op, or the path of a spec file.", show_default=False
        ),
    ]
    parameters = [
        inspect.Parameter(
            "op", kind, default="" if every else inspect.Parameter.empty, annotation=op
        )
    ]
    if every:
        words = "Every built-in op in turn, its quick suite if no other is named."
        flag = Annotated[bool, typer.Option("--all", help=words)]
        parameters.append(inspect.Parameter("all", kind, default=False, annotation=flag))
    if spec is not None:
        parameters += [
            inspect.Parameter(
                name,
                kind,
                default=[],
                annotation=Annotated[
                    list[str],
                    typer.Option(
                        f"--{name.replace('_', '-')}",
                        help=param_help(spec, name),
                        metavar="N[,N...]",
                        show_default=False,
                    ),
                ],
            )
            for name in spec.params
        ]
    parameters += [
        inspect.Parameter(name, kind, default=changed.get(name, default), annotation=annotation)
        for name, (annotation, default) in _TABLE.items()
    ]
    return inspect.Signature(parameters)


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
    return f"{param.help or name} [{'; '.join(limits)}]"
