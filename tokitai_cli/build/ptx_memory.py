"""PTX instructions that reach memory, as C++: loads, stores, atomic operations, fences and copies."""

from __future__ import annotations

import re

from tokitai_cli.build.ptx_operands import PTX, Call, Unknown, register_of, value_of

_ORDERS = {"relaxed": "__ATOMIC_RELAXED", "acquire": "__ATOMIC_ACQUIRE", "release": "__ATOMIC_RELEASE",
           "acq_rel": "__ATOMIC_ACQ_REL", "sc": "__ATOMIC_SEQ_CST"}  # fmt: skip
_SCOPES = {"cta": "block", "gpu": "device", "sys": "system"}
_ORDERS_OF = {
    "ld": {"relaxed", "acquire"},
    "st": {"relaxed", "release"},
    "red": {"relaxed", "release"},
    "atom": {"relaxed", "acquire", "release", "acq_rel"},
    "fence": {"acquire", "release", "acq_rel", "sc"},
}
_CACHES = {"nc", "ca", "cg", "cs", "cv", "lu", "wb", "wt", "weak"}
_ATOMICS = {"add": "Add", "min": "Min", "max": "Max", "and": "And", "or": "Or", "xor": "Xor",
            "exch": "Exch", "cas": "CAS", "inc": "Inc", "dec": "Dec"}  # fmt: skip


def _stated(call: Call, order: str = "", scope: str = "") -> str:
    """Order and scope as C++'s arguments; empty where neither is stated, or the given ones.

    Raises Unknown for an order that the instruction has not, and for one without a scope.
    """
    orders = [one for one in call.words if one in _ORDERS] or [order][: bool(order)]
    scopes = [one for one in call.words if one in _SCOPES] or [scope][: bool(scope)]
    if not orders and not scopes:
        return ""
    if len(orders) != 1 or len(scopes) != 1 or orders[0] not in _ORDERS_OF.get(call.base, ()):
        raise Unknown(call.text)
    return f"tokitai::Scope::{_SCOPES[scopes[0]]}, {_ORDERS[orders[0]]}"


def fence(call: Call) -> str:
    """fence and membar: acquires and releases, where nothing else is stated. Raises Unknown."""
    if call.base == "membar":
        scope = {"gl": "gpu", "cta": "cta", "sys": "sys"}.get(".".join(call.words))
        if scope is None:
            raise Unknown(call.text)
        return f"tokitai::fence(tokitai::Scope::{_SCOPES[scope]});"
    if {*call.words} - {*_ORDERS, *_SCOPES} or call.parts:
        raise Unknown(call.text)
    return f"tokitai::fence({_stated(call, 'acq_rel')});"


def _place(call: Call, part: str, space: str) -> str:
    """Address and offset of a memory operand."""
    found = re.fullmatch(
        r"\[\s*(%\[\w+\]|[^\s+\]]+)\s*(?:\+\s*(-?\d+|0[xX][0-9a-fA-F]+))?\s*\]", part
    )
    if found is None:
        raise Unknown(call.text)
    address = value_of(found[1], "unsigned long long", call.names, call.text)
    at = (
        f"{PTX}shared_at({address})"
        if space == "shared"
        else f"reinterpret_cast<const void*>({address})"
    )
    return f"{at}, {found[2] or 0}"


