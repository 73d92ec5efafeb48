"""Ignite: its engines, the handlers that keep or stop by a score, and the functions that they are given."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts.values.flow import ValueFlow
from ta_lint.facts.values.kinds import Kinds
from ta_lint.facts.values.names import Names
from ta_lint.facts.values.value import Origin, Path
from ta_lint.syntax.tree import Node, Tree, argument, dotted

_ENGINE = regex(r"ignite\.engine\.(\w+\.)*Engine")
_STOPPER = regex(r"ignite\.(\w+\.)*EarlyStopping")
_KEEPER = regex(r"ignite\.(\w+\.)*(Model)?Checkpoint")
_EVALUATOR = regex(r"ignite\.engine\.(\w+\.)*create_supervised_evaluator")
_TRAINER = regex(r"ignite\.engine\.(\w+\.)*create_supervised_trainer")

_DEPTH = 4  # loops and handlers that data comes through

Function = cst.FunctionDef | cst.Lambda


@dataclass(frozen=True, eq=False)
class ScoredHandler:
    """A handler that keeps the best, or stops after it, by a score; `stops` is the engine that it stops."""

    call: cst.Call
    score: Function | None
    stops: Node | None


@dataclass(frozen=True, eq=False)
class Attachment:
    """`engine.add_event_handler(Events.COMPLETED, handler)`."""

    call: cst.Call
    engine: Node
    handler: Node


class Ignite:
    """Queries about the engines and handlers of a file."""

    def __init__(self, tree: Tree, names: Names, kinds: Kinds, flow: ValueFlow) -> None:
        self._tree = tree
        self._names = names
        self._kinds = kinds
        self._flow = flow

    @cached_property
    def engines(self) -> list[tuple[cst.Call, cst.FunctionDef]]:
        """Each call of `Engine`, with the function that it runs on each batch, where that is known."""
        made = [(call, self.function(call.args[0].value)) for call in self._calls(_ENGINE) if call.args]
        return [(call, function) for call, function in made if isinstance(function, cst.FunctionDef)]

    @cached_property
    def evaluators(self) -> list[cst.Call]:
        """The calls of `create_supervised_evaluator`."""
        return list(self._calls(_EVALUATOR))

    @cached_property
    def scored(self) -> list[ScoredHandler]:
        """The handlers that go by a score."""
        found: list[ScoredHandler] = []
        for call in self._tree.all(cst.Call):
            called = self._names.qualified(call.func) or ""
            if _STOPPER.fullmatch(called):
                score, stops = argument(call, "score_function", 1), argument(call, "trainer", 2)
            elif _KEEPER.fullmatch(called):
                score, stops = argument(call, "score_function"), None
            else:
                continue
            if score is not None:
                found.append(ScoredHandler(call, self.function(score), stops))
        return found

    @cached_property
    def attachments(self) -> list[Attachment]:
        """The calls that add a handler to an engine."""
        return [
            Attachment(call, call.func.value, call.args[1].value)
            for call in self._tree.all(cst.Call)
            if isinstance(call.func, cst.Attribute)
            and call.func.attr.value == "add_event_handler"
            and len(call.args) >= 2
            and not any(arg.star for arg in call.args[:2])
        ]

    def runs(self, engine: Node) -> list[tuple[cst.Call, frozenset[Node]]]:
        """The runs of an engine, by its name, each with the expressions that make its data."""
        name = dotted(engine)
        return [
            (call, frozenset(self._data(call.args[0].value, ())))
            for call in self._tree.all(cst.Call)
            if isinstance(call.func, cst.Attribute)
            and call.func.attr.value == "run"
            and name is not None
            and dotted(call.func.value) == name
            and call.args
        ]

    @cached_property
    def trained_on(self) -> frozenset[Node]:
        """The expressions that make the data of engines that train."""
        engines = [
            call.func.value
            for call in self._tree.all(cst.Call)
            if isinstance(call.func, cst.Attribute) and call.func.attr.value == "run"
        ]
        runs = [run for engine in engines if self.is_trainer(engine) for run in self.runs(engine)]
        return frozenset(node for _, data in runs for node in data)

    def _data(self, node: Node, path: Path, depth: int = _DEPTH) -> Iterator[Node]:
        """What makes a value, or each element, also through a loop over a dictionary and the arguments that a handler gets.

        Nothing where a value is one of several.
        """
        origins = self._flow.of(node, path).origins if depth else ()
        for origin in origins if len(origins) == 1 or None in path else ():
            source = origin.node
            if isinstance(source, (cst.For, cst.CompFor)):
                func = source.iter.func if isinstance(source.iter, cst.Call) else None
                over = func.value if isinstance(func, cst.Attribute) else source.iter
                yield from self._data(over, (None,), depth - 1)
            elif isinstance(source, cst.Param) and (given := self._handed_over(source)):
                for one in given:
                    yield from self._data(one, origin.path, depth - 1)
            else:
                yield source

    def _handed_over(self, param: cst.Param) -> list[Node]:
        """What handlers get behind their engine: `loaders` of `engine.add_event_handler(event, evaluate, loaders)`."""
        function = self._tree.parent[self._tree.parent[param]]
        if not isinstance(function, cst.FunctionDef):
            return []
        place = self._kinds.calls.place(function, param)
        added = [one.call for one in self.attachments if self.function(one.handler) is function]
        return [call.args[place + 1].value for call in added if place and place + 1 < len(call.args)]

    def events(self, function: Node) -> list[Node]:
        """The events that a function or lambda is certainly a handler of: by `@engine.on(event)`, or as it is added."""
        found: list[Node] = [
            one.call.args[0].value for one in self.attachments if self.function(one.handler) is function
        ]
        decorators = (
            [one.decorator for one in function.decorators] if isinstance(function, cst.FunctionDef) else []
        )
        return found + [
            one.args[0].value
            for one in decorators
            if isinstance(one, cst.Call)
            and one.args
            and isinstance(one.func, cst.Attribute)
            and one.func.attr.value == "on"
        ]

    def is_trainer(self, engine: Node) -> bool:
        """Whether an engine certainly trains: it is made by `create_supervised_trainer`, or its function goes back."""
        origin = self._kinds.origin(engine)
        if not isinstance(origin, cst.Call):
            return False
        if _TRAINER.fullmatch(self._names.qualified(origin.func) or ""):
            return True
        return any(call is origin and self.goes_back(function) for call, function in self.engines)

    def goes_back(self, function: cst.FunctionDef) -> bool:
        """Whether a function runs a backward pass."""
        calls = self._tree.within(function, cst.Call)
        return any(
            isinstance(call.func, cst.Attribute) and call.func.attr.value == "backward" for call in calls
        )

    def function(self, value: Node) -> Function | None:
        """The function or lambda that a value is."""
        if isinstance(value, cst.Lambda):
            return value
        if (found := self._kinds.calls.function(value)) is not None:
            return found
        origin = self._kinds.origin(value)
        return origin if isinstance(origin, cst.Lambda) else None

    def scores(self, function: Function) -> Sequence[cst.BaseExpression]:
        """The expressions that a score function returns."""
        if isinstance(function, cst.Lambda):
            return [function.body]
        returns = self._tree.own(function, cst.Return)
        return [one.value for one in returns if one.value is not None]

    def read(self, value: Node) -> Iterator[Origin]:
        """Where a value is an entry of an engine's state: `engine.state.metrics["loss"]`."""
        yield from (origin for origin in self._flow.of(value).origins if "state" in origin.path)

    def _calls(self, called: re.Pattern[str]) -> Iterator[cst.Call]:
        for call in self._tree.all(cst.Call):
            if called.fullmatch(self._names.qualified(call.func) or ""):
                yield call
