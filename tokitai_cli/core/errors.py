"""Every error that a user can meet, with its exit code and what to do about it."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from pathlib import Path

import msgspec


class Location(msgspec.Struct, frozen=True):
    """Place in a file. `line` and `column` count from 1, 0 means unknown; `key` is a dotted path."""

    file: Path | None = None
    line: int = 0
    column: int = 0
    key: str = ""

    def __str__(self) -> str:
        text = str(self.file) if self.file is not None else ""
        if self.line:
            text += f":{self.line}:{self.column}" if self.column else f":{self.line}"
        if self.key:
            text += f"{': ' if text else ''}{self.key}"
        return text


class TokitaiError(Exception):
    """Base of every expected failure: what is wrong, where, and the mend."""

    exit_code = 70

    def __init__(self, message: str, *, where: Location | None = None, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where is not None and str(self.where) else ""
        return f"{place}{self.message}" + (f" ({self.hint})" if self.hint else "")


class UsageError(TokitaiError):
    """An option or argument that cannot be used as given."""

    exit_code = 2


class SpecError(TokitaiError):
    """A spec file that cannot be read as a person could have meant it."""

    exit_code = 2


class EvidenceError(TokitaiError):
    """An evidence file that cannot be read: not ours, damaged, or of another schema."""

    exit_code = 2


class DamagedError(EvidenceError):
    """Evidence that is not what was written."""


class InadmissibleError(TokitaiError):
    """The device that was asked for is not there."""

    exit_code = 3


class UnfitError(EvidenceError):
    """Evidence that can be read and contradicts itself: nothing is made of it."""

    exit_code = 1


class BuildError(TokitaiError):
    """No compiler, or the compiler failed. `log` is the full output, `first_errors` its first lines."""

    exit_code = 4

    def __init__(
        self,
        message: str,
        *,
        where: Location | None = None,
        hint: str = "",
        log: str = "",
        log_path: Path | None = None,
        first_errors: tuple[str, ...] = (),
        command: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message, where=where, hint=hint)
        self.log = log
        self.log_path = log_path
        self.first_errors = first_errors
        self.command = command


class CodeError(TokitaiError):
    """A file of machine code that cannot be read: none, damaged, or of another target."""

    exit_code = 2


class UntranslatedError(BuildError):
    """Machine code that holds an instruction, or asks for a mode, that cannot be executed here."""

    exit_code = 8


class OracleError(TokitaiError):
    """An oracle raised, hung, or returned something that is no reference."""

    exit_code = 6


class ChildError(TokitaiError):
    """The process that serves kernels failed while it had a request."""


DYNAMIC_SHARED = "dynamic shared memory"


class ChildCrashedError(ChildError):
    """The child died by itself or broke the protocol.

    array: past whose end a kernel went, DYNAMIC_SHARED or a buffer of the case; empty where it is not
    known. past: bytes beyond that end.
    """

    exit_code = 5

    def __init__(self, message: str, *, hint: str = "", array: str = "", past: int = 0) -> None:
        super().__init__(message, hint=hint)
        self.array, self.past = array, past


class ChildTimeoutError(ChildError):
    """The child outlived its limit and was ended."""

    exit_code = 7


class NotRunError(TokitaiError):
    """A case that this machine or device cannot run at all."""

    exit_code = 8


class StorageError(TokitaiError):
    """A folder that results cannot be kept in: not writable, full, or in use."""

    exit_code = 2


class ExecutorError(TokitaiError):
    """No worker can run anything: none could be started or reached, or all are of another version."""

    exit_code = 2


# What a system says where it has no more of something, or where all of a file system is read-only.
SCARCE = {
    *(errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.ENOSPC, errno.EDQUOT),
    *(errno.EFBIG, errno.EIO, errno.EROFS, errno.ESTALE, errno.ENAMETOOLONG),
}


def lack_of(error: BaseException | None) -> str:
    """What of the machine is missing, by `error` or what led to it; empty for a fault of the tool.

    A library that cannot be loaded is one: with too few files or too little memory none can.
    """
    found = ""
    while error is not None:
        if isinstance(error, MemoryError):
            found = "there is not enough memory"
        elif isinstance(error, ImportError):
            found = f"a part of the tool cannot be loaded: {' '.join(error.msg.split())[:200]}"
        elif isinstance(error, OSError) and error.errno in {*SCARCE, errno.EACCES, errno.EPERM}:
            place = f"{error.filename}: " if error.filename else ""
            found = f"{place}{error.strerror or error}"
        error = error.__cause__ or error.__context__
    return found


# What people call things that have another name here, and that no likeness of letters finds.
_MEANT = {
    other: names
    for others, names in (
        (("gaussian", "gauss", "randn"), ("normal",)),
        (("rand", "random"), ("uniform", "normal")),
        (("fp16", "half", "f16", "__half"), ("float16",)),
        (("fp8", "f8", "__nv_fp8_e4m3", "__hip_fp8_e4m3"), ("float8_e4m3fn", "float8_e4m3fnuz")),
        (("bf16", "hip_bfloat16", "__nv_bfloat16"), ("bfloat16",)),
        (("fp32", "single", "float", "f32"), ("float32",)),
        (("fp64", "double", "f64"), ("float64",)),
        (("gpu",), ("cuda", "rocm")),
        (("amd", "hip", "amdgpu"), ("rocm",)),
        (("nvidia", "nv"), ("cuda",)),
        (("host",), ("cpu",)),
    )
    for other in others
}


def near(word: str, known: Iterable[str]) -> str:
    """Text that suggests the nearest known names, for the `mend` of an error."""
    import difflib  # for errors alone

    names = sorted(known)
    meant = [name for name in names if name in _MEANT.get(word.lower(), ())]
    close = meant or difflib.get_close_matches(word, names, n=3, cutoff=0.5)
    if close:
        return "did you mean " + " or ".join(close) + "?"
    return "known: " + ", ".join(names) if names else ""
