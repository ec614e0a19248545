"""An executor over the workers of a Dask cluster.

Which worker gets which task is decided here, not by Dask: a worker stays with the kernels that it has,
and has one bundle of tasks at hand while it answers another, so that a batch that stops has little
under way.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import secrets
import time
from collections.abc import Mapping
from typing import Any, Self

import dask
import msgspec

from tokitai_cli.batch.cluster.client import Answer, SchedulerClient, Sent, quiet, within
from tokitai_cli.batch.cluster.jobs import JobCluster, Profile
from tokitai_cli.batch.cluster.placement import AHEAD, Bundle, Bundles, Loads, Offer
from tokitai_cli.batch.cluster.security import Address
from tokitai_cli.batch.cluster.spec_archive import Packed
from tokitai_cli.batch.select.collected import Collected
from tokitai_cli.batch.work.queue import ArtifactKey, TaskQueue, lot_of
from tokitai_cli.batch.work.serve import lost
from tokitai_cli.core.errors import ExecutorError
from tokitai_cli.core.model.batch_record import Reply, Setup, Task
from tokitai_cli.core.model.device import TRAITS
from tokitai_cli.core.model.events import Listener, Note
from tokitai_cli.core.version import __version__

_NOTE_SECONDS = 5.0
_CLOSE_SECONDS = 15.0
_RESUME = "start the batch again with --resume, which repeats nothing that is on disk"


class DaskExecutor:
    """Executor over the workers of a scheduler, or of jobs that it asks a batch system for.

    archives: of the specs, by the digest of the spec. wait: seconds without any worker that can run what
    waits, after which the batch ends; None: 60, and no limit for jobs, which may queue for long.
    """

    def __init__(
        self,
        collected: Collected,
        archives: Mapping[str, Packed],
        target: Address | Profile,
        *,
        listener: Listener,
        wait: float | None = None,
    ) -> None:
        self._setup = collected.setup
        self._archives = archives
        self._data = {packed.digest: packed.data for packed in archives.values()}
        self._lots = list(dict.fromkeys(lot_of(case.task()) for case in collected.cases))
        self._devices = list(dict.fromkeys(lot[0] for lot in self._lots))
        self._target = target
        self._listener = listener
        self._wait = wait if wait is not None else 60.0 if isinstance(target, Address) else math.inf
        self._most_losses = int(dask.config.get("distributed.scheduler.allowed-failures"))
        self._token = secrets.token_hex(8)
        self._stack = contextlib.ExitStack()
        self._client: SchedulerClient | None = None
        self._jobs: JobCluster | None = None
        self._queue: TaskQueue | None = None
        self._loads = Loads()
        self._bundles = Bundles()
        self._flights: dict[str, Bundle] = {}
        self._near: dict[str, ArtifactKey] = {}
        self._threads: dict[str, int] = {}
        self._starved = math.inf
        self._noted: set[str] = set()
        self._decoder = msgspec.msgpack.Decoder(list[Reply])
        self._sent = 0

    @property
    def workers(self) -> int:
        """Threads of the workers that are there, each of which answers one task at a time."""
        return sum(offer.threads for offer in self._offers.values())

    @property
    def running(self) -> int:
        """Tasks that were handed out and are not answered."""
        return sum(len(bundle.tasks) for bundle in self._flights.values())

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            stack.enter_context(quiet())
            data = msgspec.msgpack.encode(_sent_setup(self._setup, self._archives))
            where: Any
            if isinstance(self._target, Address):
                where = self._target.url
            else:
                self._jobs = jobs = JobCluster(self._target)
                stack.callback(within, _CLOSE_SECONDS, lambda: jobs.close(_CLOSE_SECONDS))
                where = jobs.dask
            digest = hashlib.sha256(data).hexdigest()
            self._client = SchedulerClient(
                where, self._target.security, data, digest, self._setup.tool
            )
            stack.callback(self._client.close)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        """End the connection within seconds; a case that a worker is at ends by its own time limit."""
        self._flights.clear()
        self._stack.close()

    def feed(self, queue: TaskQueue) -> None:
        """Give each worker what it has room for."""
        self._queue = queue
        offers = self._offers
        batch: list[Sent] = []
        for depth in range(1, AHEAD + 1):
            # Near the end a task that waits behind another may be what keeps a free worker idle.
            if depth > 1 and len(queue) <= self.workers:
                break
            free = [
                address for address in offers if self._loads.room(address, offers[address], depth)
            ]
            while free and queue:
                free = [
                    address
                    for address in free
                    if self._give(queue, address, offers[address], depth, batch)
                    and self._loads.room(address, offers[address], depth)
                ]
        if batch:
            self._connected.send(batch, self._data)
        hungry = bool(queue) and not self._flights
        self._starved = min(self._starved, time.monotonic()) if hungry else math.inf

    def collect(self, timeout: float) -> list[Reply]:
        """Replies that came, after at most `timeout` seconds.

        Raises ExecutorError where the scheduler is lost, where no worker can run what waits, and where
        a worker refuses because its tool is not this one.
        """
        if self._queue is None:
            self._connected.answers(timeout)
            return []
        replies = self._tend()
        if not replies:
            answers = self._connected.answers(timeout)
            replies = [reply for answer in answers for reply in self._replies(answer)]
        if not replies:
            self._check()
        return replies

    @property
    def _connected(self) -> SchedulerClient:
        assert self._client is not None
        return self._client

    @property
    def _offers(self) -> Mapping[str, Offer]:
        return self._client.offers if self._client is not None else {}

    def _give(
        self, queue: TaskQueue, address: str, offer: Offer, depth: int, batch: list[Sent]
    ) -> bool:
        """Take a bundle for a worker, if there is one that it can run."""
        fit = {one for one in self._devices if self._loads.fits(address, offer, one, depth)}
        gpu = any(TRAITS[one].exclusive for one in fit)
        own = (lot for lot in self._lots if lot[0] in fit)
        for near in (self._near.get(address), *own) if fit else ():
            task = queue.take(near, gpu=gpu)
            if task is None:
                return False
            if task.device in fit:
                tasks = self._bundles.take(queue, task, self.workers, gpu=gpu)
                batch.append(self._launch(tasks, address))
                return True
            queue.put(task)
        return False

    def _launch(self, tasks: tuple[Task, ...], address: str) -> Sent:
        self._sent += 1
        key = f"tokitai-cases-{self._token}-{self._sent}"
        self._flights[key] = Bundle(key, address, tasks)
        device, spec, _ = self._near[address] = lot_of(tasks[0])
        self._loads.add(address, key, device)
        self._threads[address] = self._offers[address].threads
        data = msgspec.msgpack.encode(tasks)
        return Sent(key, self._archives[spec].digest, data, device, address)

    def _land(self, key: str) -> Bundle:
        bundle = self._flights.pop(key)
        self._loads.remove(bundle.address, key)
        return bundle

    def _replies(self, answer: Answer) -> list[Reply]:
        """The replies in an answer; none where it is to a bundle that was taken back."""
        if answer.key not in self._flights:
            return []
        bundle = self._land(answer.key)
        if answer.alien:
            raise ExecutorError(
                f"scheduler or worker {bundle.address} cannot load tokitai: {answer.fault}",
                hint=f"install tokitai=={__version__} on the scheduler and on every worker",
            )
        if answer.fault:
            return self._failed(bundle, f"the worker at {bundle.address} failed: {answer.fault}")
        replies = self._decoder.decode(answer.data)
        if replies[0].refused:
            raise ExecutorError(
                f"{replies[0].refused} (this is tokitai {__version__}, {self._setup.tool[:12]})",
                hint=f"install the same tool on every worker; {_RESUME}",
            )
        self._bundles.answered(bundle, replies)
        return replies

    def _tend(self) -> list[Reply]:
        """Tasks of workers that are gone wait again; those that were under way too often are lost."""
        if self._connected.lost:
            raise ExecutorError(self._connected.lost, hint=f"{_RESUME}, with a running scheduler")
        assert self._queue is not None
        replies: list[Reply] = []
        for address, keys in self._loads.left_by(self._offers).items():
            self._connected.take_back(keys)
            # A worker begins its bundles in the order that it was given them, one a thread.
            begun = keys[: self._threads.pop(address, 1)]
            for key in keys:
                bundle = self._land(key)
                if key in begun:
                    replies += self._failed(bundle, f"the worker at {address} was lost")
                else:
                    for task in bundle.tasks:
                        self._queue.put(task)
            self._near.pop(address, None)
        return replies

    def _failed(self, bundle: Bundle, why: str) -> list[Reply]:
        """What was begun and gave no replies: tried again, and answered as lost after some times."""
        assert self._queue is not None

        def gone(task: Task, times: int) -> Reply:
            return lost(task, self._setup, f"{why} while it ran this case (attempts: {times})")

        return self._bundles.failed(bundle, self._queue, self._most_losses, gone)

    def _check(self) -> None:
        """Tell what is missing while nothing can run, and raise ExecutorError after a while."""
        for address, why in self._connected.rejected.items():
            self._note(f"the worker at {address} is excluded: {why}")
        refused = self._jobs.refused if self._jobs is not None else ""
        if refused:
            self._note(f"the batch system did not take a job: {refused}")
        waited = time.monotonic() - self._starved
        if waited < min(_NOTE_SECONDS, self._wait):
            return
        if self._connected.rejected and not self._offers:
            address, why = next(iter(self._connected.rejected.items()))
            raise ExecutorError(
                f"no worker can be used: the one at {address}, {why}",
                hint="install the same tokitai on every worker",
            )
        lacking, hint = self._lacking()
        if refused and not self._offers:
            raise ExecutorError(f"the batch system did not take a job: {refused}")
        if waited > self._wait:
            raise ExecutorError(f"{lacking} after {self._wait:g} s", hint=hint)
        self._note(f"{lacking}; waiting ({hint})")

    def _note(self, text: str) -> None:
        """Tell the user once."""
        if text not in self._noted:
            self._noted.add(text)
            self._listener(Note(text))

    def _lacking(self) -> tuple[str, str]:
        offers = self._offers
        if not offers and self._jobs is not None:
            return "no job runs yet", "the batch system's own commands say where they are"
        if not offers:
            return "the scheduler has no workers", "start some with `dask worker ADDRESS`"
        missing = sorted(
            one for one in self._devices if not any(offer.slots(one) for offer in offers.values())
        )
        names = ", ".join(missing) or "what the cases need"
        resources = " ".join(f"{name}=1" for name in missing)
        return (
            f"no worker offers {names}",
            f"start workers that have it with --resources '{resources}'",
        )


def _sent_setup(setup: Setup, archives: Mapping[str, Packed]) -> Setup:
    """The setup with each spec's path in its archive, DIGEST/PATH, and no text: the archive has it."""
    places = [
        msgspec.structs.replace(
            place, path=f"{archives[place.digest].digest}/{archives[place.digest].spec}", data=b""
        )
        for place in setup.specs
    ]
    return msgspec.structs.replace(setup, specs=places)
