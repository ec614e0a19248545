"""Words of reports and messages: one table for the docs and for `tokitai explain`."""

from __future__ import annotations

from collections.abc import Mapping

from tokitai_cli.core.errors import UsageError, near
from tokitai_cli.core.model.audit_answer import Grid
from tokitai_cli.core.model.metrics import METRICS
from tokitai_cli.core.model.verdict import Verdict

MEANINGS: Mapping[Verdict, str] = {
    Verdict.INTERNAL_ERROR: "a fault of the tool itself; the message names the log file",
    Verdict.REFUTED: "a check failed: the kernel is wrong in this case",
    Verdict.UNEXPECTED_PASS: "a case that `known_bugs` lists as failing has passed",
    Verdict.CRASHED: (
        "the kernel's process ended; the signal or the runtime's error is named. On the cpu device "
        "also a write beyond a shared array and a misaligned access"
    ),
    Verdict.TIMED_OUT: (
        "the kernel's process exceeded its time limit: the kernel is slow, or waits for something "
        "that never happens, such as a block that the schedule runs later (cpu, gfx)"
    ),
    Verdict.INTERRUPTED: (
        "the run was stopped (SIGINT exits 130, SIGTERM and SIGHUP 143); the JSON holds the "
        "finished cases"
    ),
    Verdict.BUILD_FAILED: (
        "there is no compiler, or it failed; the first errors are shown, the full log is kept"
    ),
    Verdict.INCONCLUSIVE: (
        "the checks would also have accepted a wrong output, or there is no usable reference"
    ),
    Verdict.INADMISSIBLE: "the requested device is not available; nothing ran",
    Verdict.NOT_RUN: (
        "nothing was selected, the shape does not fit this machine (the size needed is given), the "
        "spec does not fit its oracle, or the gfx device cannot execute an instruction (it is named)"
    ),
    Verdict.EXPECTED_FAILURE: "a case that `known_bugs` lists as failing has failed",
    Verdict.VERIFIED: "every check of every output passed, on more than zero elements",
    Verdict.VACUOUS: (
        "for a case only: nothing failed, but on these inputs the checks reject no wrong output "
        "except NaN, infinities and one displaced element, or they judge less than half of the "
        "elements of an output"
    ),
    Verdict.BUILT: "`--build-only`: the artifacts were built, nothing ran",
}
# Kinds of findings: of the guards, the watch of the cpu device, the gfx device, compute-sanitizer.
FINDINGS: Mapping[str, str] = {
    "out-of-bounds": "an access outside its array, found where it happened",
    "out-of-bounds-read": "a read outside its array, shared array or struct",
    "out-of-bounds-write": "a write outside its array, found in the guards around it",
    "input-changed": "the kernel changed an input, or a field of a struct or list of pointers",
    "invalid-read": "compute-sanitizer: a read outside of allocated memory",
    "invalid-write": "compute-sanitizer: a write outside of allocated memory",
    "invalid-atomic": "compute-sanitizer: an atomic operation outside of allocated memory",
    "race": "two accesses to one place without order, at least one of them a write",
    "mixed-race": "a plain access and an atomic one to one place without order",
    "scoped-race": "accesses whose fences or atomic operations have a scope that is too narrow",
    "same-value-race": (
        "several threads wrote one place without order, always with the same value (a warning)"
    ),
    "missing-acquire": (
        "a relaxed read of a released value without an acquire or a fence after it (a warning)"
    ),
    "constant-write": "the kernel writes to __constant__ memory",
    "stale-flag": "a variable of the program still has the value of an earlier run (a warning)",
    "uninitialised-read": "a read of memory, or a use of a register, that was never written",
    "uninitialised-variable": "a local variable is used before it is set",
    "deadlock": "no thread can continue; the message says which thread waits where for what",
    "barrier": "a barrier that not all threads of the block or warp reach",
    "mask": "a mask of a warp operation that lacks its caller, or names a lane that waits elsewhere",
    "amd-mask": (
        "a mask that sm_70 and later permit and AMD's header refuses (a warning without --arch "
        "gfx...)"
    ),
    "inactive-lane": "a shuffle reads a lane that takes no part in it",
    "resident-blocks": (
        "a block waits for one that starts later: several blocks must be resident (a warning)"
    ),
    "integer-overflow": "a signed integer overflows",
    "integer-division": "an integer is divided by 0, or the quotient overflows",
    "shift": "a shift by a negative amount or by more than the width of the type",
    "index-out-of-bounds": "an index outside a declared array",
    "null-pointer": "a null pointer is used",
    "misaligned": "an access at an address that is not a multiple of its type's alignment",
    "misaligned-access": "compute-sanitizer: an access at a misaligned address",
    "pointer-overflow": "pointer arithmetic overflows",
    "unreachable": "the kernel reaches code that is declared unreachable, or returns no value",
    "stack-overflow": "a thread uses more stack than it has",
    "nondeterministic": "outputs differ in bits between repetitions of a deterministic variant",
    "fault": "the kernel's process received a signal; the message names it",
    "runtime-error": "compute-sanitizer: the runtime reported an error",
    "left-out": "there were more findings than an answer has room for; the message has their count",
}
# What is judged of an output before its numbers.
STRUCTURE: Mapping[str, str] = {
    "never-written": "elements that the kernel did not write in any repetition",
    "nan-unexpected": "NaN where the reference is a number",
    "nan-missing": "a number where the reference is NaN",
    "inf-unexpected": "infinity where the reference is a number",
    "inf-missing": "a number where the reference is infinite or overflows",
    "inf-sign": "infinity of the wrong sign",
    "missing": "an output that was not returned",
    "dtype": "an output of another dtype than the spec's",
    "shape": "an output of another shape than the spec's",
}
# Where the failing elements of an output are.
PATTERNS: Mapping[str, str] = {
    "every-element": "all elements fail: a wrong formula, scale or missing barrier",
    "scattered": "failing elements without a regular place: a race, or a precision that is too low",
    "tail": "the last elements fail: a size that is not a multiple of the block",
    "tile-edges": "the first or last row or column of each tile fails: a loop that ends too early",
    "rows": "whole rows fail: an index or a reduction",
    "columns": "whole columns fail: an index or a reduction",
    "strided": "every n-th element fails: an index",
}
# Wrong outputs that the tool makes, on which the checks are tried.
WRONG_OUTPUTS: Mapping[str, str] = {
    "zeros": "all elements 0",
    "constant-mean": "all elements equal to the mean of the reference",
    "other-constant": "another constant than the one that the spec states",
    "roll": "the reference, displaced by some elements along an axis",
    "last-term-dropped": "sums without their last term",
    "heaviest-term-dropped": "sums without the term of the largest magnitude",
    "sign-flipped": "the reference with the other sign",
    "all-nan": "all elements NaN",
    "one-nan": "one element NaN",
    "all-inf": "all elements infinite",
    "truncated": "the reference, rounded towards zero (shown only: no verdict depends on it)",
    "half-up": "the reference, halves rounded away from zero (shown only)",
    "two-ulp": "all elements two ulp off (shown only)",
    "anchor": "the element with the tightest bound displaced by 16 times that bound",
    "slice-zeroed": "the output of an oracle of your own for inputs of which one slice is 0",
    "one-twice": "an output with a free order: one element also in the place of another",
    "other-segment": "an output with a free order: an element of another segment",
    "ungrouped": "an output with a free order: values separated from what belongs to them",
    "between-choices": "half way between the least and the largest of several correct values",
    "all-kept": "a random mask of all ones",
    "none-kept": "a random mask of all zeros",
    "other-share": "a random mask with another share of ones",
    "periodic": "a random mask that repeats after some elements",
    "rows-alike": "a random mask whose rows are equal",
}
# What became of a wrong output, in one case or in all cases of a shape.
TRIED: Mapping[str, str] = {
    "rejected": "the checks detect the wrong output",
    "accepted": (
        "the checks accept the wrong output; if no case of the same variant, output, shape and device "
        "rejects it, these cases are inconclusive"
    ),
    "not-eligible": "on the inputs of this case the wrong output is no different from the correct one",
    "never-eligible": "no profile of the run distinguishes the wrong output from the correct one",
    "never detectable": "the same as never-eligible, in reports",
    "undetected": "a change of the formula that no profile of the run distinguishes from the formula",
    "not-known": "the oracle is your own and does not say which terms the output adds up",
    "not-applicable": "there is no such wrong output, as in a row of one element",
}
# Columns, lines and other words of a report.
OTHERS: Mapping[str, str] = {
    "watched": (
        "a separate run of a case on the cpu device, which checks memory accesses and races "
        "(`--watch`); its outputs are not compared"
    ),
    "error allowance": "the limit on the error before the last rounding to the output's format",
    "share of allowance": (
        "the smallest factor on the error allowance with which the case still passes: above 1 it "
        "fails"
    ),
}
PROPERTIES: Mapping[str, str] = {
    "row-sum": "the sum of each row has a known value",
    "row-mean": "the mean of each row is the reference's",
    "row-variance": "the variance of each row is the reference's",
    "sum-conserved": "the rows of the output add up to those of the input",
    "shift-invariance": "a constant added to a row of the input changes nothing",
    "permutation-equivariance": "permuted columns of the input give permuted columns of the output",
}
CLAIMS: Mapping[str, str] = {
    "numerical-agreement": "every case is verified, and the checks reject every applicable wrong output",
    "bitwise-reproducible": "repetitions of deterministic variants gave equal bits in every case",
    "memory-safe": "every case ran under a memory sanitizer without a finding",
    "race-free-in-tested-schedules": (
        "every case ran under a race detector of global and shared memory without a finding"
    ),
    "machine-code-executed": "machine code for an AMD GPU was executed on the CPU in every case",
    "amd-device": "every case is verified on an AMD GPU",
    "portable": "verified on two or more pairs of AMD device and compiler",
    "production-speedup": "never supported by a run: it needs a reviewed baseline",
}
CLAIM_STATES: Mapping[bool, str] = {True: "supported", False: "not supported"}
# Exit codes that no verdict has, or that others have too.
EXITS: Mapping[int, str] = {
    0: "all is well",
    1: "inconsistent evidence, an unsupported required claim, files that differ",
    2: "a command line, a spec, evidence or a folder that cannot be used",
    9: "`reproduce`: the same on another device than the recorded one, which it does not confirm",
    129: "stopped by SIGHUP",
    130: "stopped by SIGINT",
    141: "the reader of standard output closed it",
    143: "stopped by SIGTERM",
}