def memory(call: Call) -> str:
    """ld and st: of global, shared and generic memory, of one to four elements."""
    stated = _stated(call)
    told = _CACHES | {"volatile"} | _ORDERS.keys() | _SCOPES.keys()
    words = [one for one in call.words[:-1] if one not in told and not re.match(r"L[12]::", one)]
    spaces = [one for one in words if one in {"global", "shared"}]
    counts = [int(one[1:]) for one in words if one in {"v2", "v4"}]
    if (
        len(words) != len(spaces) + len(counts)
        or len(spaces) > 1
        or len(counts) > 1
        or len(call.parts) != 2
        or (stated and {"volatile", "nc", "weak"} & {*call.words})
    ):
        raise Unknown(call.text)
    kind, loads = call.kind, call.base != "st"
    target = f"{PTX}element<{'volatile ' if 'volatile' in call.words else ''}{kind}>"
    count = counts[0] if counts else 1
    values = call.parts[0 if loads else 1].strip("{} ").split(",")
    if len(values) != count:
        raise Unknown(call.text)
    place = _place(call, call.parts[1 if loads else 0], spaces[0] if spaces else "")
    code = []
    for number, name in enumerate(one.strip() for one in values):
        at = f"{place} + {number} * (long long)sizeof({kind})"
        if not loads:
            value = value_of(name, kind, call.names, call.text)
            code.append(
                f"{PTX}ordered_store<{kind}>({at}, {value}, {stated});"
                if stated
                else f"*{target}({at}) = {value};"
            )
        elif name != "_":
            read = f"{PTX}ordered_load<{kind}>({at}, {stated})" if stated else f"*{target}({at})"
            code.append(f"const {kind} tokitai_read_{number} = {read};")
    for number, name in enumerate(one.strip() for one in values) if loads else ():
        if name != "_":
            register, own = register_of(name, call.names, call.text)
            code.append(f"{register} = {PTX}as<{own}>(tokitai_read_{number});")
    return " ".join(code)


def atomic(call: Call) -> str:
    """atom, and red, which gives nothing back: of global, shared and generic memory."""
    stated = _stated(call, "relaxed", "gpu")
    words = [one for one in call.words[:-1] if one not in _ORDERS and one not in _SCOPES]
    spaces = [one for one in words if one in {"global", "shared"}]
    (operation, *more) = [one for one in words if one not in spaces] or [""]
    at = 0 if call.base == "red" else 1
    given = 2 if operation == "cas" else 1
    if operation not in _ATOMICS or more or len(spaces) > 1 or len(call.parts) != at + 1 + given:
        raise Unknown(call.text)
    kind = call.kind
    place = _place(call, call.parts[at], spaces[0] if spaces else "")
    values = ", ".join(call.read(at + 1 + one, kind) for one in range(given))
    name = f"tokitai_atomic{_ATOMICS[operation]}"
    value = f"{name}(tokitai::Stated({stated}), {PTX}element<{kind}>({place}), {values})"
    return call.write(0, value) if at and call.parts[0] != "_" else f"{value};"


def copied(call: Call) -> str:
    """cp.async of global to shared memory, and its waits. Raises Unknown for bulk copies."""
    words = [one for one in call.words if not re.match(r"L2::", one)]
    number = call.read(0, "unsigned") if words == ["async", "wait_group"] else ""
    known = {"commit_group": "__pipeline_commit();", "wait_group": f"__pipeline_wait_prior({number});",
             "wait_all": "__pipeline_commit(); __pipeline_wait_prior(0);"}  # fmt: skip
    if words[:1] == ["async"] and len(words) == 2 and words[1] in known:
        return known[words[1]]
    hinted = [one.partition("::")[0] for one in words[2:]]
    parts = call.parts[:-1] if "L2::cache_hint" in call.words else call.parts
    if (
        words[:1] != ["async"]
        or words[1:2] not in (["ca"], ["cg"])
        or hinted != ["shared", "global"]
    ):
        raise Unknown(call.text)
    if len(parts) not in {3, 4} or words[2] not in {"shared", "shared::cta"}:
        raise Unknown(call.text)
    size = call.read(2, "unsigned")
    count = size if len(parts) == 3 else call.read(3, "unsigned")
    if len(parts) == 4 and call.names.get(parts[3], ("", ""))[1] == "bool":
        count = f"{call.read(3, 'bool')} ? 0u : {size}"  # what is ignored is 0
    to, source = _place(call, parts[0], "shared"), _place(call, parts[1], "")
    return f"{PTX}copy_later({to}, {source}, {size}, {count});"
