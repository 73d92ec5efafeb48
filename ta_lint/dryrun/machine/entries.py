"""Where a program begins: a script, and then what no code of it calls, on arguments that are guessed."""

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ta_lint.dryrun.machine import guesses
from ta_lint.dryrun.machine.asked import called_names, called_on_own
from ta_lint.dryrun.machine.calling import STUB, call, make
from ta_lint.dryrun.machine.frame import Pass
from ta_lint.dryrun.machine.library import CLASSMETHOD, STATICMETHOD
from ta_lint.dryrun.machine.machine import ENTRIES, Exhausted, Machine, Raised
from ta_lint.dryrun.machine.reach import averages, trains
from ta_lint.dryrun.values import NONE, Class, Function, Known, Module, Object, Place, Value

FRAMEWORK = "__entry__"
"""The method of a framework's class that runs an instance as the framework does."""

WRAPPERS = (STATICMETHOD, CLASSMETHOD)

OF_STATES = frozenset({"hand over", "load", "move", "save"})
"""What happens to the states of models."""
PASSES = 2
"""Calls that show what grows from one to the next."""


def run_script(machine: Machine, path: str) -> None:
    """Run a file as a script, and then all of its functions and methods that have not been called, first those that train."""
    try:
        _run(machine, path)
    finally:
        machine.give_back()


def _run(machine: Machine, path: str) -> None:
    machine.program.lighten()
    module = machine.program.module(machine, path, "__main__")
    if not machine.modes["recording"]:
        machine.set_by_script = {"recording": None}
    machine.end = machine.steps + ENTRIES * machine.most
    own = _in_order(_defined_in(module, path))
    train = [value for value in own if trains(machine, value)]
    others = [value for value in own if not trains(machine, value)]
    for value in train:
        _enter(machine, value)
    machine.trained = len(machine.events)
    for value in others:
        _enter(machine, value)
    for cls, instance in [*machine.instances.items()]:
        if not _is_of(cls, path) and cls.made is not None and not cls.made.file.endswith(STUB):
            _enter(machine, cls, instance)


def _enter(machine: Machine, value: Value, instance: Object | None = None) -> None:
    """Run a function, or the methods of a class, perhaps of this object, with what it builds for itself."""
    machine.own, known = len(machine.optimizers), len(machine.modules_switched)
    if isinstance(value, Class):
        enter_class(machine, value, instance)
    elif isinstance(value, Function):
        enter(machine, value, None)
    del machine.optimizers[machine.own :]
    for one in [*machine.modules_switched][known:]:
        del machine.modules_switched[one]


def _defined_in(module: Module, path: str) -> list[Value]:
    return [value for value in module.fields.values() if _is_of(value, path)]


def _in_order(values: list[Value]) -> list[Value]:
    """Functions and classes in the order in which they run: what calls stands below what it calls, and what makes an object is before its
    class.
    """
    classes = {one.name for one in values if isinstance(one, Class)}
    makes = [one for one in values if isinstance(one, Function) and not called_names(one).isdisjoint(classes)]
    return [*reversed(makes), *(one for one in reversed(values) if one not in makes)]


def _is_of(value: Value, path: str) -> bool:
    """Whether it is a function or class that a file defines."""
    if isinstance(value, Class):
        return value.node is not None and value.made is not None and value.made.file == path
    return isinstance(value, Function) and value.frame.file == path


def enter_class(machine: Machine, cls: Class, given: Object | None = None) -> None:
    """Run the methods that nobody has called, on an instance that nobody has made: first as a framework calls them, then each, those that
    others call last. On an instance that is given, `forward` does not run by itself, as it is the call of the module.
    """
    methods = _methods(machine, cls)
    left = [
        one for one in methods if one.node not in machine.called and (given is None or one.name != "forward")
    ]
    start = cls.find("__init__")
    if not left and not (isinstance(start, Function) and start.node not in machine.called):
        return
    framework = cls.find(FRAMEWORK)
    runs = framework is not None and len(left) == len(methods)
    machine.outline = not runs and not any(trains(machine, one) for one in (cls, *methods))
    made = given or machine.ready.get(cls) or (machine.instances.get(cls) if machine.outline else None)
    machine.guessing = made is None
    starts = [start] if isinstance(start, Function) else []
    with _for_want_of(machine, starts or methods):
        instance = made or _guarded(machine, lambda: _instance(machine, cls))
    machine.outline = machine.guessing = False
    if instance is None:
        return
    if framework is not None and runs:
        with _for_want_of(machine, [*starts, *methods]):
            _enter_framework(machine, cls, framework, instance)
    inner = frozenset().union(*map(called_on_own, methods))
    for one in sorted(left, key=lambda one: one.name in inner):
        if one.node not in machine.called:
            enter(machine, one, _receiver(cls, one, instance))
    if isinstance(instance, Object) and machine.program.keeps_states(instance):
        with _for_want_of(machine, [*starts, *methods]):
            _enter_again(machine, cls, [one for one in left if cls.fields.get(one.name) is one], instance)


