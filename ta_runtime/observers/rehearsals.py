"""Reads what a `train()` of a user's own would switch off, without calling it.

Calling it, even on a copy, would be the run's code at a time of ours. So its source is followed with the values that the
module has: conditions, loops over its parts, methods of its own. Whatever is not plain makes the whole unknown.
"""

import ast
import inspect
import operator
from collections import ChainMap
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

from torch import Tensor, nn

from ta_runtime.faults import keep
from ta_runtime.probes.places import is_library
from ta_runtime.probes.sources import definition

_DEEPEST = 4  # methods that call each other
_LONGEST = 20_000  # statements
_BUILTINS: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (enumerate, getattr, isinstance, len, list, range, reversed, zip)
}
_WALKS = {
    "children", "items", "keys", "modules", "named_children", "named_modules", "named_parameters", "parameters", "values",
}  # fmt: skip
_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.USub: operator.neg,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.In: lambda left, right: left in right, ast.NotIn: lambda left, right: left not in right,
}  # fmt: skip
_LOOPED = (list, tuple, set, dict, range, enumerate, zip, reversed, nn.ModuleList, nn.Sequential)
"""What a loop may go over; not the rows of a tensor, which would be computed."""


class _Unknown(Exception):
    """What the code does here cannot be told."""


class _Returned(Exception):
    """The method is over."""


@dataclass(slots=True)
class Rehearsal:
    """What would be in evaluation mode, and frozen, after a call of `train()`."""

    layers: dict[int, nn.Module] = field(default_factory=dict)
    parameters: dict[int, Tensor] = field(default_factory=dict)
    passed_on: bool = False
    """Whether it calls the `train` of `nn.Module` as well."""
    statements: int = 0
    """How many were followed."""

    def freeze(self, tensors: Iterable[Tensor]) -> None:
        self.parameters |= {id(tensor): tensor for tensor in tensors if tensor.requires_grad}

    def evaluate(self, layers: Iterable[nn.Module]) -> None:
        self.layers |= {id(layer): layer for layer in layers if layer.training}


def rehearsed(module: nn.Module, method: FunctionType) -> Rehearsal | None:
    """What `method`, the `train` of the module's class, would do to it; None if that cannot be told."""
    found = Rehearsal()
    try:
        _Scene(module, method, [True], found).play()
    except Exception as error:  # noqa: BLE001 - values of the user's, of which anything may raise
        keep(error)
        return None
    return found if found.passed_on else None


