"""Reads what a `train()` of a user's own would switch off, without calling it.

Calling it, even on a copy, would be the run's code at a time of ours. So its source is followed with the values that the
module has: conditions, loops over its parts, methods of its own. Whatever is not plain makes the whole unknown.
"""

import ast
import inspect
import operator
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

from torch import Tensor, nn

from ta_runtime.places import definition, is_library

_DEEPEST = 4  # methods that call each other
_LONGEST = 20_000  # statements
_BUILTINS: dict[str, Callable[..., Any]] = {
    "enumerate": enumerate, "isinstance": isinstance, "len": len, "list": list, "range": range, "reversed": reversed,
    "zip": zip,
}  # fmt: skip
_WALKS = {
    "children", "items", "keys", "modules", "named_children", "named_modules", "named_parameters", "parameters", "values",
}  # fmt: skip
_IDENTITIES: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Is: operator.is_, ast.IsNot: operator.is_not,
}  # fmt: skip
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip
_OPERATIONS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
}  # fmt: skip
_PLAIN = (int, float, str, bool, type(None))


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


def rehearsed(module: nn.Module, method: FunctionType) -> Rehearsal | None:
    """What `method`, the `train` of the module's class, would do to it; None if that cannot be told."""
    stage = _Stage(module)
    try:
        stage.play(method, [True])
    except Exception:  # noqa: BLE001 - values of the user's, of which anything may raise
        return None
    return stage.found if stage.found.passed_on else None


class _Stage:
    """A module, and what the code that is followed has done to it so far."""

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self.found = Rehearsal()
        self.depth = 0
        self.statements = 0

    def play(self, method: FunctionType, given: list[Any]) -> None:
        code = definition(method.__code__)
        if code is None or self.depth == _DEEPEST or code.decorator_list:
            raise _Unknown
        names = [argument.arg for argument in code.args.args]
        defaults = list(method.__defaults__ or ())
        values = [self.module, *given]
        missing = len(names) - len(values)
        if (
            missing > len(defaults)
            or missing < 0
            or code.args.vararg
            or code.args.kwonlyargs
            or code.args.kwarg
        ):
            raise _Unknown
        values += defaults[len(defaults) - missing :]
        self.depth += 1
        with suppress(_Returned):
            _Scene(self, method, dict(zip(names, values, strict=True))).run(code.body)
        self.depth -= 1

    def count(self) -> None:
        self.statements += 1
        if self.statements > _LONGEST:
            raise _Unknown

    def freeze(self, tensors: Iterable[Tensor]) -> None:
        self.found.parameters |= {id(tensor): tensor for tensor in tensors if tensor.requires_grad}

    def evaluate(self, layers: Iterable[nn.Module]) -> None:
        self.found.layers |= {id(layer): layer for layer in layers if layer.training}


