"""Functions, classes and their decorators."""

import ast
from typing import Any

from ta_lint.dryrun.flow import Flow
from ta_lint.dryrun.machine import library
from ta_lint.dryrun.machine.calling import call
from ta_lint.dryrun.machine.frame import Frame
from ta_lint.dryrun.machine.machine import Exhausted, Machine, Raised
from ta_lint.dryrun.machine.tables import evaluate, evaluates, executes, run
from ta_lint.dryrun.values import (
    REST,
    Class,
    External,
    Function,
    Module,
    Native,
    Object,
    Sequence,
    Table,
    Unknown,
    Value,
    options,
)  # fmt: skip

MOST_OF_A_DECORATOR = 1000
"""Statements and calls of a decorator. One that takes more, such as one that writes documentation, is left out."""
MOST_REGISTERED = 300
"""Statements and calls of a decorator that leaves what it gets as it is, over all that it decorates: no more of it is registered."""


def _function(
    machine: Machine, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, frame: Frame
) -> Function:
    outer = frame
    function = Function(library.FUNCTION, node, outer, machine.place(node))
    function.owner = frame.owner if frame.function is None else None
    parameters = node.args
    names = [one.arg for one in (*parameters.posonlyargs, *parameters.args)]
    with_default = names[len(names) - len(parameters.defaults) :]
    defaults = dict(zip(with_default, parameters.defaults, strict=True))
    defaults |= {
        one.arg: value
        for one, value in zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True)
        if value is not None
    }
    function.defaults = {name: evaluate(machine, value, frame) for name, value in defaults.items()}
    return function


@evaluates(ast.Lambda)
def _lambda(machine: Machine, node: ast.Lambda, frame: Frame) -> Value:
    return _function(machine, node, frame)


@executes(ast.FunctionDef, ast.AsyncFunctionDef)
def _define(machine: Machine, node: ast.FunctionDef, frame: Frame) -> Flow:
    value: Value = _function(machine, node, frame)
    if isinstance(value, Function) and value.owner is not None and _is_abstract(node):
        value = External(f"{value.owner.name}.{node.name}")
    for decorator in reversed(node.decorator_list):
        value = _decorated(machine, decorator, value, frame)
    machine.state.write(frame.outside.get(node.name, frame).names, node.name, value)
    return Flow.ON


def _is_abstract(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a method says nothing but that subclasses have it: it raises `NotImplementedError`, or is an empty `abstractmethod`."""
    said = [one for one in node.body if not _says_nothing(one)]
    if not said:
        return any(ast.unparse(one).rpartition(".")[2] == "abstractmethod" for one in node.decorator_list)
    raised = said[0].exc if len(said) == 1 and isinstance(said[0], ast.Raise) else None
    error = raised.func if isinstance(raised, ast.Call) else raised
    return isinstance(error, ast.Name) and error.id == "NotImplementedError"


def _says_nothing(statement: ast.stmt) -> bool:
    """`pass`, `...` or a docstring."""
    constant = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return constant or isinstance(statement, ast.Pass)


def _decorated(machine: Machine, decorator: ast.expr, value: Value, frame: Frame) -> Value:
    """What a decorator makes of a function or class; one that is out of sight leaves it as it is."""
    if isinstance(decorator, ast.Attribute) and decorator.attr in ("setter", "deleter"):
        former = evaluate(machine, decorator.value, frame)
        if isinstance(former, Object) and former.cls is library.PROPERTY:
            made = Object(library.PROPERTY, former.made, dict(former.fields))
            if decorator.attr == "setter":
                made.fields["set"] = value
            return made
    by = evaluate(machine, decorator, frame)
    code = by.node if isinstance(by, Function) else decorator
    if isinstance(by, (External, Unknown)) or code in machine.heavy:
        return value
    mark, steps = machine.state.mark, machine.steps
    result = _applied(machine, by, value, decorator, code)
    if result is not value and not isinstance(result, Unknown):
        return result
    if isinstance(by, Function):
        _registered(machine, by, mark, machine.steps - steps)
    return value


def _applied(machine: Machine, by: Value, value: Value, decorator: ast.expr, code: ast.AST) -> Value:
    """What a decorator gives for a function or class, which is that itself if the decorator takes too long."""
    depth, limit = len(machine.frames), machine.limit
    waits = value.node if isinstance(by, Native) and isinstance(value, Function) else None
    if waits in machine.called:
        waits = None
    if waits is not None:  # a decorator of a library does not run the function there and then
        machine.called.add(waits)
    machine.limit = min(limit, machine.steps + MOST_OF_A_DECORATOR)
    try:
        return call(machine, by, [value], {}, decorator)
    except Raised:
        return value
    except Exhausted:
        machine.heavy.add(code)
        return value
    finally:
        del machine.frames[depth:]
        machine.limit = limit
        if waits is not None:
            machine.called.discard(waits)


def _registered(machine: Machine, by: Function, mark: int, steps: int) -> None:
    """A decorator has left what it got as it was. Once it has taken too many steps for that, what it writes into, such as a registry of models,
    gets more that nobody looks at.
    """
    machine.registering[by.node] = machine.registering.get(by.node, 0) + steps
    if machine.registering[by.node] <= MOST_REGISTERED:
        return
    machine.heavy.add(by.node)
    written = {store for store, _ in machine.state.changes(mark)}
    pending: list[Any] = [*by.frame.names.values(), *by.frame.module.names.values()]
    seen: set[int] = set()
    while pending:
        one = pending.pop()
        if not isinstance(one, Object) or isinstance(one, (Class, Module)) or id(one) in seen:
            continue
        seen.add(id(one))
        pending += one.every if isinstance(one, Sequence) else one.fields.values()
        if id(one.fields) in written and isinstance(one, Sequence):
            machine.state.extend(one, Unknown("what a decorator adds"))
        elif id(one.fields) in written and isinstance(one, Table):
            machine.state.write(one.fields, REST, Unknown("what a decorator adds"))


@executes(ast.ClassDef)
def _class(machine: Machine, node: ast.ClassDef, frame: Frame) -> Flow:
    bases = [_base(evaluate(machine, base, frame)) for base in node.bases]
    cls = Class(node.name, tuple(bases) or (library.OBJECT,), None, node, machine.place(node))
    machine.extended.update(cls.mro[1:])
    body = Frame(frame.file, frame, None, cls)
    machine.frames.append(body)
    try:
        run(machine, node.body, body)
    finally:
        machine.frames.pop()
    cls.fields.update(body.names)
    for keyword in node.keywords:
        evaluate(machine, keyword.value, frame)
    prepare = cls.find("__class_made__")
    value: Value = cls
    if isinstance(prepare, Native):
        value = call(machine, prepare, [cls], {}, node)
    hook = cls.find("__init_subclass__", cls)
    if isinstance(hook, Function):
        arguments = {
            one.arg: evaluate(machine, one.value, frame)
            for one in node.keywords
            if one.arg is not None and one.arg != "metaclass"
        }
        call(machine, hook, [cls], arguments, node)
    for decorator in reversed(node.decorator_list):
        value = _decorated(machine, decorator, value, frame)
    machine.state.write(frame.outside.get(node.name, frame).names, node.name, value)
    return Flow.ON


def _base(value: Value) -> Class:
    """A base class; of one that is out of sight nothing is known but its name."""
    found = next((one for one in options(value) if isinstance(one, Class)), None)
    if found is not None:
        return found
    name = value.name if isinstance(value, External) else getattr(value, "why", "")
    return Class(f"?{name}", (library.OBJECT,))
