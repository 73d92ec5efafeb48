"""Sums of reinforcement learning: a reward plus what comes after it, times a discount and a mask of the end."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.flow import ValueFlow
from ta_lint.facts.values.names import Names
from ta_lint.syntax.tree import Node, Tree, dotted, evaluated, literal_text

_DISCOUNT = regex(r"gamma|discount", re.IGNORECASE)
_LAMBDA = regex(r"lam(bda)?|tau|trace", re.IGNORECASE)
_END = regex(r"done|terminal|terminated|(^|_)(term|end|ends|finished|d|ds|dw|dones?_?\w*)$", re.IGNORECASE)
_MASK = regex(r"mask|non_?terminal|not_?done|alive|cont(inue)?s?$", re.IGNORECASE)

# Calls that give the same value in another form.
CASTS = frozenset(
    "asarray array astype bool cpu cuda detach expand expand_as float from_numpy int item long numpy reshape squeeze tensor to "
    "unsqueeze view FloatTensor BoolTensor IntTensor Tensor as_tensor float32 uint8 flatten type t".split()
)
_OR = frozenset("logical_or bitwise_or maximum max any".split())
_NOT = frozenset("logical_not bitwise_not invert".split())


@dataclass(frozen=True, eq=False)
class Discounted:
    """`total`, the sum of `now` and of a product with a discount: `later` are its other factors."""

    total: cst.BinaryOperation
    now: tuple[Node, ...]
    product: Node
    later: tuple[Node, ...]

    @property
    def is_plain(self) -> bool:
        """Whether the discount is the only weight of what comes later: no lambda of an eligibility trace."""
        return not any(
            _LAMBDA.search((dotted(bare(factor)) or "").rpartition(".")[2]) for factor in self.later
        )


class Discounting:
    """The discounted sums of a file, and the ends of episodes that mask them."""

    def __init__(self, tree: Tree, names: Names, flow: ValueFlow) -> None:
        self._tree = tree
        self._names = names
        self._flow = flow

    @cached_property
    def sums(self) -> list[Discounted]:
        """Every `now + gamma * later`, in source order."""
        found: dict[Node, Discounted] = {}
        for mention in self._tree.all(cst.Name, cst.Float, cst.SimpleString):
            if _is_discount(mention):
                one = self._around(self._named_by(mention))
                if one is not None:
                    found.setdefault(one.total, one)
        return list(found.values())

    def _named_by(self, mention: Node) -> Node:
        """The entry that a string is the key of: `config["gamma"]`; a name or number itself."""
        if not isinstance(mention, cst.SimpleString):
            return mention
        above = self._tree.enclosing(mention, cst.Subscript)
        return above if above is not None and entry(above) == literal_text(mention) else mention

    def _around(self, mention: Node) -> Discounted | None:
        parent = self._tree.parent
        node = mention
        while isinstance(parent[node], (cst.Attribute, cst.Subscript)) and parent[node].value is node:  # type: ignore[attr-defined]
            node = parent[node]
        if isinstance(parent[node], cst.Attribute):
            node = parent[node]  # the name of an attribute: `self.gamma`
        discount = node
        while _joins(parent[node], cst.Multiply):
            node = parent[node]
        product = node
        if product is discount:
            return None
        while _joins(parent[node], cst.Add, cst.Subtract):
            node = parent[node]
        if not isinstance(node, cst.BinaryOperation) or node is product:
            return None
        terms = list(summands(node))
        if not any(sign > 0 and term is product for sign, term in terms):
            return None
        now = tuple(term for sign, term in terms if term is not product and sign > 0)
        later = tuple(factor for factor in factors(product) if factor is not discount)
        return Discounted(node, now, product, later) if now else None

    def ends(self, one: Discounted) -> Iterator[Node]:
        """The flags of an episode's end that a sum is masked by: `done` in `r + gamma * (1 - done) * value`."""
        for factor in one.later:
            yield from self._ends(factor)

    def stored_end(self) -> Node | None:
        """The flag in a product of a discount and the opposite of the end alone, as a buffer keeps it: `gamma * (1 - done)`."""
        for product in self._tree.all(cst.BinaryOperation):
            if not _joins(product, cst.Multiply) or _joins(self._tree.parent[product], cst.Multiply):
                continue
            sides = list(factors(product))
            ends = [end for side in sides if (end := negated(bare(side))) is not None and self.is_end(end)]
            if len(sides) == 2 and ends and any(map(is_discount, sides)):
                return ends[0]
        return None

    def _ends(self, factor: Node) -> Iterator[Node]:
        inner = negated(bare(factor))
        if inner is not None:
            yield inner
            return
        for origin in self._flow.of(bare(factor)).origins:
            inner = negated(bare(origin.node))
            if inner is not None:
                yield inner
                return
        if _MASK.search(_called(factor)):
            yield factor

    def is_end(self, node: Node) -> bool:
        """Whether an expression is called like the end of an episode, or like its opposite."""
        name = _called(node)
        return bool(_END.search(name) or _MASK.search(name))

    def adds_up(self, one: Discounted) -> cst.Name | cst.Attribute | None:
        """The variable that a sum is assigned to and made from: `R` in `R = r + gamma * R`."""
        above = self._tree.parent[one.total]
        if not isinstance(above, cst.Assign) or len(above.targets) != 1:
            return None
        target = above.targets[0].target
        path = dotted(target)
        own = path is not None and any(dotted(bare(factor)) == path for factor in one.later)
        return target if own and isinstance(target, (cst.Name, cst.Attribute)) else None

    def _fills_up(self, one: Discounted) -> bool:
        """Whether a sum goes into an array and is made from what that holds: `returns[t] = r[t] + gamma * returns[t + 1]`."""
        above = self._tree.parent[one.total]
        target = above.targets[0].target if isinstance(above, cst.Assign) else None
        filled = dotted(bare(target)) if isinstance(target, cst.Subscript) else None
        if filled is None:
            return False
        for factor in one.later:
            made = [origin.node for origin in self._flow.of(factor).origins]
            own = [node for node in made if node is one.total or dotted(bare(node)) == filled]
            if own and all(node in own or _is_start(bare(node)) for node in made):
                return True
        return False

    def adds_up_from_zero(self, one: Discounted) -> bool:
        """Whether a sum is a return of rewards alone: the variable that it adds up begins as a number."""
        target = self.adds_up(one)
        if target is None:
            return self._fills_up(one)
        if not isinstance(target, cst.Name):
            return True
        values = [binding.value for binding in self._names.bindings(target) if binding.value is not one.total]
        return all(value is None or _is_start(value) for value in values)


