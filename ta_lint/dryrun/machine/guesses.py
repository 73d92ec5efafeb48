"""The arguments of a function that nobody calls: guessed from annotations, defaults, what is asked of them, and names."""

import ast

from ta_lint.dryrun.machine import library
from ta_lint.dryrun.machine.asked import asked_of
from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.machine.tables import evaluate
from ta_lint.dryrun.values import (
    NONE,
    Choice,
    Class,
    Function,
    Known,
    Object,
    Sequence,
    Setting,
    Table,
    Unknown,
    Value,
)


def arguments(machine: Machine, function: Function, skip: int) -> dict[str, Value]:
    """A value for each parameter after the first `skip`: its default, or what its annotation, its use or its name says."""
    parameters = function.node.args
    every = [*parameters.posonlyargs, *parameters.args][skip:] + parameters.kwonlyargs
    given: dict[str, Value] = {}
    for one in every:
        default = function.defaults.get(one.arg)
        if isinstance(default, (Known, Class, Function)) and default != NONE:
            given[one.arg] = Setting(default.value) if isinstance(default, Known) else default
            continue
        asked = asked_of(function, one.arg)
        guessed = machine.program.guess(machine, one.arg, _words(machine, function, one.annotation), asked)
        given[one.arg] = guessed or _anything(one.arg, default)
    return given


def _anything(name: str, default: Value | None) -> Value:
    """Of an argument whose default is None, or empty, that and anything else: who needs it gives it."""
    something = Unknown(f"the argument {name}")
    if default is None:
        return something
    is_empty = isinstance(default, (Table, Sequence)) and not _inside(default)
    return Choice((default, something)) if default == NONE or is_empty else _settings(default)


def _settings(default: Value) -> Value:
    """A default that a library made of texts alone, as `torch.device("cpu")` is: who calls may pass one of others."""
    if type(default) is not Object or default.cls.node is not None or not default.fields:
        return default
    texts = [(name, one) for name, one in default.fields.items() if isinstance(one, Known)]
    if len(texts) < len(default.fields) or not all(isinstance(one.value, str) for _, one in texts):
        return default
    return Object(default.cls, default.made, {name: Setting(one.value) for name, one in texts})


def _inside(container: Table | Sequence) -> list[Value]:
    return list(container.every) if isinstance(container, Sequence) else list(container.fields.values())


def _words(machine: Machine, function: Function, annotation: ast.expr | None) -> str:
    """The text of an annotation; of a class of modules, whatever its name is, that it is one."""
    if annotation is None:
        return ""
    if isinstance(annotation, (ast.Name, ast.Attribute)):
        cls, module = evaluate(machine, annotation, function.frame), library.find("torch.nn.Module")
        if isinstance(cls, Class) and isinstance(module, Class) and cls.is_a(module):
            return "Module"
    return ast.unparse(annotation)