class _Scene:
    """One method that is followed, with the values of its names, and what is found on the way."""

    def __init__(
        self, module: nn.Module, method: FunctionType, given: list[Any], found: Rehearsal, depth: int = 0
    ) -> None:
        bound = inspect.signature(method, follow_wrapped=False).bind(module, *given)
        bound.apply_defaults()
        self.module = module
        self.method = method
        self.names = ChainMap(bound.arguments, method.__globals__, _BUILTINS)
        self.found = found
        self.depth = depth

    def play(self) -> None:
        code = definition(self.method.__code__)
        if code is None or self.depth == _DEEPEST:
            raise _Unknown
        with suppress(_Returned):
            self.run(code.body)

    def run(self, body: list[ast.stmt]) -> None:
        for statement in body:
            self.found.statements += 1
            if self.found.statements > _LONGEST:
                raise _Unknown
            self.statement(statement)

    def statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Pass() | ast.Expr(ast.Constant()):
                pass
            case ast.Expr(ast.Call() as call):
                self.call(call)
            case ast.Return(value):
                if isinstance(value, ast.Call):
                    self.call(value)
                raise _Returned
            case ast.If(test, body, orelse):
                self.run(body if self.holds(test) else orelse)
            case ast.For(target, iterated, body, []):
                if not isinstance(items := self.value(iterated), _LOOPED):
                    raise _Unknown
                for item in list(items):
                    self.bind(target, item)
                    self.run(body)
            case ast.Assign([ast.Attribute(owner, name)], ast.Constant(False)):
                self.switch_off(self.value(owner), name)
            case ast.Assign([ast.Name() as target], ast.Call() as call) if _is_passed_on(call):
                self.call(call)
                self.bind(target, self.module)
            case ast.Assign([ast.Name() as target], value):
                self.bind(target, self.value(value))
            case _:
                raise _Unknown

    def call(self, call: ast.Call) -> None:
        """A call whose result nobody wants."""
        if _is_passed_on(call):
            self.found.passed_on = True
            self.found.layers.clear()
            return
        if not isinstance(call.func, ast.Attribute) or call.keywords:
            raise _Unknown
        owner, name = self.value(call.func.value), call.func.attr
        given = [self.value(argument) for argument in call.args]
        if isinstance(owner, nn.Module) and (name, given) in (("eval", []), ("train", [False])):
            if any(type(layer).train is not nn.Module.train for layer in owner.modules()):
                raise _Unknown
            self.found.evaluate(owner.modules())
        elif isinstance(owner, (nn.Module, Tensor)) and (name, given) == ("requires_grad_", [False]):
            self.found.freeze(owner.parameters() if isinstance(owner, nn.Module) else [owner])
        elif owner is self.module:
            method = inspect.getattr_static(type(owner), name, None)
            if not isinstance(method, FunctionType):
                raise _Unknown
            _Scene(self.module, method, given, self.found, self.depth + 1).play()
        else:
            raise _Unknown

    def switch_off(self, owner: Any, name: str) -> None:
        if name == "requires_grad" and isinstance(owner, Tensor):
            self.found.freeze([owner])
        elif name == "training" and isinstance(owner, nn.Module):
            self.found.evaluate([owner])
        else:
            raise _Unknown

    def bind(self, target: ast.expr, value: Any) -> None:
        match target:
            case ast.Name(name):
                self.names[name] = value
            case ast.Tuple(targets):
                for each, item in zip(targets, value, strict=True):
                    self.bind(each, item)
            case _:
                raise _Unknown

    # -- values -----------------------------------------------------------------------------------------------

    def value(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value):
                return value
            case ast.Name(name):
                return self.names[name]
            case ast.Attribute(owner, name):
                return _attribute(self.value(owner), name)
            case ast.Subscript(owner, index):
                return _item(self.value(owner), self.value(index))
            case ast.Slice(lower, upper, step):
                return slice(*(None if part is None else self.value(part) for part in (lower, upper, step)))
            case ast.Tuple(elements) | ast.List(elements):
                return tuple(self.value(element) for element in elements)
            case ast.JoinedStr(values):
                return "".join(str(self.plain(value)) for value in values)
            case ast.FormattedValue(value, -1, None):
                return self.value(value)
            case ast.BoolOp() | ast.UnaryOp() | ast.Compare() | ast.BinOp():
                return self.computed(node)
            case ast.Call():
                return self.result(node)
        raise _Unknown

    def computed(self, node: ast.expr) -> Any:
        """What an operator makes of its operands."""
        match node:
            case ast.BoolOp(kind, values):
                return (all if isinstance(kind, ast.And) else any)(map(self.holds, values))
            case ast.UnaryOp(ast.Not(), operand):
                return not self.holds(operand)
            case ast.Compare(left, [ast.Is() | ast.IsNot() as kind], [right]):
                return (self.value(left) is self.value(right)) is isinstance(kind, ast.Is)
            case ast.UnaryOp(kind, operand):
                return _OPERATORS[type(kind)](self.plain(operand))
            case ast.BinOp(left, kind, right) | ast.Compare(left, [kind], [right]):
                return _OPERATORS[type(kind)](self.plain(left), self.plain(right))
        raise _Unknown

    def plain(self, node: ast.expr) -> Any:
        """A value whose operators run nobody's code."""
        if not _is_plain(value := self.value(node)):
            raise _Unknown
        return value

    def holds(self, node: ast.expr) -> bool:
        value = self.value(node)
        if not isinstance(value, (list, tuple, dict, nn.ModuleList)) and not _is_plain(value):
            raise _Unknown
        return bool(value)

    def result(self, call: ast.Call) -> Any:
        given = [self.value(argument) for argument in call.args]
        match call.func:
            case ast.Name(name) if not call.keywords and self.names[name] is _BUILTINS.get(name):
                if name == "getattr":
                    return _attribute(*given)
                if name != "isinstance" and any(isinstance(value, Tensor) for value in given):
                    raise _Unknown
                return _BUILTINS[name](*given)
            case ast.Attribute(owner, name) if name in _WALKS and not given and not call.keywords:
                walked = self.value(owner)
                if isinstance(walked, (nn.Module, dict)) and not _is_own(walked, name):
                    return list(getattr(walked, name)())
        raise _Unknown


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple, set)):
        return all(map(_is_plain, value))
    return isinstance(value, (int, float, str, bool, range, type(None)))


def _attribute(owner: Any, name: str) -> Any:
    """An attribute that can be read without running anybody's code."""
    computed = isinstance(inspect.getattr_static(type(owner), name, None), property)
    if computed or getattr(type(owner), "__getattr__", nn.Module.__getattr__) is not nn.Module.__getattr__:
        raise _Unknown
    return getattr(owner, name)


def _item(owner: Any, index: Any) -> Any:
    if isinstance(owner, (nn.ModuleList, nn.Sequential)):
        owner = list(owner)  # a slice of the module itself would be a new module
    if not isinstance(owner, (list, tuple, dict, nn.ModuleDict)):
        raise _Unknown
    return owner[index]


def _is_passed_on(call: ast.Call) -> bool:
    """Whether it is `super().train(...)`."""
    match call.func:
        case ast.Attribute(ast.Call(ast.Name("super")), "train"):
            return True
    return False


def _is_own(walked: Any, name: str) -> bool:
    """Whether a module's class walks over its parts in a way of its own."""
    return isinstance(walked, nn.Module) and not is_library(getattr(type(walked), name).__code__.co_filename)


def own_train(kind: type) -> FunctionType | None:
    """The `train` that a class of the user's, or one that it derives from, has in place of that of `nn.Module`."""
    method = next((vars(base)["train"] for base in kind.__mro__ if "train" in vars(base)), None)
    if not isinstance(method, FunctionType) or is_library(method.__code__.co_filename):
        return None
    return method
