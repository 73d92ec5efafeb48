"""Layers whose output goes straight into another layer."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import libcst as cst

from ta_lint.facts.values.classes import Classes
from ta_lint.facts.values.kinds import Kinds
from ta_lint.facts.values.names import Names
from ta_lint.syntax.tree import Node, Tree, dotted, is_name

_SEQUENTIAL = "torch.nn.Sequential"

# Attributes that describe a layer's shape: reading them changes nothing.
_SHAPE = frozenset(
    "in_channels in_features kernel_size out_channels out_features padding stride weight".split()
)


@dataclass(frozen=True, eq=False)
class Link:
    """Two layers, by their constructor calls: the whole output of the first goes into the second, and nowhere else.

    `mentions` are the attributes through which other code reaches the first layer, such as its weight and bias.
    """

    first: cst.Call
    second: cst.Call
    mentions: tuple[cst.Attribute, ...] = ()


class Chains:
    """Neighbours in an `nn.Sequential`, and layers that a method applies one after the other."""

    def __init__(self, tree: Tree, names: Names, classes: Classes, kinds: Kinds) -> None:
        self._tree = tree
        self._names = names
        self._classes = classes
        self._kinds = kinds

    def links(self, taker: re.Pattern[str]) -> Iterator[Link]:
        """The links whose second layer has a qualified name that matches `taker`."""
        makers = [call for call in self._tree.all(cst.Call) if self._makes(call, taker)]
        if not makers:
            return
        for layers in self._sequences():
            for first, second in pairwise(layers):
                made = self._kinds.construction(second)
                if isinstance(first, cst.Call) and made is not None and self._makes(made, taker):
                    yield Link(first, made)
        homes = {self._tree.enclosing(call, cst.ClassDef) for call in makers}
        for klass in self._classes.modules():
            if any(home in (None, klass) or self._classes.related(home, klass) for home in homes):
                yield from (link for link in self._called(klass) if self._makes(link.second, taker))

    def _makes(self, call: cst.Call, layer: re.Pattern[str]) -> bool:
        called = self._names.qualified(call.func)
        return called is not None and layer.fullmatch(called) is not None

    # -- nn.Sequential ----------------------------------------------------------------------------------------

    def _sequences(self) -> Iterator[list[Node]]:
        """Adjacent layers of an `nn.Sequential`: its arguments, or parts of a list passed to it."""
        for call in self._tree.all(cst.Call):
            if not call.args or not self._makes_sequential(call):
                continue
            layers: list[Node] = []
            for arg in call.args:
                value = arg.value
                if arg.star == "*" and isinstance(value, cst.Name):
                    yield from self._filled(value)
                    layers.append(arg)  # whatever the starred list ends with
                elif isinstance(value, cst.List):
                    layers += _elements(value)
                elif isinstance(value, cst.Call) and self._is_ordered(value):
                    layers += _named(value)
                else:
                    layers.append(value)
            yield layers

    def _makes_sequential(self, call: cst.Call) -> bool:
        if self._names.qualified(call.func) == _SEQUENTIAL:
            return True
        klass = self._tree.enclosing(call, cst.ClassDef)
        called = call.func
        return (
            klass is not None
            and isinstance(called, cst.Attribute)
            and called.attr.value == "__init__"
            and isinstance(called.value, cst.Call)
            and dotted(called.value.func) == "super"
            and self._classes.bases(klass) == [_SEQUENTIAL]
        )

    def _is_ordered(self, call: cst.Call) -> bool:
        return self._names.qualified(call.func) == "collections.OrderedDict"

    def _filled(self, name: cst.Name) -> Iterator[list[Node]]:
        """The runs of layers in a local list: each literal, and each sequence of `append` calls."""
        appended: dict[Node, cst.Call] = {}
        for mention in self._names.mentions(name):
            above = self._tree.parent[mention]
            statement = self._tree.statement(mention)
            if isinstance(above, cst.AssignTarget) and isinstance(statement, cst.Assign):
                yield _elements(statement.value)
            elif isinstance(above, cst.AugAssign) and above.target is mention:
                yield _elements(above.value)
            elif isinstance(above, cst.Attribute) and isinstance(call := self._tree.parent[above], cst.Call):
                if above.attr.value == "append" and len(call.args) == 1:
                    appended[self._tree.parent[statement]] = call
                elif above.attr.value == "extend" and len(call.args) == 1:
                    yield _elements(call.args[0].value)
        for line, call in appended.items():
            block = self._tree.parent[line]
            following = (
                _next(block.body, line) if isinstance(block, (cst.IndentedBlock, cst.Module)) else None
            )
            if following in appended:
                yield [call.args[0].value, appended[following].args[0].value]

    # -- calls ------------------------------------------------------------------------------------------------

    def _called(self, klass: cst.ClassDef) -> Iterator[Link]:
        """Links from layers of a class whose every call is the argument of the same other layer."""
        attributes: dict[str, list[cst.Attribute]] = {}
        for attribute in self._tree.within(klass, cst.Attribute):
            if is_name(attribute.value, "self"):
                attributes.setdefault(attribute.attr.value, []).append(attribute)
        for mentions in attributes.values():
            calls: list[cst.Call] = []
            reads: list[cst.Attribute] = []
            for mention in mentions:
                above = self._tree.parent[mention]
                if isinstance(above, cst.Call):
                    calls.append(above)
                elif isinstance(above, cst.Attribute):
                    reads.append(above)
                elif not isinstance(above, (cst.AssignTarget, cst.AnnAssign)):
                    break  # the output also goes elsewhere
            else:
                if calls and (taker := self._one_taker(calls)) is not None:
                    yield from self._link(klass, mentions[0], taker, reads)

    def _one_taker(self, calls: list[cst.Call]) -> cst.Attribute | None:
        """The layer on `self` that receives the result of every one of these calls."""
        takers = [self._taken_by(call) for call in calls]
        found = [taker for taker in takers if taker is not None]
        same = len(found) == len(takers) and len({taker.attr.value for taker in found}) == 1
        return found[0] if same else None

    def _link(
        self, klass: cst.ClassDef, layer: cst.Attribute, taker: cst.Attribute, reads: list[cst.Attribute]
    ) -> Iterator[Link]:
        first, second = self._kinds.construction(layer), self._kinds.construction(taker)
        fixed = all(self._is_fixed(klass, attribute.attr.value) for attribute in (layer, taker))
        if first is not None and second is not None and fixed:
            yield Link(first, second, tuple(read for read in reads if read.attr.value not in _SHAPE))

    def _is_fixed(self, klass: cst.ClassDef, name: str) -> bool:
        """Whether no related class of this file uses the attribute too."""
        return not any(
            attribute.attr.value == name and is_name(attribute.value, "self")
            for other in self._classes.all()
            if other is not klass and self._classes.related(other, klass)
            for attribute in self._tree.within(other, cst.Attribute)
        )

    def _taken_by(self, call: cst.Call) -> cst.Attribute | None:
        """The layer on `self` that is the only reader of a call's result."""
        above = self._tree.parent[call]
        if isinstance(above, cst.Arg):
            return self._layer_call(above)
        if not isinstance(above, cst.Assign) or len(above.targets) != 1:
            return None
        variable = above.targets[0].target
        if not isinstance(variable, cst.Name):
            return None
        binding = next((b for b in self._names.bindings(variable) if b.node is above), None)
        if binding is None:
            return None
        later = [
            mention
            for mention in self._names.mentions(variable)
            if self._tree.before(above, mention) and not self._tree.contains(above, mention)
        ]
        readers = [mention for mention in later if self._names.definition(mention) is binding]
        readers = [
            mention for mention in readers if not isinstance(self._tree.parent[mention], cst.AssignTarget)
        ]
        arg = self._tree.parent[readers[0]] if len(readers) == 1 else None
        if not isinstance(arg, cst.Arg) or self._tree.block(arg) is not self._tree.block(above):
            return None
        taker = self._layer_call(arg)
        return taker if taker is not None and not self._may_be_read(later, arg) else None

    def _may_be_read(self, later: list[cst.Name], reader: cst.Arg) -> bool:
        """Whether a later mention may see the same value: not if the reader's statement rebinds the variable."""
        statement = self._tree.statement(reader)
        if isinstance(statement, cst.Assign) and any(
            isinstance(item.target, cst.Name) and item.target.value == later[0].value
            for item in statement.targets
        ):
            later = [mention for mention in later if self._tree.before(mention, statement)]
        return any(
            self._names.definition(mention) is None and not self._tree.contains(statement, mention)
            for mention in later
        )

    def _layer_call(self, arg: cst.Arg) -> cst.Attribute | None:
        """The layer on `self` that is called with exactly this argument."""
        call = self._tree.parent[arg]
        if isinstance(call, cst.Call) and len(call.args) == 1 and not arg.star:
            layer = call.func
            return layer if isinstance(layer, cst.Attribute) and is_name(layer.value, "self") else None
        return None


def _elements(node: Node) -> list[Node]:
    return [element.value for element in node.elements] if isinstance(node, (cst.List, cst.Tuple)) else []


def _named(ordered: cst.Call) -> list[Node]:
    """The values of `OrderedDict([("name", value), ...])`."""
    pairs = _elements(ordered.args[0].value) if ordered.args else []
    return [_elements(pair)[1] if len(_elements(pair)) == 2 else pair for pair in pairs]


def _next(body: object, line: Node) -> Node | None:
    assert isinstance(body, (list, tuple))
    index = body.index(line) + 1
    return body[index] if index < len(body) else None
