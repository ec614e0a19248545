"""What a spec says, and what its checks can tell, as blocks on stdout."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from tokitai_cli.cli.terminal.streams import emit
from tokitai_cli.cli.terminal.styled_blocks import (
    BAD,
    DOUBTFUL,
    NORMAL,
    STRONG,
    Block,
    Column,
    Line,
    Table,
)
from tokitai_cli.core.model.buffers import leaves_of
from tokitai_cli.core.model.case import LoadedSpec
from tokitai_cli.core.model.judged import Score
from tokitai_cli.core.model.metrics import METRICS
from tokitai_cli.core.model.spec import Buffer, Check, Order, Param, Property, Random, Variant
from tokitai_cli.core.model.wording import number, shape_text


def show_spec(loaded: LoadedSpec) -> None:
    """Show an op's contract."""
    spec = loaded.spec
    blocks: list[Block] = [Line(f"{spec.op}: {spec.title}", STRONG)]
    blocks += [Line(line) for line in spec.summary.splitlines()]
    blocks += [Line(str(loaded.path), label="spec:"), Line(loaded.digest, label="sha256:")]
    if spec.params:
        rows = [_param(name, param) for name, param in spec.params.items()]
        headings = ("parameter", "default", "min", "max", "multiple of")
        columns = [Column(word) for word in headings] + [Column("", wide=True)]
        blocks += [Line(""), Table(columns, rows)]
    if spec.sizes:
        rows = [[name, str(text)] for name, text in spec.sizes.items()]
        blocks += [Line(""), Table([Column("size"), Column("is", wide=True)], rows)]
    for name, variant in spec.variants.items():
        blocks += [Line(""), *_variant(name, variant)]
    rows = [[name, profile.help] for name, profile in spec.profiles.items()]
    blocks += [Line(""), Table([Column("profile"), Column("", wide=True)], rows)]
    for name, shapes in spec.suites.items():
        blocks += [Line(""), Line(f"suite {name}", STRONG)]
        for one in shapes:
            shape = ",".join(f"{key}={value}" for key, value in one.shape.items()) or "defaults"
            blocks.append(Line(f"{shape}  {one.why}", indent=2))
    blocks += [Line("")] if spec.known_bugs or spec.non_claims else []
    blocks += [Line(bug.reason, label="known bug:") for bug in spec.known_bugs]
    blocks += [Line(text, label="not claimed:") for text in spec.non_claims]
    emit(blocks, sys.stdout)


def show_scores(scores: Iterable[Score]) -> None:
    """Show what the checks of each output make of the changes of its formula, as it is known."""
    place: tuple[str, Sequence[str]] = ("", ())
    for one in scores:
        blocks: list[Block] = []
        if place != (one.variant, one.profiles):
            place = (one.variant, one.profiles)
            blocks += [Line(""), Line(f"score of {one.variant}", STRONG)]
            on = f"{shape_text(one.shape)}, profiles {', '.join(one.profiles)}; no kernel was run"
            blocks.append(Line(on, label="tried on:", indent=2))
            left = [f"{profile} ({reason})" for profile, reason in one.skipped.items()]
            blocks += [Line("; ".join(left), label="left out:", indent=2)] if left else []
        rejected = one.tried - len(one.accepted) - len(one.undetected)
        text = f"checks reject {rejected} of {one.tried} changes of the formula"
        text = (
            text if one.tried else "no change of the formula alters it: its checks cannot be scored"
        )
        blocks.append(Line(f"{one.output}: {text}", DOUBTFUL if one.accepted else NORMAL, indent=2))
        blocks += [Line(words, BAD, label="checks accept:", indent=4) for words in one.accepted]
        blocks += [Line(words, label="none can detect:", indent=4) for words in one.undetected]
        emit(blocks, sys.stdout)


_ROLES = {
    "inputs": "input",
    "outputs": "output",
    "inout": "in-out",
    "workspaces": "workspace",
    "symbols": "symbol",
}


def _param(name: str, param: Param) -> list[str]:
    most = "-" if param.max is None else str(param.max)
    step = "-" if param.multiple_of == 1 else str(param.multiple_of)
    return [name, str(param.default), str(param.min), most, step, param.help]


