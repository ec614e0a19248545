"""From folders and filters to the cases of a batch, before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from tokitai_cli import devices, spec
from tokitai_cli.batch.select.batch_options import BatchOptions
from tokitai_cli.batch.select.collected import BatchCase, BatchSpec, Collected, numbered, shard
from tokitai_cli.batch.select.fingerprint import fingerprint, tool_digest
from tokitai_cli.batch.select.spec_files import Found, find, gathered, names, shown
from tokitai_cli.core.case_filter import Matcher, matcher
from tokitai_cli.core.errors import Location, OracleError, SpecError, UsageError, near
from tokitai_cli.core.model.batch_record import Setup, SpecEntry, SpecPlace
from tokitai_cli.core.model.case import Case, LoadedSpec
from tokitai_cli.core.model.device import TRAITS
from tokitai_cli.core.model.draws import functions_of
from tokitai_cli.core.model.wording import shape_text
from tokitai_cli.run.commands import called
from tokitai_cli.run.evidence_builder import Chosen, choose
from tokitai_cli.spec import plan
from tokitai_cli.spec.plan import MAX_CASES

# Suite of a spec where none is asked for.
QUICK = "quick"
# Folder in --out for the arrays of cases.
ARRAYS = "arrays"

Pair = tuple[str, str]


def collect(options: BatchOptions) -> Collected:
    """Every case that `options` select: spec by spec, in the order of its plan, device by device.

    Without a suite a spec's `quick` is taken, and where it has none its default shape. A name that
    no spec knows and a spec without a suite that was asked for are told in `skipped`. An entry's
    `cases` and the specs are those of the whole batch, also in a shard. What is wrong with a spec stands
    in `faults`, and the others run. Raises UsageError for folders that are not there, and one SpecError
    for the faults of all specs where no spec is left.
    """
    found = find(options.folders, options.out)
    collector = _Collector(options, _devices(options), matcher(options.keyword), found)
    for name, loaded in zip(names(found.specs), found.specs, strict=True):
        if not options.ops or loaded.spec.op in options.ops:
            collector.add(name, loaded)
    if collector.faults and not collector.specs:
        raise gathered(collector.faults)
    cases = collector.cases
    if options.keyword and not cases:
        collector.skipped.append(f"-k {options.keyword}: matches none of {collector.seen} cases")
    return Collected(
        specs=tuple(collector.specs),
        cases=numbered(cases) if options.shard is None else shard(cases, *options.shard),
        devices=tuple(collector.devices),
        left_out=collector.left_out,
        skipped=tuple(collector.skipped),
        faults=tuple(collector.faults),
        setup=Setup(
            settings=options.settings,
            specs=[
                SpecPlace(
                    digest=one.entry.digest,
                    path=str(one.loaded.path),
                    called=one.entry.called,
                    data=spec.file_bytes(one.loaded),
                    sources=one.entry.sources,
                    oracles=one.entry.oracles,
                )
                for one in collector.specs
            ],
            tool=tool_digest(),
            arrays=str((options.out / ARRAYS).absolute())
            if options.save_arrays or options.save_all_arrays
            else "",
            all_arrays=options.save_all_arrays,
        ),
    )


class _Collector:
    """Adds spec after spec; what is wrong with one is kept until all were looked at."""

    def __init__(
        self, options: BatchOptions, chosen: Sequence[str], wanted: Matcher, found: Found
    ) -> None:
        self._options = options
        self._wanted = wanted
        self._tool = tool_digest()
        self.devices = chosen
        self._beside = _beside(chosen)
        self.faults = list(found.faults)
        self.skipped = [*found.skipped, *_unknown_names(found.specs, options)]
        self.specs: list[BatchSpec] = []
        self.cases: list[BatchCase] = []
        self.left_out = 0
        self.seen = 0

    def add(self, name: str, loaded: LoadedSpec) -> None:
        """Add the cases of a spec; one of which nothing is selected is no part of the batch."""
        try:
            picked = self._pick(loaded)
            self.seen += len(picked) * len(self.devices)
            kept = [
                (id, case, device)
                for case in picked
                for device in self.devices
                if self._wanted(id := f"{name}{case.id.removeprefix(loaded.spec.op)}@{device}")
            ]
            made = _made(case for _, case, _ in kept)
        except SpecError as error:
            self.faults.append(error)
            return
        if not kept:
            return
        weights: dict[str, float] = {}
        for id, case, device in kept:
            group = f"{name}/{case.variant_name}/{shape_text(dict(case.shape))}@{device}"
            if group not in weights:
                weights[group] = float(plan.memory_bytes(case, self._options.settings.repeat))
            self.cases.append(
                BatchCase(
                    id=id,
                    number=len(self.cases),
                    name=name,
                    case=case,
                    device=device,
                    fingerprint=self._fingerprint(case, device, made),
                    group=group,
                    weight=weights[group],
                    beside=self._beside.get(device, ()),
                )
            )
        self.specs.append(_batch_spec(name, loaded, made, len(kept)))

    def _fingerprint(self, case: Case, device: str, made: Chosen) -> str:
        names = (case.variant.oracle, *functions_of(case.loaded.spec, case.variant))
        oracle = " ".join(made.oracles.get(name, "") for name in names)
        settings, beside = self._options.settings, self._beside.get(device, ())
        found = (device, *beside)
        return fingerprint(case, found, settings, case.loaded.digest, self._tool, oracle)

    def _pick(self, loaded: LoadedSpec) -> list[Case]:
        """Cases of what was asked for and the spec knows, each once. Raises SpecError."""
        cases: dict[str, Case] = {}
        left_out: set[Pair] = set()
        for selection in self._selections(loaded):
            _check_size(loaded, selection)
            try:
                planned = plan.plan(loaded, selection)
            except UsageError as error:  # nothing of it is a case
                left_out |= _combinations(loaded, selection)
                self.skipped.append(f"{shown(loaded.path)}: {error.message}")
                continue
            for case in planned.cases:
                cases.setdefault(case.id, case)
            left_out |= {(one.variant, shape_text(one.shape)) for one in planned.left_out}
        self.left_out += len(left_out)
        return list(cases.values())

    def _selections(self, loaded: LoadedSpec) -> list[plan.Selection]:
        """One for each suite; of the default shape one for each variant that was asked for.

        There a variant that cannot take the shape would be an error of its own, for all of them.
        """
        options, spec = self._options, loaded.spec
        variants = tuple(name for name in options.variants if name in spec.variants)
        profiles = tuple(name for name in options.profiles if name in spec.profiles)
        if (options.variants and not variants) or (options.profiles and not profiles):
            return []
        suites = [name for name in options.suites if name in spec.suites]
        lacking = [name for name in options.suites if name not in spec.suites]
        if lacking:
            self.skipped.append(f"{shown(loaded.path)}: has no suite {', '.join(lacking)}")
        if not options.suites and QUICK in spec.suites:
            suites = [QUICK]
        whole = plan.Selection(variants=variants, profiles=profiles, seeds=options.seeds)
        if suites or lacking:
            return [msgspec.structs.replace(whole, suite=suite) for suite in suites]
        return [msgspec.structs.replace(whole, variants=(name,)) for name in variants] or [whole]


def _devices(options: BatchOptions) -> tuple[str, ...]:
    """Names of devices, for `all` of those that are there. A named one that is missing stays."""
    pairs = devices.choose(options.device, options.settings)
    if options.device == "all":
        pairs = [pair for pair in pairs if pair[1].available] or pairs
    return tuple(device.name for device, _ in pairs)


def _beside(names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Devices that each of several is compared with: those of which a machine has few come last, since
    their workers have the others too.
    """
    ordered = sorted(names, key=lambda name: TRAITS[name].exclusive)
    return {name: tuple(ordered[:at]) for at, name in enumerate(ordered)}