class _Scene:
    """One method that is followed, with the values of its names."""

    def __init__(self, stage: _Stage, method: FunctionType, names: dict[str, Any]) -> None:
        self.stage = stage
        self.method = method
        self.names = names

    def run(self, body: list[ast.stmt]) -> None:
        for statement in body:
            self.stage.count()
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
                for item in self.items(iterated):
                    self.bind(target, item)
                    self.run(body)
            case ast.Assign([ast.Attribute(owner, name)], ast.Constant(False)):
                self.switch_off(self.value(owner), name)
            case ast.Assign([ast.Name() as target], ast.Call(ast.Attribute(value, "train")) as call) if (
                _is_super(value)
            ):
                self.call(call)
                self.bind(target, self.stage.module)
            case ast.Assign([ast.Name() as target], value):
                self.bind(target, self.value(value))
            case _:
                raise _Unknown

    def call(self, call: ast.Call) -> None:
        """A call whose result nobody wants."""
        function, arguments = call.func, call.args
        if not isinstance(function, ast.Attribute) or call.keywords:
            raise _Unknown
        name = function.attr
        if name == "train" and _is_super(function.value):
            self.stage.found.passed_on = True
            self.stage.found.layers.clear()
            return
        owner, given = self.value(function.value), [self.value(argument) for argument in arguments]
        if isinstance(owner, nn.Module) and (name, given) in (("eval", []), ("train", [False])):
            if any(type(layer).train is not nn.Module.train for layer in owner.modules()):
                raise _Unknown
            self.stage.evaluate(owner.modules())
        elif name == "requires_grad_" and given == [False] and isinstance(owner, (nn.Module, Tensor)):
            self.stage.freeze(owner.parameters() if isinstance(owner, nn.Module) else [owner])
        elif owner is self.stage.module:
            method = inspect.getattr_static(type(owner), name, None)
            if not isinstance(method, FunctionType):
                raise _Unknown
            self.stage.play(method, given)
        else:
            raise _Unknown

    def switch_off(self, owner: Any, name: str) -> None:
        if name == "requires_grad" and isinstance(owner, Tensor):
            self.stage.freeze([owner])
        elif name == "training" and isinstance(owner, nn.Module):
            self.stage.evaluate([owner])
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
                return self.name(name)
            case ast.Attribute(owner, name):
                return _attribute(self.value(owner), name)
            case ast.Subscript(owner, index):
                return _item(self.value(owner), self.value(index))
            case ast.Slice(lower, upper, step):
                return slice(*(None if part is None else self.value(part) for part in (lower, upper, step)))
            case ast.Tuple(elements) | ast.List(elements):
                return tuple(self.value(element) for element in elements)
            case ast.JoinedStr(values):
                return "".join(str(self.value(value)) for value in values)
            case ast.FormattedValue(value, -1, None):
                return self.plain(value)
            case ast.UnaryOp(ast.Not(), operand):
                return not self.holds(operand)
            case ast.UnaryOp(ast.USub(), operand):
                return -self.plain(operand)
            case ast.BinOp(left, kind, right) if type(kind) in _OPERATIONS:
                return _OPERATIONS[type(kind)](self.plain(left), self.plain(right))
            case ast.BoolOp(ast.And(), values):
                return all(self.holds(value) for value in values)
            case ast.BoolOp(ast.Or(), values):
                return any(self.holds(value) for value in values)
            case ast.Compare(left, [kind], [right]) if type(kind) in _IDENTITIES:
                return _IDENTITIES[type(kind)](self.value(left), self.value(right))
            case ast.Compare(left, [kind], [right]) if type(kind) in _COMPARISONS:
                return _COMPARISONS[type(kind)](self.plain(left), self.plain(right))
            case ast.Compare(left, [ast.In() | ast.NotIn() as kind], [right]):
                return (self.plain(left) in map(_plain, self.items(right))) is isinstance(kind, ast.In)
            case ast.Call():
                return self.result(node)
        raise _Unknown

    def plain(self, node: ast.expr) -> Any:
        return _plain(self.value(node))

    def holds(self, node: ast.expr) -> bool:
        value = self.value(node)
        return bool(
            value if isinstance(value, (*_PLAIN, list, tuple, dict, nn.ModuleList)) else _plain(value)
        )

    def items(self, node: ast.expr) -> list[Any]:
        """What a loop goes over; not the rows of a tensor, which would be computed."""
        value = self.value(node)
        if not isinstance(
            value, (list, tuple, set, dict, range, enumerate, zip, reversed, nn.ModuleList, nn.Sequential)
        ):
            raise _Unknown
        return list(value)

    def name(self, name: str) -> Any:
        if name in self.names:
            return self.names[name]
        if name in self.method.__globals__:
            return self.method.__globals__[name]
        return _BUILTINS[name]

    def result(self, call: ast.Call) -> Any:
        if call.keywords:
            raise _Unknown
        given = [self.value(argument) for argument in call.args]
        match call.func:
            case ast.Name("getattr") if len(given) == 2:
                return _attribute(*given)
            case ast.Name(name) if name in _BUILTINS and self.name(name) is _BUILTINS[name]:
                if name != "isinstance" and any(isinstance(value, Tensor) for value in given):
                    raise _Unknown
                return _BUILTINS[name](*given)
            case ast.Attribute(owner, name) if name in _WALKS and not given:
                walked = self.value(owner)
                if isinstance(walked, (nn.Module, dict)) and not _is_own(walked, name):
                    return list(getattr(walked, name)())
        raise _Unknown


def _plain(value: Any) -> Any:
    if not isinstance(value, _PLAIN):
        raise _Unknown
    return value


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


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


def _is_own(walked: Any, name: str) -> bool:
    """Whether a module's class walks over its parts in a way of its own."""
    return isinstance(walked, nn.Module) and not is_library(getattr(type(walked), name).__code__.co_filename)


def own_train(kind: type) -> FunctionType | None:
    """The `train` that a class of the user's, or one that it derives from, has in place of that of `nn.Module`."""
    method = next((vars(base)["train"] for base in kind.__mro__ if "train" in vars(base)), None)
    if not isinstance(method, FunctionType) or is_library(method.__code__.co_filename):
        return None
    return method
