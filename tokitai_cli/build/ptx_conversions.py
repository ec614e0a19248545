"""PTX's cvt as C++."""

from __future__ import annotations

from tokitai_cli.build.ptx_operands import PTX, Call, Unknown, flushed

_VALUES = {"f16": "half_value", "bf16": "bfloat16_value"}
_BITS = {"f16": "half_bits", "bf16": "bfloat16_bits"}
_ROUNDED = {"rni": "rint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}
_TIES = {"rna": "true", "rn": "false"}  # of tf32: away from 0, or to even
_REAL = {"float", "double"}


def converted(call: Call) -> str:
    """C++ of one cvt. Raises Unknown."""
    if len(call.words) < 2:
        raise Unknown(call.text)
    to, of, words = call.words[-2], call.words[-1], set(call.words[:-2])
    if to in {"f16x2", "bf16x2"} and of == "f32" and words == {"rn"}:
        bits = _BITS[to.removesuffix("x2")]
        high, low = (f"unsigned(tokitai::{bits}({call.read(at, 'float')}))" for at in (1, 2))
        return call.write(0, f"{high} << 16 | {low}")
    if to in _BITS:
        return _narrowed(call, to, of, words)
    if (to, of) == ("tf32", "f32") and len(words) == 1 and words <= _TIES.keys():
        return call.write(0, f"{PTX}tf32_bits<{_TIES[min(words)]}>({call.read(1, 'float')})")
    into = call.type(to)
    if of in _VALUES:
        value = f"tokitai::{_VALUES[of]}({call.read(1, 'unsigned short')})"
        return _widened(call, into, "float", value, words, exact=True)
    source = call.type(of)
    exact = (source, into) == ("float", "double")
    return _widened(call, into, source, call.read(1, source), words, exact=exact)


def _narrowed(call: Call, to: str, of: str, words: set[str]) -> str:
    """To a number of 16 bits, of one that a double holds exactly."""
    kind = call.type(of)
    wide = kind in {"long long", "unsigned long long"} or (to == "bf16" and kind != "float")
    if words != {"rn"} or wide:
        raise Unknown(call.text)
    value = call.read(1, kind)
    told = f"tokitai::{_BITS[to]}({value if kind == 'float' else f'double({value})'})"
    return call.write(0, f"(unsigned short){told}")


def _widened(
    call: Call, into: str, source: str, value: str, words: set[str], *, exact: bool
) -> str:
    """exact: whether a float's own kind holds all of the other's numbers, and no rounding is named."""
    if source in _REAL and into not in _REAL:
        ways = words & _ROUNDED.keys()
        if len(ways) != 1 or words - ways - {"ftz", "sat"}:
            raise Unknown(call.text)
        rounded = f"{_ROUNDED[min(ways)]}({flushed(value, words)})"
        return call.write(0, f"tokitai::to_integer<{into}>({rounded})")
    if into in _REAL:
        if words - {"rn", "ftz"} or not (words or exact):
            raise Unknown(call.text)
        read = flushed(value, words if source in _REAL else set())
        return call.write(0, flushed(f"{into}({read})", words))
    if words - {"sat"}:
        raise Unknown(call.text)
    return call.write(0, f"{PTX}saturated_to<{into}>({value})" if words else f"({into})({value})")
