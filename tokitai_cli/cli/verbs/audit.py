"""`check`, `recheck`, `reproduce`, `unpack`, `diff`, `claims`, `attest`: evidence of others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tokitai_cli.cli import typer_options
from tokitai_cli.cli.ending import collect_garbage
from tokitai_cli.cli.verbs.json_option import Json, print_json

if TYPE_CHECKING:
    from tokitai_cli.core.model.audit_answer import Answer

File = Annotated[str, typer.Argument(metavar="FILE", help="The evidence file of a run, NAME.json.")]


def check(
    file: File,
    key: Annotated[
        str | None,
        typer.Option(
            metavar="KEY", help="Public key (PEM or minisign) that must have signed the file."
        ),
    ] = None,
    attestation: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The envelope; default: NAME.dsse.json next to FILE."),
    ] = None,
    json: Json = False,
) -> int:
    """Check that evidence is intact and agrees with itself.

    Checks the schema, all digests, every count and claim against the cases, and the signature.

    Example: tokitai check reports/gemm-bw.json
    """
    from tokitai_cli.audit.checking import check

    return _shown(check(file, key=key, attestation=attestation), json)


def recheck(
    file: File,
    limit: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METRIC=VALUE", help="A limit that replaces the spec's; may be repeated."
        ),
    ] = None,
    json: Json = False,
) -> int:
    """Judge saved arrays again; runs no kernel.

    The limits may differ from those of the run.

    Example: tokitai recheck reports/gemm-bw.json
    """
    from tokitai_cli.audit.recheck import recheck

    return _shown(recheck(file, limit or ()), json)


def unpack(
    file: File,
    folder: Annotated[str, typer.Argument(metavar="DIR", help="A new or empty folder.")],
    json: Json = False,
) -> int:
    """Write out the spec and sources that evidence holds.

    Never overwrites a file.

    Example: tokitai unpack reports/gemm-bw.json copy/
    """
    from tokitai_cli.audit.unpack import unpack

    return _shown(unpack(file, folder), json)


def diff(
    first: Annotated[str, typer.Argument(metavar="A", help="Evidence.")],
    second: Annotated[str, typer.Argument(metavar="B", help="Evidence.")],
    json: Json = False,
) -> int:
    """Compare two runs of one spec.

    Compares verdicts, bits, metrics, claims, environment and times.

    Example: tokitai diff old.json new.json
    """
    from tokitai_cli.audit.run_diff import diff

    return _shown(diff(first, second), json)


def claims(
    places: Annotated[
        list[str],
        typer.Argument(metavar="DIR...", help="Folders with evidence, or evidence files."),
    ],
    require: Annotated[
        list[str] | None,
        typer.Option(metavar="CLAIM", help="Exit with 1 unless every report supports this claim."),
    ] = None,
    json: Json = False,
) -> int:
    """List the claims that all reports support, with reasons.

    Example: tokitai claims reports/
    """
    from tokitai_cli.audit.joined_claims import claims
    from tokitai_cli.batch import lacking

    return _shown(claims(places, require or (), lacking(places)), json)


def attest(
    file: File,
    key: Annotated[str, typer.Option(metavar="KEY", help="Private ed25519 key: PEM or minisign.")],
    out: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="The envelope to write; default: NAME.dsse.json next to FILE."
        ),
    ] = None,
    json: Json = False,
) -> int:
    """Sign evidence.

    Writes a DSSE envelope over an in-toto statement.

    Example: tokitai attest reports/gemm-bw.json --key key.pem
    """
    from tokitai_cli.audit.signature import attest

    return _shown(attest(file, key, out), json)


def reproduce(words: Sequence[str]) -> typer_options.Verb:
    """The verb `reproduce`."""
    op = typer_options.argument(
        "op", str, "SPEC", "The local spec; default: the built-in op.", default=""
    )
    file = typer_options.argument("file", str, "FILE", "The evidence file of a run, NAME.json.")
    return typer_options.with_options(_reproduce, "reproduce", file, op)


def _reproduce(file: str, op: str, **given: Any) -> int:
    """Run the cases of evidence again and report differences.

    The local spec must have the digest that the evidence names.

    Example: tokitai reproduce reports/gemm-bw.json
    """
    from tokitai_cli.audit.reproduce import reproduce
    from tokitai_cli.cli import terminal

    given, front = typer_options.split("reproduce", given)
    collect_garbage()
    with terminal.Progress(quiet=front["quiet"]) as progress:
        authors = front["run_authors_code"]
        answer, outcome = reproduce(file, op or None, progress, given, authors_code=authors)
    show_answer(answer, outcome.files, front["json"])
    if outcome.ended_by is not None:
        raise outcome.ended_by
    return answer.exit_code


def _shown(answer: Answer, to_json: bool) -> int:
    show_answer(answer, (), to_json)
    return answer.exit_code


def show_answer(answer: Answer, files: Sequence[Path], to_json: bool) -> None:
    """Show an answer and the reports that were written; with `to_json` all of it on stdout as JSON."""
    from tokitai_cli.cli import terminal

    if not to_json:
        terminal.show_answer(answer, files)
        return
    import msgspec

    told = msgspec.to_builtins(answer)
    print_json(told | {"reports": files} if files else told)
