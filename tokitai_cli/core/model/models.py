"""Models of what a spec names, made once for all that ask."""

from __future__ import annotations

import threading
from typing import Any, TypeVar, cast

_T = TypeVar("_T")


class Models:
    """An object of each kind, made when it is first asked for; threads may share it.

    Two are equal, whatever they hold: it follows from the files.
    """

    def __init__(self) -> None:
        self._made: dict[type[Any], Any] = {}
        self._lock = threading.Lock()

    def of(self, kind: type[_T]) -> _T:
        """The one object of that kind."""
        with self._lock:
            if kind not in self._made:
                self._made[kind] = kind()
            return cast("_T", self._made[kind])

    def forget(self) -> None:
        """Let go of all objects, where much is held for long."""
        with self._lock:
            self._made.clear()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Models)

    def __hash__(self) -> int:
        return hash(Models)
