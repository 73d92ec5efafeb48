"""Where a program begins: a script, and then what no code of it calls, on arguments that are guessed."""

import ast
from collections.abc import Callable, Iterable

from ta_lint.dryrun.machine import guesses
from ta_lint.dryrun.machine.calling import call, make
from ta_lint.dryrun.machine.machine import ENTRIES, Exhausted, Machine, Raised
from ta_lint.dryrun.machine.reach import trains
from ta_lint.dryrun.values import Class, Function, Known, Module, Object, Unknown, Value

FRAMEWORK = "__entry__"
"""The method of a framework's class that runs an instance as the framework does."""


OF_USERS = 2
"""What is run of the files that use a file has so many times the steps of one entry."""


def run_script(machine: Machine, path: str, users: Iterable[str] = ()) -> None:
    """Run a file as a script, then the scripts that use it, and then all of its functions and methods that have not been called; at last
    those functions of its users that train.
    """
    try:
        _run(machine, path, list(users))
    finally:
        machine.give_back()


def _run(machine: Machine, path: str, users: list[str]) -> None:
    machine.program.lighten()
    module = machine.program.module(machine, path, "__main__")
    theirs = [(user, machine.program.module(machine, user, "__main__")) for user in users]
    machine.end = machine.steps + ENTRIES * machine.most
    own = _defined_in(module, path)
    train = [value for value in own if trains(machine, value)]
    others = [value for value in own if not trains(machine, value)]
    for value in [*reversed(train), *others]:  # what calls stands below what it calls
        _enter(machine, value)
    machine.end = machine.steps + OF_USERS * machine.most
    for user, used in theirs:
        for value in reversed(_defined_in(used, user)):
            if trains(machine, value):
                _enter(machine, value)


def _enter(machine: Machine, value: Value) -> None:
    """Run a function, or the methods of a class, with what it builds for itself."""
    machine.own, known = len(machine.optimizers), len(machine.modules_switched)
    if isinstance(value, Class):
        enter_class(machine, value)
    elif isinstance(value, Function):
        enter(machine, value, None)
    del machine.optimizers[machine.own :]
    for one in [*machine.modules_switched][known:]:
        del machine.modules_switched[one]


def _defined_in(module: Module, path: str) -> list[Value]:
    return [value for value in module.fields.values() if _is_of(value, path)]


def _is_of(value: Value, path: str) -> bool:
    """Whether it is a function or class that a file defines."""
    if isinstance(value, Class):
        return value.node is not None and value.made is not None and value.made.file == path
    return isinstance(value, Function) and value.frame.file == path


def enter_class(machine: Machine, cls: Class) -> None:
    """Run the methods that nobody has called, on an instance that nobody has made: first as a framework calls them, then each."""
    methods = [one for one in cls.fields.values() if isinstance(one, Function) and one.name != "__init__"]
    left = [one for one in methods if one.node not in machine.called]
    if not left:
        return
    framework = cls.find(FRAMEWORK)
    runs = framework is not None and len(left) == len(methods)
    machine.outline = not runs and not trains(machine, cls)
    instance = _guarded(machine, lambda: _instance(machine, cls))
    machine.outline = False
    if instance is None:
        return
    if framework is not None and runs:
        _enter_framework(machine, cls, framework, instance)
    for one in left:
        if one.node not in machine.called:
            enter(machine, one, instance)


def _enter_framework(machine: Machine, cls: Class, framework: Value, instance: Value) -> None:
    """Run an instance as its framework does; what the framework itself does happens at the class."""
    assert cls.node is not None
    assert cls.made is not None
    node, frame = cls.node, machine.program.frame(cls.made.file)

    def run() -> Value:
        machine.frames.append(frame)
        return call(machine, framework, [instance], {}, node)

    machine.entry = cls
    try:
        _guarded(machine, run)
    finally:
        machine.entry = None


def enter(machine: Machine, function: Function, receiver: Value | None) -> None:
    """Run a function that nobody has called."""
    if function.node in machine.called:
        return
    args = [] if receiver is None else [receiver]

    def run() -> Value:
        machine.frames.append(function.frame.module)
        machine.program.entered(machine)
        given = guesses.arguments(machine, function, skip=len(args))
        result = call(machine, function, args, given, function.node, loose=True)
        if not isinstance(result, Known | Unknown):
            machine.emit("returned", function.node, result)
        return result

    machine.entry = function
    machine.outline = not trains(machine, function)
    try:
        _guarded(machine, run)
    finally:
        machine.entry, machine.outline = None, False


def _instance(machine: Machine, cls: Class) -> Value:
    if cls.made is not None:
        machine.frames.append(machine.program.frame(cls.made.file))  # what its base classes do happens there
    start = cls.find("__init__")
    given = guesses.arguments(machine, start, skip=1) if isinstance(start, Function) else {}
    made = make(machine, cls, [], given, cls.node or ast.Pass(), loose=True)
    return made if isinstance(made, Object) else Object(cls)


def _guarded(machine: Machine, run: Callable[[], Value]) -> Value | None:
    """An entry has steps of its own, and begins with no condition and no loop around it."""
    machine.start()
    depth = len(machine.frames)
    try:
        return run()
    except (Raised, Exhausted, RecursionError) as error:
        machine.break_off(error)
        return None
    finally:
        del machine.frames[depth:]
        machine.passes = []
        if not machine.frames:
            machine.state.forget()
