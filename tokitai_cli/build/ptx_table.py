"""The PTX instructions that are known, and C++ for each."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from tokitai_cli.build.ptx_conversions import converted
from tokitai_cli.build.ptx_halves import or_halves
from tokitai_cli.build.ptx_memory import atomic, copied, fence, memory
from tokitai_cli.build.ptx_operands import (
    PTX,
    Call,
    Names,
    Unknown,
    declared,
    flushed,
    register_of,
    value_of,
)

_COMPARED = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
             "lo": "<", "ls": "<=", "hi": ">", "hs": ">="}  # fmt: skip


def instruction(text: str, names: Names) -> str:
    """C++ of one instruction; a `.reg` adds to `names`. Raises Unknown."""
    if text.startswith(".reg"):
        return declared(text, names)
    guard, rest = "", text
    if found := re.match(r"@(!?)\s*(\S+)\s+(.*)", text):
        guard, rest = f"if ({found[1]}{register_of(found[2], names)[0]}) ", found[3]
    opcode, _, operands = rest.partition(" ")
    base, *words = opcode.split(".")
    parts = [one.strip() for one in re.split(r",(?![^{}\[\]]*[}\]])", operands) if one.strip()]
    rule = _RULES.get(base)
    code = rule(Call(text, base, words, parts, names)) if rule else None
    if code is None:
        raise Unknown(text)
    return f"{guard}{{ {code} }}"


def _arithmetic(operation: str) -> Callable[[Call], str]:
    """Two operands, of whole numbers (wrapping) or of floats."""

    def rule(call: Call) -> str:
        kind = call.kind
        real = kind in {"float", "double"}
        words = call.only(*(("rn", "ftz", "sat") if real else ()))
        a, b = (flushed(call.read(at, kind), words) for at in (1, 2))
        if not real and operation in {"+", "-"}:
            return call.write(
                0, f"({kind})((unsigned long long)({a}) {operation} (unsigned long long)({b}))"
            )
        return call.write(0, _ended(f"({a}) {operation} ({b})", words))

    return rule


def _wrapped(kind: str, a: str, operation: str, b: str) -> str:
    """Whole numbers, without an overflow that C++ leaves undefined."""
    return f"({kind})((unsigned long long)({a}) {operation} (unsigned long long)({b}))"


def _ended(value: str, words: set[str]) -> str:
    value = flushed(value, words)
    return f"{PTX}within_one({value})" if "sat" in words else value


def _wide(kind: str) -> str:
    wide = {
        "short": "int",
        "unsigned short": "unsigned",
        "int": "long long",
        "unsigned": "unsigned long long",
    }
    if kind not in wide:
        raise Unknown(kind)
    return wide[kind]


def _product(call: Call) -> str:
    """mul, mad and fma."""
    kind, more = call.kind, call.base in {"mad", "fma"}
    if kind in {"float", "double"}:
        words = call.only("rn", "ftz", "sat")
        a, b = (flushed(call.read(at, kind), words) for at in (1, 2))
        if not more:
            return call.write(0, _ended(f"({a}) * ({b})", words))
        c = flushed(call.read(3, kind), words)
        return call.write(0, _ended(f"{kind}(fma({a}, {b}, {c}))", words))
    words = call.only("lo", "hi", "wide")
    if len(words) != 1 or call.base == "fma":
        raise Unknown(call.text)
    a, b = call.read(1, kind), call.read(2, kind)
    result = _wide(kind) if "wide" in words else kind
    high = f"{PTX}high_product<{kind}>({a}, {b})"
    value = high if "hi" in words else _wrapped(result, a, "*", b)
    if more:
        value = _wrapped(result, value, "+", call.read(3, result))
    return call.write(0, value)


def _function(name: str, count: int, *known: str, of: str = "") -> Callable[[Call], str]:
    """A function of so many operands of the instruction's type, with these words."""

    def rule(call: Call) -> str:
        kind = call.kind
        if of and kind not in of.split("|"):
            raise Unknown(call.text)
        words = call.only(*known)
        values = ", ".join(flushed(call.read(at, kind), words) for at in range(1, count + 1))
        return call.write(0, _ended(f"(({kind})({name}({values})))", words))

    return rule


def _by_shift(name: str) -> Callable[[Call], str]:
    def rule(call: Call) -> str:
        call.only()
        return call.write(
            0, f"{PTX}{name}<{call.kind}>({call.read(1, call.kind)}, {call.read(2, 'unsigned')})"
        )

    return rule


