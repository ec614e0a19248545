"""Sizes of a draft that no argument of the kernel is, as the host's launch and the text tell them."""

from __future__ import annotations

import re

from tokitai_cli.core import expressions
from tokitai_cli.core.errors import SpecError
from tokitai_cli.cpp.indices.kernel_text import CAST
from tokitai_cli.cpp.source.signatures import Parameter
from tokitai_cli.drafts.launch_writer import DraftContext, LaunchWriter, quoted
from tokitai_cli.drafts.leaves import free

_OF_HOST = 2  # variables of the host's own in an extent of its grid


class HostSizes(LaunchWriter):
    """The part of a draft that says which sizes there are beside the kernel's own."""

    parameters: list[Parameter]
    origin: DraftContext
    passed: dict[str, str]

    def _add_rows(self) -> None:
        """A new size where blocks count what no argument of the kernel says: the host knows it."""
        grid = self.launch.grid if self.launch is not None else ()
        by_axis = dict(zip("xyz", grid, strict=False))
        unknown = [axis for axis, size in self.text.axes.items() if not size]
        if not unknown or not self.sizes:
            return
        if not self.origin.room:
            said = {axis: self._in_grid(by_axis.get(axis, "")) for axis in unknown}
            whole = {
                axis: one for axis, one in said.items() if not re.search("//|div|min|max", one)
            }
            self.text.axes |= whole
            unknown = [axis for axis in unknown if not said[axis]]
        told = by_axis.get(unknown[0], "") if unknown else ""
        if not unknown or (told and self._expression(told)):
            return  # the host's own expression says it
        taken = {one.name for one in self.parameters}
        name = next(one for one in ("rows", "blocks", "count") if one not in taken)
        if re.fullmatch(r"[A-Za-z]\w*", told) and free(told) not in taken:
            name = free(told)
        self.text.add_rows(self._add_size(name))

    def _in_grid(self, text: str) -> str:
        """An extent of the host's grid, its own variables sizes of the spec; empty where it is none."""
        if told := self._expression(text):
            return told
        given, block = (self.launch.args, self.launch.block) if self.launch else ([], [])
        sizes = {one.name for one in self.sizes}
        known = {
            host for host, one in zip(given, self.leaves.args, strict=False) if one.name in sizes
        }
        known |= sizes | {*self.sizes_of_host, *re.findall(r"\w+", " ".join(block))}
        words = set(re.findall(r"(?<![\w.])[A-Za-z_]\w*", text)) - known
        try:
            plain = words <= {*expressions.names_in(text.replace("/", "//"))}
        except SpecError:
            plain = False
        if not plain or not words or len(words) > _OF_HOST or words & {*given}:
            return ""
        self.sizes_of_host |= {one: self._add_size(one) for one in sorted(words, reverse=True)}
        return self._expression(text)

    def _passed(self) -> dict[str, str]:
        """Sizes that the host passes as products of others: the stride of a batch, m * k."""
        found = {}
        given = [CAST.sub("", one) for one in self.launch.args] if self.launch else []
        for host, one in zip(given, self.leaves.args, strict=False):
            told = self._expression(host) if re.search(r"\w\s*\*\s*\w", host) else ""
            others = {size.name for size in self.sizes} - {one.name}
            if told and one.integer and {*expressions.names_in(told)} <= others:
                found[one.name] = told
        return found

    def _named(self, name: str) -> str:
        return quoted(self.passed[name]) if name in self.passed else name

    def _add_size(self, name: str) -> str:
        """A size that no argument of the kernel is, and what the spec calls it."""
        taken = {one.name for one in (*self.parameters, *self.sizes)}
        name = next(
            one for one in (free(name), f"{name}_rows", f"{name}_count") if one not in taken
        )
        self.sizes.insert(0, Parameter(name, "int", "scalar", ("int32",), 0, False, ""))
        self.text.sizes.append(name)
        return name