def _variant(name: str, variant: Variant) -> list[Block]:
    blocks: list[Block] = [Line(f"variant {name}: {variant.title}".rstrip(": "), STRONG)]
    words = {
        "formula": variant.formula,
        "source": variant.source,
        "lowering": variant.lowering,
        "backend": variant.backend,
        "oracle": variant.oracle,
        "replay": variant.replay,
        "requires": "; ".join(variant.requires),
        "unset": "; ".join(f"{key} where {text}" for key, text in variant.unset.items()),
        "random": _random(variant.random),
        "include": " ".join(variant.include),
        "flags": " ".join(variant.flags),
        "defines": " ".join(f"{key}={value}" for key, value in variant.defines.items()),
        "deterministic": "yes" if variant.deterministic else "no",
    }
    blocks += [Line(text, label=f"{label}:", indent=2) for label, text in words.items() if text]
    for key, role in _ROLES.items():
        buffers: dict[str, Buffer] = getattr(variant, key)
        for buffer_name, buffer in buffers.items():
            shape = ", ".join(map(str, buffer.shape))
            blocks.append(Line(f"{buffer_name}: {buffer.dtype} [{shape}]", label=role, indent=2))
            if buffer.constant is not None:
                when = f", when {buffer.constant.when}" if buffer.constant.when else ""
                text = f"{number(buffer.constant.value)}{when}"
                blocks.append(Line(text, label="constant:", indent=4))
            if buffer.order:
                blocks.append(Line(_order(buffer.order), label="order:", indent=4))
            if buffer.scratch:
                blocks.append(Line(buffer.scratch, label="not judged:", indent=4))
            if buffer.non_finite:
                blocks.append(Line(buffer.non_finite, label="not finite:", indent=4))
    for one, fields in variant.structs.items():
        held = ", ".join(f"{place} = {value}" for place, value in leaves_of(fields))
        blocks.append(Line(f"{one}: {held or 'no fields'}", label="struct", indent=2))
    for one, arrays in variant.lists.items():
        what = f"slices of {arrays}" if isinstance(arrays, str) else ", ".join(arrays)
        blocks.append(Line(f"{one}: {what}", label="list", indent=2))
    for launch in variant.launches:
        grid, block = (" x ".join(map(str, size)) for size in (launch.grid, launch.block))
        steps = "".join(f", for {loop.name} below {loop.count}" for loop in launch.loops)
        text = f"{launch.kernel}, grid {grid}, block {block}{steps}"
        blocks.append(Line(text, label="launch:", indent=2))
    blocks += [Line(_check(check), label="check:", indent=2) for check in variant.checks]
    blocks += [Line(_property(one), label="property:", indent=2) for one in variant.properties]
    blocks += [Line(text, label="not claimed:", indent=2) for text in variant.non_claims]
    return blocks


def _random(random: Random | None) -> str:
    if random is None:
        return ""
    seed = f", by the seed {random.seed}" if random.seed else ""
    return f"{random.mask}, elements 1 with the probability {random.p}{seed}"


def _order(order: Order | str) -> str:
    if isinstance(order, str):
        return order
    if order.beside:
        return f"that of {order.beside}"
    within = f" within the segments of {order.within}" if order.within else ""
    return f"any along axis {order.axis}{within}"


def _property(asked: Property) -> str:
    text = f"{asked.name} of {asked.output}" if asked.output else asked.name
    if asked.profiles:
        text += f", profiles {', '.join(asked.profiles)}"
    return f"{text}: {asked.why}" if asked.why else text


def _check(check: Check) -> str:
    limit = f" <= {check.limit:g}" if METRICS[check.metric].limited else ""
    limit = f" {check.tolerances}" if check.tolerances else limit
    text = f"{check.metric}{limit} against the {check.against}"
    if check.output:
        text += f", output {check.output}"
    if check.profiles:
        text += f", profiles {', '.join(check.profiles)}"
    return f"{text}: {check.why}" if check.why else text