def _funnel(call: Call) -> str:
    if sorted(call.words)[0] != "b32" or len(call.words) != 3:
        raise Unknown(call.text)
    side, mode = call.words[0], call.words[1]
    if side not in {"l", "r"} or mode not in {"wrap", "clamp"}:
        raise Unknown(call.text)
    name = f"__funnelshift_{side}{'c' if mode == 'clamp' else ''}"
    return call.write(0, f"{name}({', '.join(call.read(at, 'unsigned') for at in (1, 2, 3))})")


def _compared(call: Call) -> str:
    kind, words = call.kind, call.words[:-1]
    if len(words) != 1 or words[0] not in _COMPARED:
        raise Unknown(call.text)
    return call.write(0, f"({call.read(1, kind)}) {_COMPARED[words[0]]} ({call.read(2, kind)})")


def _chosen(call: Call) -> str:
    call.only()
    kind = call.kind
    return call.write(0, f"{call.read(3, 'bool')} ? {call.read(1, kind)} : {call.read(2, kind)}")


def _moved(call: Call) -> str:
    call.only()
    if len(call.parts) != 2:
        raise Unknown(call.text)
    kind = call.kind
    half = {"unsigned": "unsigned short", "unsigned long long": "unsigned"}.get(kind, "")
    shift = 16 if kind == "unsigned" else 32
    for at in (0, 1):
        pair = re.fullmatch(r"\{\s*([^,\s]+)\s*,\s*([^,\s]+)\s*\}", call.parts[at])
        if pair is None:
            continue
        if not half:
            raise Unknown(call.text)
        low, high = pair[1], pair[2]
        if at:
            values = [value_of(one, half, call.names, call.text) for one in (low, high)]
            return call.write(0, f"({kind})({values[0]}) | ({kind})({values[1]}) << {shift}")
        whole = call.read(1, kind)
        made = [f"const {kind} tokitai_whole = {whole};"]
        for name, value in ((low, "tokitai_whole"), (high, f"(tokitai_whole >> {shift})")):
            register, own = register_of(name, call.names, call.text)
            made.append(f"{register} = {PTX}as<{own}>(({half}){value});")
        return " ".join(made)
    return call.write(0, call.read(1, kind))


def _quotient(call: Call) -> str:
    """div of floats and of whole numbers, rem of these; by 0 it is a fault, as in C++."""
    kind = call.kind
    if kind in {"float", "double"} and call.base == "div":
        return _function(f"{PTX}quotient", 2, "rn", "full", "approx", "ftz")(call)
    if kind not in {
        "int",
        "unsigned",
        "long long",
        "unsigned long long",
        "short",
        "unsigned short",
    }:
        raise Unknown(call.text)
    call.only()
    name = f"{PTX}{'divided' if call.base == 'div' else 'remainder'}<{kind}>"
    return call.write(0, f"{name}({call.read(1, kind)}, {call.read(2, kind)})")


def _signed(call: Call) -> str:
    """neg and abs; the least whole number stays as it is."""
    kind = call.kind
    if kind in {"float", "double"}:
        return _function("-" if call.base == "neg" else "fabs", 1, "ftz")(call)
    if kind not in {"int", "long long", "short"}:
        raise Unknown(call.text)
    call.only()
    value = call.read(1, kind)
    less = _wrapped(kind, "0", "-", value)
    return call.write(0, less if call.base == "neg" else f"({value}) < 0 ? {less} : ({value})")


def _address(call: Call) -> str:
    words = call.words
    if words[:2] == ["to", "shared"]:
        at = f"reinterpret_cast<const void*>({call.read(1, call.kind)})"
        value = f"(unsigned long long)__cvta_generic_to_shared({at})"
    elif words[:1] == ["shared"]:
        value = f"(unsigned long long)__cvta_shared_to_generic({call.read(1, call.kind)})"
    elif words[:2] == ["to", "global"] or words[:1] == ["global"]:
        value = call.read(1, call.kind)
    else:
        raise Unknown(call.text)
    return call.write(0, value)


def _plain(known: Mapping[str, str]) -> Callable[[Call], str]:
    """Instructions whose words alone say what they do."""

    def rule(call: Call) -> str:
        code = known.get(".".join(call.words) + " ".join(["", *call.parts]))
        if code is None:
            raise Unknown(call.text)
        return code

    return rule