def index() -> list[tuple[str, str, str]]:
    """All words: each with its kind and its meaning."""
    return [
        *(
            (str(one), f"verdict, exit code {one.exit_code}", text)
            for one, text in MEANINGS.items()
        ),
        *((name, "finding", text) for name, text in FINDINGS.items()),
        *((name, "fault of an output", text) for name, text in STRUCTURE.items()),
        *((name, "pattern of failing elements", text) for name, text in PATTERNS.items()),
        *((name, "wrong output tried", text) for name, text in WRONG_OUTPUTS.items()),
        *((name, "outcome of a wrong output", text) for name, text in TRIED.items()),
        *((name, "report", text) for name, text in OTHERS.items()),
        *((name, "property", text) for name, text in PROPERTIES.items()),
        *((name, "claim", text) for name, text in CLAIMS.items()),
        *((name, "metric", one.sentence) for name, one in METRICS.items()),
        *((str(code), "exit code", text) for code, text in EXITS.items()),
    ]


def explained(word: str) -> Grid:
    """What a word of reports and messages, or an exit code, means.

    Raises UsageError with the nearest words.
    """
    rows = [row for row in index() if word == row[0] or row[1] == f"verdict, exit code {word}"]
    if not rows:
        names = [name for name, kind, _ in index() if kind != "exit code"]
        message = f"{word}: not a word of reports, nor an exit code"
        raise UsageError(message, hint=near(word, names))
    return Grid(("word", "kind", "meaning"), rows)
