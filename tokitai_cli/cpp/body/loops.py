"""Loops: one dry pass finds what changes by a constant step, all else that changes is unknown.

A variable that steps is `start + step * trip`; the first one that does, the loop's counter, keeps a name
of its own, and the others are counted by it. Guards do the bounding.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from tree_sitter import Node

from tokitai_cli.cpp.body.operators import as_condition, join
from tokitai_cli.cpp.body.origins import Origins
from tokitai_cli.cpp.body.polynomial import Polynomial, constant, quotient
from tokitai_cli.cpp.body.symbolic_values import (
    Cell,
    Choice,
    Condition,
    Evolving,
    Guard,
    Loop,
    Pointer,
    Record,
    Stepped,
    Value,
)
from tokitai_cli.cpp.body.walk import Walk
from tokitai_cli.cpp.tree import child, declarator_of, named, text_of
from tokitai_cli.cpp.tree import walk as nodes_of

_CHANGES = {"assignment_expression", "update_expression"}


def loop(walk: Walk, node: Node) -> bool:
    """Read a loop of any kind; whether control goes on behind it."""
    body = child(node, "body")
    if node.type == "do_statement" and body is not None and _is_once(node):
        outer, walk.breaks = walk.breaks, []
        goes_on = walk.execute(body)
        ends, walk.breaks = walk.breaks, outer
        for end in ends:
            join(walk, walk.store, end)
        return goes_on or bool(ends)
    _repeated(walk, node)
    return True


def _is_once(node: Node) -> bool:
    """`do { ... } while (0)`, as macros have it."""
    condition = child(node, "condition")
    while condition is not None and condition.type == "parenthesized_expression":
        condition = next(iter(named(condition)), None)
    return text_of(condition) in {"0", "false"}


def _repeated(walk: Walk, node: Node) -> None:
    walk.scopes.append({})
    start = child(node, "initializer")
    if start is not None and start.type.endswith(("declaration", "statement")):
        walk.execute(start)
    elif start is not None:
        walk.evaluate(start)
    if node.type == "for_range_loop":
        _range(walk, node)
    before = dict(walk.store)
    names = {place.number: name for scope in walk.scopes for name, place in scope.items()
             if isinstance(place, Cell)}  # fmt: skip
    marks, after, guards, ends = _dry(walk, node, before, names)
    entry, counter = _entry(walk, node, before, marks, after, names)
    for key, value in marks.items():
        _evolve(walk, value, before.get(key), after.get(key), guards)
    if walk.dry:  # a pass has told what changes, and no other findings are asked for
        walk.store = {**before, **{key: after.get(key) for key in entry}}
    else:
        walk.store = {**before, **entry}
        ends = _found(walk, node, marks, counter)
    for key, value in entry.items():
        left = walk.store.get(key) if node.type == "do_statement" else value
        if isinstance(value, Polynomial):
            ways = Choice(((left, ()),)) if isinstance(left, Polynomial) else None
            walk.store[key] = walk.fresh(names.get(key, "v"), ways)
        else:
            walk.store[key] = value
    for end in ends:
        join(walk, walk.store, end)
    walk.scopes.pop()


def _found(
    walk: Walk, node: Node, marks: dict[int, Value], counter: Stepped | None
) -> list[dict[int, Value]]:
    """The pass whose findings count; what variables hold where the loop is left within it."""
    if counter is not None:
        walk.facts.loops.append(counter)
    outer, walk.breaks = walk.breaks, []
    mark = len(walk.guards)
    if counter is not None and (counter.step.number or 0) < 0:
        walk.guards.append(Guard(counter.counter, "<=", counter.start))
    with _within(walk, node, marks, counter):
        _once(walk, node, counter)
    del walk.guards[mark:]
    ends, walk.breaks = walk.breaks, outer
    return ends


@contextlib.contextmanager
def _within(
    walk: Walk, node: Node, marks: dict[int, Value], counter: Stepped | None
) -> Iterator[None]:
    """Note that the walk is in the loop."""
    condition = child(node, "condition")
    told = text_of(child(condition, "value") or condition).strip("() ")
    changes = frozenset(name for value in marks.values() for name in _names(value))
    endless = told in {"", "true", "1"} and node.type != "for_range_loop"
    walk.inside.append(len(walk.facts.every_loop))
    walk.facts.every_loop.append(Loop(counter, changes, endless))
    yield
    walk.inside.pop()


def _range(walk: Walk, node: Node) -> None:
    """for (auto x : list): the element is unknown, and what is in the list may be written."""
    whole = child(node, "right")
    walk.escape(walk.evaluate(whole), "is gone through")
    walk.declare(text_of(declarator_of(child(node, "declarator")).name), walk.fresh("element"))


def _dry(
    walk: Walk, node: Node, before: dict[int, Value], names: dict[int, str]
) -> tuple[dict[int, Value], dict[int, Value], tuple[Guard, ...], list[dict[int, Value]]]:
    """Marks for the variables that the loop changes, and what a pass leaves them.

    What they hold after it, what held then, and what they hold where the loop is left within it.
    """
    changed = _assigned(walk, node)
    guards: tuple[Guard, ...] = ()
    ends: list[dict[int, Value]] = []
    for _ in range(4):
        marks = {
            key: _unknown(walk, names.get(key, "v"), before.get(key)) for key in sorted(changed)
        }
        walk.store = {**before, **marks}
        walk.dry += 1
        outer, walk.breaks = walk.breaks, []
        try:
            guards = _once(walk, node)
            ends = walk.breaks
            for end in ends:
                join(walk, walk.store, _kept(end, walk.store, changed))
        finally:
            walk.dry -= 1
            walk.breaks = outer
        put = {**before, **marks}
        more = {key for key in before if walk.store.get(key) != put.get(key)} - changed
        if not more:
            break
        changed |= more
    return marks, walk.store, guards, ends


def _evolve(walk: Walk, mark: Value, start: Value, end: Value, guards: tuple[Guard, ...]) -> None:
    """Note what a variable was in front of the loop, and what a pass makes of it."""
    if isinstance(mark, Record):
        for name, value in mark.fields:
            _evolve(walk, value, walk.member(start, name), walk.member(end, name), guards)
        return
    if isinstance(mark, Pointer):
        same = isinstance(start, Pointer) and isinstance(end, Pointer) and start.unit == end.unit
        if same and isinstance(start, Pointer) and isinstance(end, Pointer):
            _evolve(walk, mark.offset, start.offset, end.offset, guards)
        return
    if all(isinstance(one, Polynomial) for one in (mark, start, end)):
        assert isinstance(start, Polynomial)
        assert isinstance(end, Polynomial)
        walk.mean(str(mark), Evolving(start, end, guards))


def _kept(end: dict[int, Value], other: dict[int, Value], changed: set[int]) -> dict[int, Value]:
    """What the loop ends with, but for numbers: of these the last pass says how they step."""
    return {
        key: value for key, value in end.items()
        if isinstance(value, Pointer) and key in changed
        and not (isinstance(old := other.get(key), Pointer) and old.array == value.array)
    }  # fmt: skip


def _assigned(walk: Walk, node: Node) -> set[int]:
    found: set[int] = set()
    for one in nodes_of(node):
        whole = child(one, "left") or child(one, "argument") if one.type in _CHANGES else None
        while whole is not None and whole.type in {"field_expression", "parenthesized_expression"}:
            whole = named(whole)[0] if named(whole) else None
        place = (
            walk.find(text_of(whole)) if whole is not None and whole.type == "identifier" else None
        )
        if isinstance(place, Cell):
            found.add(place.number)
    return found


def _unknown(walk: Walk, hint: str, old: Value) -> Value:
    if isinstance(old, Pointer):
        return Pointer(old.array, walk.fresh(hint), old.unit, old.rows)
    if isinstance(old, Record):
        fields = tuple((name, _unknown(walk, name, value)) for name, value in old.fields)
        return Record(old.path or hint, old.type, fields)
    return walk.fresh(hint)


def _entry(
    walk: Walk,
    node: Node,
    before: dict[int, Value],
    marks: dict[int, Value],
    after: dict[int, Value],
    names: dict[int, str],
) -> tuple[dict[int, Value], Stepped | None]:
    """What the changed variables hold when a pass begins."""
    varying = {name for value in marks.values() for name in _names(value)}
    condition = child(node, "condition")
    asked = (
        {text_of(one) for one in nodes_of(condition) if one.type == "identifier"}
        if condition
        else set()
    )
    entry: dict[int, Value] = {}
    counter: Stepped | None = None
    origins = Origins(walk.facts)
    for key in sorted(marks, key=lambda key: (names.get(key) not in asked, key)):
        mark, end, start = marks[key], after.get(key), before.get(key)
        if isinstance(mark, Pointer) and (not isinstance(end, Pointer) or end.array != mark.array):
            for value in (mark, end, start):
                walk.escape(value, "changes its array in a loop")
            entry[key] = None
            continue
        step = _step(origins, mark, end, varying)
        if step is None:
            entry[key] = mark
        elif counter is None and isinstance(start, Polynomial) and isinstance(mark, Polynomial):
            counter = Stepped(mark, start, step)
            entry[key] = mark
        else:
            entry[key] = _counted(walk, start, step, counter) or mark
    return entry, counter


def _names(value: Value) -> frozenset[str]:
    if isinstance(value, Pointer):
        return value.offset.names()
    return value.names() if isinstance(value, Polynomial) else frozenset()


def _step(origins: Origins, mark: Value, end: Value, varying: set[str]) -> Polynomial | None:
    """What one pass adds, where that is the same in each."""
    if isinstance(mark, Pointer) and isinstance(end, Pointer):
        mark, end = mark.offset, end.offset
    if not isinstance(mark, Polynomial) or not isinstance(end, Polynomial):
        return None
    step = end - mark
    return step if step and not varying & {*origins.behind(step, places=True)} else None


def _counted(
    walk: Walk, start: Value, step: Polynomial, counter: Stepped | None
) -> Polynomial | Pointer | None:
    trips = walk.fresh("trip")
    if counter is not None and counter.step:
        trips = quotient(counter.counter - counter.start, counter.step)
    if isinstance(start, Pointer):
        return Pointer(start.array, start.offset + step * trips, start.unit, start.rows)
    return start + step * trips if isinstance(start, Polynomial) else None


def _once(walk: Walk, node: Node, counter: Stepped | None = None) -> tuple[Guard, ...]:
    """One pass of the loop; what its condition says of it."""
    mark = len(walk.guards)
    condition = child(node, "condition")
    guards: tuple[Guard, ...] = ()
    if condition is not None and node.type != "do_statement":
        guards = _tested(walk, condition, counter)
        walk.guards += guards
    body = child(node, "body")
    outer, walk.continues = walk.continues, []
    goes_on = walk.execute(body) if body is not None else True
    ends, walk.continues = walk.continues, outer
    if not goes_on and ends:
        walk.store = ends.pop()
    for end in ends:
        join(walk, walk.store, end)
    del walk.guards[mark:]
    if (update := child(node, "update")) is not None:
        walk.evaluate(update)
    return _tested(walk, condition, None) if node.type == "do_statement" else guards


def _tested(walk: Walk, condition: Node | None, counter: Stepped | None) -> tuple[Guard, ...]:
    """What holds where a loop's condition does; `i != n` of a counter that goes up is `i < n`."""
    inner = child(condition, "value") or condition
    test = walk.evaluate(inner) if inner is not None and inner.type != "declaration" else None
    if isinstance(test, Polynomial) and test.number is None:
        test = as_condition(walk, test)
    elif isinstance(test, Polynomial):
        return (Guard(test, "!=", constant(0)),)
    found = test.holds if isinstance(test, Condition) else ()
    walk.note_guards(found, "loop")
    if counter is None or counter.step.number != 1:
        return found
    return tuple(
        Guard(left, "<" if sign == "!=" and left == counter.counter else sign, right)
        for left, sign, right in found
    )
