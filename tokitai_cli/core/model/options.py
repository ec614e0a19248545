"""Every option of the verbs that run cases, stated once.

From here come the flags and their help, the check of what is given, the command lines that run
something again, and the names that no parameter of a spec can have.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

import msgspec

from tokitai_cli.core.model.device import AUTO, SANITIZED
from tokitai_cli.core.model.settings import MIN_REPEAT, Settings

# How much of a run is watched beside it.
WATCHES = ("auto", "full", "off")
# Environment variable that says it where no option does.
WATCH_VARIABLE = "TOKITAI_WATCH"
MAX_SEED = 2**63 - 1
# A worker is a process with a child of its own: more of them than this are a slip of the pen.
MAX_JOBS = 1024
_PLAIN = Settings()
_SINGLE_RUN = ("verify", "sanitize")
_CASES = (*_SINGLE_RUN, "batch")
_AGAIN = (*_SINGLE_RUN, "reproduce", "compare")
_SIDES = "compare"
_ANY = (*_CASES, "reproduce", _SIDES)
_PLANNED = (*_CASES, _SIDES)
_REPORTED = (*_ANY, "merge", "report")


class Kind(enum.Enum):
    """What an option takes. NAMES and NUMBERS may be repeated, and each may be a comma list."""

    FLAG = enum.auto()
    TEXT = enum.auto()
    NAMES = enum.auto()
    NUMBER = enum.auto()
    NUMBERS = enum.auto()
    SECONDS = enum.auto()


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """An option of `verbs`; their keyword `name` is the long flag, with dashes."""

    name: str
    kind: Kind
    #: {formats} stands for those of evidence.
    help: str
    metavar: str = "NAME"
    #: None, or an empty tuple, where it is left out; `defaults` by verb where that has another.
    default: Any = None
    defaults: Mapping[str, Any] = {}
    verbs: tuple[str, ...] = _CASES
    short: str = ""
    #: Of each number.
    least: float | None = None
    most: float | None = None
    #: All that can be given.
    choices: tuple[Any, ...] = ()
    #: A command line that runs something again says it also where it is the default.
    stated: bool = False
    #: Only the command line itself knows it.
    front: bool = False
    #: Whether a project's file can say it: not what chooses cases, or is of one call.
    in_file: bool = True

    @property
    def flag(self) -> str:
        """`--long-name`."""
        return flag(self.name)

    def default_of(self, verb: str) -> Any:
        """Default in this verb."""
        return self.defaults.get(verb, self.default)


def flag(name: str) -> str:
    """Flag of an option, or of a parameter of an op."""
    return f"--{name.replace('_', '-')}"


def _flag(name: str, help: str, **more: Any) -> Option:
    return Option(name=name, kind=Kind.FLAG, help=help, default=False, **more)


def _names(name: str, help: str, **more: Any) -> Option:
    return Option(name=name, kind=Kind.NAMES, help=help, **{"default": (), **more})


def _number(name: str, help: str, **more: Any) -> Option:
    return Option(name=name, kind=Kind.NUMBER, help=help, **{"metavar": "N", **more})


def _numbers(name: str, help: str, **more: Any) -> Option:
    return Option(
        name=name, kind=Kind.NUMBERS, help=help, metavar="N[,N...]", default=(0,), least=0, **more
    )


def _text(name: str, help: str, **more: Any) -> Option:
    return Option(name=name, kind=Kind.TEXT, help=help, **more)


# The order is that of the help.
TABLE: tuple[Option, ...] = (
    _flag(
        "all",
        "All built-in ops; the quick suite unless --suite is given.",
        verbs=("verify",),
        front=True,
        in_file=False,
    ),
    _text(
        "device",
        f"auto (first of {', '.join(AUTO)}), all, or one device's name.",
        default="auto",
        defaults={"sanitize": SANITIZED[0], "reproduce": None},
        stated=True,
        verbs=_ANY,
    ),
    _names("variant", "Only this variant; may be repeated.", verbs=_PLANNED, in_file=False),
    _names("profile", "Only this input profile; may be repeated.", verbs=_PLANNED, in_file=False),
    _text("suite", "Shapes of this suite of the spec.", verbs=(*_SINGLE_RUN, _SIDES)),
    _names(
        "suite",
        "Only this suite of each spec; may be repeated. Default: quick.",
        verbs=("batch",),
    ),
    _names("op", "Only this op; may be repeated.", verbs=("batch",), in_file=False),
    _text(
        "keyword",
        'Only cases whose id matches, such as "grad-a and not special".',
        metavar="EXPRESSION",
        short="-k",
        verbs=("batch",),
        in_file=False,
    ),
    _number(
        "jobs",
        "Workers; default: one per core. With --cluster: jobs to submit.",
        short="-j",
        least=1,
        most=MAX_JOBS,
        verbs=("batch",),
    ),
    _numbers(
        "seed",
        "Seed of the inputs; a list runs every seed.",
        most=MAX_SEED,
        stated=True,
        verbs=_PLANNED,
    ),
    _number(
        "repeat",
        "Repetitions of each case.",
        default=_PLAIN.repeat,
        defaults={_SIDES: 30},
        verbs=_PLANNED,
        least=MIN_REPEAT,
        most=1000,
        stated=True,
    ),
    _number(
        "warmup",
        "Runs before the timed repetitions.",
        default=_PLAIN.warmup,
        defaults={_SIDES: 3},
        verbs=_PLANNED,
        least=0,
        most=1000,
    ),
    Option(
        name="timeout",
        kind=Kind.SECONDS,
        help="Time limit for a kernel or an oracle, in seconds.",
        metavar="SECONDS",
        default=_PLAIN.timeout,
        # A watched kernel takes ten to a hundred times longer.
        defaults={"sanitize": 10 * _PLAIN.timeout},
        least=0.1,
        verbs=_ANY,
    ),
    _text("arch", "GPU architecture to build for; on cpu, the one whose limits apply.", verbs=_ANY),
    _number("gpu", "Index of the GPU to use.", default=0, least=0, verbs=_AGAIN),
    _numbers("gpu", "Indices of the GPUs that workers may use.", verbs=("batch",)),
    _number(
        "gpu_children",
        "Workers that may use one GPU at a time.",
        default=1,
        least=1,
        verbs=("batch",),
    ),
    _number(
        "threads",
        "Threads of the tool and of the cpu device; default: one per core.",
        least=1,
        most=MAX_JOBS,
        verbs=_SINGLE_RUN,
    ),
    _number(
        "warp_size",
        "Lanes of a warp on the cpu device; default: 32.",
        metavar="32|64",
        choices=(32, 64),
        verbs=_ANY,
    ),
    _flag(
        "sanitize",
        "Check memory accesses, races and barriers too, like `tokitai sanitize`.",
        verbs=("verify", "batch"),
    ),
    _text(
        "watch",
        f"Check memory accesses and races too: {WATCHES[0]} (a small shape of each variant), full "
        f"(every case), off. Default: {WATCH_VARIABLE}, or {WATCHES[0]}. Not with --all.",
        metavar="auto|full|off",
        choices=WATCHES,
        verbs=("verify",),
    ),
    _flag(
        "strict",
        "Warnings about memory and races refute too.",
        verbs=(*_CASES, "reproduce"),
    ),
    _flag("build_only", "Build the kernels, but do not run them.", verbs=_SINGLE_RUN),
    _text(
        "shard",
        "Run only part I of N; `tokitai merge` joins the parts.",
        metavar="I/N",
        verbs=("batch",),
        in_file=False,
    ),
    _flag(
        "dry_run",
        "List the ids of the cases, but do not run them.",
        verbs=("batch",),
        front=True,
        in_file=False,
    ),
    _flag("resume", "Keep results in --out that are still valid.", verbs=("batch",)),
    _flag("fail_fast", "Stop after the first failure.", verbs=("batch",)),
    _number("max_failures", "Stop after this many failures.", least=1, verbs=("batch",)),
    _text(
        "scheduler",
        "Dask scheduler whose workers run the cases.",
        metavar="ADDRESS",
        verbs=("batch",),
        front=True,
    ),
    _text(
        "cluster",
        "dask-jobqueue configuration for the Slurm, PBS, ... jobs.",
        metavar="FILE",
        verbs=("batch",),
        front=True,
    ),
    *(
        _text(
            f"tls_{name}",
            f"{words}, for a scheduler with TLS.",
            metavar="FILE",
            verbs=("batch",),
            front=True,
        )
        for name, words in (
            ("ca", "Certificate of the authority"),
            ("cert", "Certificate of this client"),
            ("key", "Its private key"),
        )
    ),
    _text("out", "Folder for the evidence files.", metavar="DIR", default="reports", verbs=_AGAIN),
    _text(
        "out",
        "Folder for results, evidence and the index.",
        metavar="DIR",
        default="reports/batch",
        verbs=("batch", "merge"),
    ),
    _text(
        "out",
        "File to write instead of stdout; with several formats, the folder for NAME.SUFFIX.",
        metavar="PATH",
        verbs=("report",),
    ),
    _text("name", "Base name of the files; default: the op's name.", verbs=_AGAIN, in_file=False),
    _names(
        "format",
        "Report formats: {formats}; a list, or repeated.",
        default=("md",),
        verbs=_REPORTED,
    ),
    _text(
        "templates",
        "Folder of templates that replace shipped ones of the same name.",
        metavar="DIR",
        verbs=_REPORTED,
    ),
    _flag("plots", "Add figures to html reports (needs the extra `plots`).", verbs=_REPORTED),
    _number(
        "durations",
        "Show the N slowest cases at the end.",
        verbs=(*_CASES, "merge"),
        least=1,
        front=True,
    ),
    _flag(
        "json", "Print the evidence JSON on stdout.", verbs=_SINGLE_RUN, front=True, in_file=False
    ),
    _flag(
        "json",
        "Print the index as JSON on stdout.",
        verbs=("batch", "merge"),
        front=True,
        in_file=False,
    ),
    _flag("json", "Print JSON on stdout.", verbs=("reproduce", _SIDES), front=True, in_file=False),
    _flag(
        "json",
        "Print the evidence or index as JSON, as --format json does.",
        verbs=("report",),
        in_file=False,
    ),
    _flag(
        "run_authors_code",
        "Run the spec, kernel and oracle in the file, with your permissions.",
        verbs=("reproduce",),
        front=True,
        in_file=False,
    ),
    _flag("save_arrays", "Save inputs, outputs and references of failing cases.", verbs=_ANY),
    _flag("save_all_arrays", "Save those of every case, for `recheck`.", verbs=_ANY),
    _flag("quiet", "No progress lines.", short="-q", front=True, verbs=(*_ANY, "merge")),
)


def options_of(verb: str) -> dict[str, Option]:
    """Options of a verb by name, in the order of its help."""
    return {option.name: option for option in TABLE if verb in option.verbs}


# A parameter of an op is an option of these verbs, beside their own and `OP` and --help.
RESERVED_NAMES = frozenset({"op", "help"}).union(*(options_of(verb) for verb in _SINGLE_RUN))