def _check_size(loaded: LoadedSpec, selection: plan.Selection) -> None:
    """Raise UsageError for more than a plan takes, apart from what a variant cannot take."""
    spec = loaded.spec
    shapes = len(spec.suites[selection.suite]) if selection.suite else 1
    variants = len(selection.variants or spec.variants)
    profiles = len(selection.profiles or spec.profiles)
    count = shapes * variants * profiles * len(selection.seeds)
    if count > MAX_CASES:
        message = f"{shown(loaded.path)}: {count} combinations, a spec has at most {MAX_CASES}"
        raise UsageError(message, hint="use fewer seeds, or narrow with --variant and --profile")


def _combinations(loaded: LoadedSpec, selection: plan.Selection) -> set[Pair]:
    """Variants and shapes that the selection brings up."""
    spec = loaded.spec
    defaults = {name: param.default for name, param in spec.params.items()}
    variants = selection.variants or tuple(spec.variants)
    if not selection.suite:
        return {(name, shape_text(defaults)) for name in variants}
    return {
        (name, shape_text(defaults | one.shape))
        for one in spec.suites[selection.suite]
        for name in variants
        if not one.variants or name in one.variants
    }


def _made(cases: Iterable[Case]) -> Chosen:
    """Sources and oracles of the cases' variants. Raises SpecError.

    An oracle that cannot be read is left out: its cases say so when they run.
    """
    made = Chosen()
    for case in {case.variant_name: case for case in cases}.values():
        try:
            chosen = choose([case])
        except OracleError:
            continue
        except OSError as error:
            key = f"variants.{case.variant_name}.source"
            where = Location(case.loaded.path, key=key)
            reason = error.strerror or str(error)
            raise SpecError(f"the source cannot be read: {reason}", where=where) from None
        made.sources.update(chosen.sources)
        made.oracles.update(chosen.oracles)
    return made


def _batch_spec(name: str, loaded: LoadedSpec, made: Chosen, cases: int) -> BatchSpec:
    entry = SpecEntry(
        name=name,
        op=loaded.spec.op,
        digest=loaded.digest,
        path=shown(loaded.path),
        called=called(loaded),
        sources={digest: source.path for digest, source in made.sources.items()},
        oracles=made.oracles,
        cases=cases,
    )
    return BatchSpec(entry, loaded, made.sources)


def _unknown_names(specs: Sequence[LoadedSpec], options: BatchOptions) -> Iterator[str]:
    """Names that none of the specs has, in words; variants and the like among the ops asked for."""
    asked = [one.spec for one in specs if not options.ops or one.spec.op in options.ops]
    known: dict[str, tuple[Sequence[str], set[str]]] = {
        "op": (options.ops, {one.spec.op for one in specs}),
        "suite": (options.suites, {name for spec in asked for name in spec.suites}),
        "variant": (options.variants, {name for spec in asked for name in spec.variants}),
        "profile": (options.profiles, {name for spec in asked for name in spec.profiles}),
    }
    for what, (given, names_there) in known.items():
        for name in given:
            if name not in names_there and (asked or what == "op"):
                hint = near(name, names_there)
                yield f"--{what} {name}: no spec has it" + (f"; {hint}" if hint else "")
