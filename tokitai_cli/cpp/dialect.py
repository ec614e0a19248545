"""Spellings of C++ and CUDA that the grammar has no rule for, written so that it reads them.

Each is blanked in a copy of the same length, so that offsets in the tree are those of the text.
"""

from __future__ import annotations

import re

_PARENTHESES = rb"\((?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*\)"
_UNREAD = re.compile(
    # Attributes with arguments: __align__(16), alignas(8), __attribute__((packed)).
    rb"\b(?:__align__|__builtin_align__|alignas|__attribute__|__declspec|__cluster_dims__)\s*"
    + _PARENTHESES
    # typename T::type(x) as an expression: the word is of no use to a reader.
    + rb"|\btypename(?=\s+(?:::)?[A-Za-z_]\w*\s*(?:<[^;{}<>]*>)?\s*::)"
    # x.template f<3>(), x->template f<3>(), T::template f<3>().
    + rb"|(?<=\.)\s*\btemplate\b(?!\s*<)|(?<=->)\s*\btemplate\b(?!\s*<)|(?<=::)\s*\btemplate\b(?!\s*<)"
    # case 1 ... 4: of GNU's C.
    + rb"|(?<=case)(?:\s+\w+)\s*\.\.\.(?=\s*\w+\s*:)"
    # Words that say nothing of what is computed.
    + rb"|\b(?:__grid_constant__|__extension__|__managed__)\b"
)
# A macro of an absent header in an attribute's place: `__global__ void C10_LAUNCH_BOUNDS_1(n) k()`.
_ATTRIBUTE = re.compile(
    rb"(?P<front>\b__global__(?:\s+(?:static|inline|void))*)(?P<macro>\s+[A-Z][A-Z0-9_]+\s*"
    + _PARENTHESES
    + rb")(?=\s+[A-Za-z_])"
)
_QUALIFIER = re.compile(
    r"\b(?:(?:__attribute__|__launch_bounds__|__align__|alignas|__declspec|__cluster_dims__|__maxnreg__"
    r"|__block_size__|__builtin_align__)\s*"
    + _PARENTHESES.decode()
    + r"|__(?:global|device|host|forceinline|noinline|inline|restrict|shared|constant|managed|extension"
    r"|grid_constant|volatile)__\b|(?:__inline|__restrict|restrict)\b)"
)
_LETTERS = re.compile(rb"[^\n]")


def readable(text: bytes) -> bytes:
    """The text with what the grammar does not know blanked."""
    text = _UNREAD.sub(lambda match: _LETTERS.sub(b" ", match[0]), text)
    return _ATTRIBUTE.sub(lambda match: match["front"] + _LETTERS.sub(b" ", match["macro"]), text)


def unqualified(text: str) -> str:
    """The text with qualifiers of CUDA and HIP, and attributes with their arguments, blanked."""
    return _QUALIFIER.sub(lambda match: " " * len(match[0]), text)
