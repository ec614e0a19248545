"""Bounded capture of what a child prints: the first and the last part, and a count of it all."""

from __future__ import annotations

import collections

import msgspec


class Captured(msgspec.Struct, frozen=True):
    """Text that was kept, the number of bytes that came, and whether some were left out."""

    text: str
    total_bytes: int
    truncated: bool


class Capture:
    """Keeps the first and the last `limit` / 2 bytes of a stream."""

    def __init__(self, limit: int) -> None:
        self._half = max(1, limit // 2)
        self.clear()

    def clear(self) -> None:
        """Forget everything, the count too."""
        self._head = bytearray()
        self._tail: collections.deque[bytes] = collections.deque()
        self._tail_bytes = 0
        self.total_bytes = 0

    def add(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        self.total_bytes += len(data)
        room = self._half - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if data:
            self._tail.append(data)
            self._tail_bytes += len(data)
            while self._tail_bytes - len(self._tail[0]) >= self._half:
                self._tail_bytes -= len(self._tail.popleft())

    def result(self) -> Captured:
        """Return what was kept, decoded as UTF-8 with replacement characters."""
        tail = b"".join(self._tail)[-self._half :]
        left_out = self.total_bytes - len(self._head) - len(tail)
        gap = f"\n[... {left_out} bytes left out ...]\n".encode() if left_out else b""
        text = (bytes(self._head) + gap + tail).decode("utf-8", "replace")
        return Captured(text, self.total_bytes, left_out > 0)