@contextmanager
def _for_want_of(machine: Machine, functions: list[Function]) -> Iterator[None]:
    """What happens here happens since nobody in the script calls some of these functions."""
    begin = len(machine.events)
    yield
    machine.guesses.append((frozenset(functions), begin, len(machine.events)))


def _methods(machine: Machine, cls: Class) -> list[Function]:
    """The methods of a class, before those that it has of the program's classes that it derives from and that train: what one of these
    leaves to its subclasses is there then.
    """
    fields = {
        name: value
        for one in reversed(cls.mro)
        if one.node is not None and one.made is not None and not one.made.file.endswith(STUB)
        for name, value in one.fields.items()
        if name != "__init__"
    }
    own = [value for name, value in fields.items() if name in cls.fields]
    others = [value for name, value in fields.items() if name not in cls.fields]
    inherited = (one for one in map(_function, others) if one is not None and trains(machine, one))
    return [*(found for one in own if (found := _function(one)) is not None), *inherited]


def _function(value: Value) -> Function | None:
    """The function of a method, of a static one as well."""
    inner = value.fields["function"] if isinstance(value, Object) and value.cls in WRAPPERS else value
    return inner if isinstance(inner, Function) else None


def _receiver(cls: Class, function: Function, instance: Value) -> Value | None:
    """What a method gets as its first argument: a static one gets none."""
    wrapped = cls.find(function.name)
    if not isinstance(wrapped, Object) or wrapped.cls not in WRAPPERS:
        return instance
    return cls if wrapped.cls is CLASSMETHOD else None


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
        machine.program.entered(machine, receiver)
        if function.owner is not None and function.owner.find(FRAMEWORK) is not None:
            machine.state.write(machine.modes, "in sight", None)  # the framework calls it
        given = guesses.arguments(machine, function, skip=len(args))
        result = call(machine, function, args, given, function.node, loose=True)
        if not isinstance(result, Known) and getattr(result, "got", True):
            machine.emit("returned", function.node, result)
        return result

    machine.entry = function
    machine.outline = not trains(machine, function)
    try:
        with _for_want_of(machine, [function]):
            _guarded(machine, run)
            machine.outline = False
            if averages(machine, function):
                before = len(machine.events)
                _guarded(machine, lambda: _repeated(machine, function, run))
                machine.events[before:] = [one for one in machine.events[before:] if one.action == "growth"]
    finally:
        machine.entry, machine.outline = None, False


def _repeated(machine: Machine, function: Function, run: Callable[[], Value]) -> Value:
    """Call a function again and again, to see what grows with each call."""
    now = Pass(Place(function.frame.file, function.node), -1, None, start=machine.state.mark)
    for _ in range(PASSES):
        now.number += 1
        now.mark, now.events = machine.state.mark, len(machine.events)
        machine.passes = [now]
        run()
    machine.program.passed(machine, now)
    return NONE


def _instance(machine: Machine, cls: Class) -> Value:
    if cls.made is not None:
        machine.frames.append(machine.program.frame(cls.made.file))  # what its base classes do happens there
    start = cls.find("__init__")
    given = guesses.arguments(machine, start, skip=1) if isinstance(start, Function) else {}
    made = make(machine, cls, [], given, cls.node or ast.Pass(), loose=True)
    return made if isinstance(made, Object) else Object(cls)


def _enter_again(machine: Machine, cls: Class, methods: list[Function], instance: Value) -> None:
    """Call the methods of an object again and again, in both orders, to see what becomes of the states of models that it keeps. Who calls them
    gives the same things under the same names.
    """
    given = {
        name: value for one in methods for name, value in guesses.arguments(machine, one, skip=1).items()
    }

    def run() -> Value:
        now = Pass(Place(methods[0].frame.file, cls.node or ast.Pass()), -1, None)
        for order in (methods, methods[::-1]):
            now.number += 1
            machine.passes = [now]
            for one in order:
                machine.frames.append(one.frame.module)
                named = {name: given[name] for name in guesses.arguments(machine, one, skip=1)}
                call(machine, one, [instance], named, one.node, loose=True)
                machine.frames.pop()
        return NONE

    before, machine.entry = len(machine.events), cls
    _guarded(machine, run)
    machine.entry = None
    machine.events[before:] = [one for one in machine.events[before:] if one.action in OF_STATES]


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