def _prefetched(call: Call) -> str:
    return "(void)0;"


def _fixed(name: str, kinds: Sequence[str], *words: str) -> Callable[[Call], str]:
    """A function of operands of these types."""

    def rule(call: Call) -> str:
        if call.words != [*words]:
            raise Unknown(call.text)
        values = ", ".join(call.read(at, kind) for at, kind in enumerate(kinds, 1))
        return call.write(0, f"{name}({values})")

    return rule


def _counted(short: str, long: str) -> Callable[[Call], str]:
    def rule(call: Call) -> str:
        call.only()
        name = {"b32": short, "b64": long}.get(call.words[-1])
        if name is None:
            raise Unknown(call.text)
        signed = "int" if call.words[-1] == "b32" else "long long"
        kind = signed if call.base == "clz" else call.kind
        return call.write(0, f"{name}({call.read(1, kind)})")

    return rule


def _field(call: Call) -> str:
    call.only()
    kind, more = call.kind, call.base == "bfi"
    values = [call.read(at, kind) for at in range(1, 3 if more else 2)]
    values += [call.read(len(values) + 1 + at, "unsigned") for at in (0, 1)]
    return call.write(
        0, f"{PTX}{'with_field' if more else 'field_of'}<{kind}>({', '.join(values)})"
    )


def _approximate(name: str) -> Callable[[Call], str]:
    """A function of a float that GPUs approximate; here it is rounded, as the intrinsics are."""
    return _function(name, 1, "approx", "ftz", of="float")


def _dot(call: Call) -> str:
    kinds = {("u32", "u32"): "unsigned", ("s32", "s32"): "int"}
    kind = kinds.get(tuple(call.words))  # type: ignore[arg-type]
    if kind is None:
        raise Unknown(call.text)
    return call.write(0, f"__dp4a({', '.join(call.read(at, kind) for at in (1, 2, 3))})")


_BITS = "unsigned|unsigned long long|unsigned short|bool"
_REAL = "float|double"
_RULES: dict[str, Callable[[Call], str]] = {
    "mov": _moved, "add": or_halves(_arithmetic("+")), "sub": or_halves(_arithmetic("-")),
    "mul": or_halves(_product), "mad": _product, "fma": or_halves(_product),
    "min": or_halves(_function(f"{PTX}least", 2, "ftz")),
    "max": or_halves(_function(f"{PTX}most", 2, "ftz")),
    "and": _function("std::bit_and<>()", 2, of=_BITS), "or": _function("std::bit_or<>()", 2, of=_BITS),
    "xor": _function("std::bit_xor<>()", 2, of=_BITS),
    "not": _function("std::bit_not<>()", 1, of=_BITS.removesuffix("|bool")),
    "shl": _by_shift("left_shift"), "shr": _by_shift("right_shift"), "shf": _funnel,
    "lop3": _fixed(f"{PTX}lop3", ["unsigned"] * 4, "b32"),
    "prmt": _fixed(f"{PTX}permuted", ["unsigned"] * 3, "b32"),
    "bfe": _field, "bfi": _field, "popc": _counted("__popc", "__popcll"),
    "clz": _counted("__clz", "__clzll"), "brev": _counted("__brev", "__brevll"),
    "setp": _compared, "selp": _chosen, "cvt": converted, "cvta": _address, "cp": copied,
    "ld": memory, "st": memory, "ldu": memory, "prefetch": _prefetched, "prefetchu": _prefetched,
    "ex2": or_halves(_approximate("exp2")), "lg2": _approximate("log2"), "sin": _approximate("sin"),
    "cos": _approximate("cos"), "tanh": or_halves(_approximate("tanh")),
    "rsqrt": _approximate("1 / sqrt"),
    "sqrt": _function("sqrt", 1, "rn", "approx", "ftz", of=_REAL),
    "rcp": _function("1 / ", 1, "rn", "approx", "ftz", of=_REAL),
    "bar": _plain({"sync 0": "__syncthreads();"}), "barrier": _plain({"sync 0": "__syncthreads();"}),
    "membar": fence, "fence": fence,
    "trap": _plain({"": "__trap();"}), "dp4a": _dot,
    "div": _quotient, "rem": _quotient, "neg": or_halves(_signed), "abs": or_halves(_signed),
    "atom": atomic, "red": atomic,
}  # fmt: skip