def is_discount(factor: Node) -> bool:
    """Whether a factor is a discount, such as `self.gamma`, by its name or its size."""
    if isinstance(factor, cst.Subscript) and _DISCOUNT.search(entry(factor) or ""):
        return True
    inner = bare(factor)
    inner = inner.attr if isinstance(inner, cst.Attribute) else inner
    return isinstance(inner, (cst.Name, cst.Float)) and _is_discount(inner)


def entry(node: cst.Subscript) -> str | None:
    """The key of an entry: `gamma` of `config["gamma"]`."""
    index = node.slice[0].slice if len(node.slice) == 1 else None
    return literal_text(index.value) if isinstance(index, cst.Index) else None


def _is_discount(mention: cst.Name | cst.Float | cst.SimpleString) -> bool:
    """Whether a name or key says that it is a discount, or a number looks like one: 0.9 to 1."""
    if type(mention) is cst.Float:
        return 0.9 <= evaluated(mention) < 1
    return _names_discount(mention.value)


@lru_cache(4096)
def _names_discount(text: str) -> bool:
    return _DISCOUNT.search(text) is not None


def summands(node: Node, sign: int = 1) -> Iterator[tuple[int, Node]]:
    """The terms of a sum, each with its sign."""
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.Add, cst.Subtract)):
        yield from summands(node.left, sign)
        yield from summands(node.right, sign if isinstance(node.operator, cst.Add) else -sign)
    elif isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        yield from summands(node.expression, -sign)
    else:
        yield sign, node


def factors(node: Node) -> Iterator[Node]:
    """The factors of a product."""
    if _joins(node, cst.Multiply):
        assert isinstance(node, cst.BinaryOperation)
        yield from factors(node.left)
        yield from factors(node.right)
    else:
        yield node


def bare(node: Node) -> Node:
    """An expression without casts, changes of shape and indices: `done` of `torch.tensor(done[t]).float()`."""
    while (inner := _within(node)) is not None:
        node = inner
    return node


def _within(node: Node) -> Node | None:
    """What one cast, change of shape or index is of."""
    if isinstance(node, cst.Subscript):
        return node.value
    if not isinstance(node, cst.Call) or called_name(node) not in CASTS:
        return None
    if isinstance(node.func, cst.Attribute) and not _is_library(node.func.value):
        return node.func.value
    return node.args[0].value if node.args else None


def _called(node: Node) -> str:
    """What an expression is called: `done` of `self.done[t]`, and of `batch["done"].float()`."""
    inner: Node | None = node
    while inner is not None:
        if isinstance(inner, cst.Subscript) and (key := entry(inner)) is not None:
            return key
        node, inner = inner, _within(inner)
    return (dotted(node) or "").rpartition(".")[2]


def negated(node: Node) -> Node | None:
    """`done` in `1 - done`, `~done`, `not done` and `logical_not(done)`."""
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Subtract):
        return node.right if _is_one(bare(node.left)) else None
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, (cst.Not, cst.BitInvert)):
        return node.expression
    if isinstance(node, cst.Call) and called_name(node) in _NOT and node.args:
        return node.args[0].value
    return None


def alternatives(node: Node) -> list[Node]:
    """`a` and `b` in `a or b`, `a | b`, `a + b` and `logical_or(a, b)`; empty for anything else."""
    if isinstance(node, cst.BooleanOperation) and isinstance(node.operator, cst.Or):
        return [node.left, node.right]
    if _joins(node, cst.BitOr, cst.Add):
        assert isinstance(node, cst.BinaryOperation)
        return [node.left, node.right]
    if isinstance(node, cst.Call) and called_name(node) in _OR:
        given: list[Node] = [arg.value for arg in node.args]
        if len(given) == 1 and isinstance(given[0], (cst.List, cst.Tuple)):
            given = [element.value for element in given[0].elements]
        return given if len(given) == 2 else []
    return []


def _joins(node: Node | None, *operators: type[cst.BaseBinaryOp]) -> bool:
    return isinstance(node, cst.BinaryOperation) and isinstance(node.operator, operators)


def _is_one(node: Node) -> bool:
    if isinstance(node, cst.Call):
        return called_name(node) in ("ones_like", "ones")
    return isinstance(node, (cst.Integer, cst.Float)) and evaluated(node) == 1


def _is_start(value: Node) -> bool:
    """Whether a value is a number, or one of several that hold no call of a network: `returns, R = [], 0`."""
    if isinstance(value, cst.Tuple):
        return all(_is_start(element.value) for element in value.elements)
    zeros = isinstance(value, cst.Call) and called_name(value) in ("zeros", "zeros_like", "tensor", "float")
    return zeros or isinstance(value, (cst.Integer, cst.Float, cst.List))


def _is_library(node: Node) -> bool:
    return (dotted(node) or "").partition(".")[0] in ("torch", "np", "numpy", "th", "jnp")
