"""Calls: of functions of the program, of classes, of what stubs describe, and of what is out of sight."""

import ast
import traceback
from functools import partial
from pathlib import Path

from ta_lint.dryrun.flow import Flow
from ta_lint.dryrun.machine import library, sizes
from ta_lint.dryrun.machine.call import Call, Misfit
from ta_lint.dryrun.machine.frame import Frame
from ta_lint.dryrun.machine.last_batches import ADDED, used
from ta_lint.dryrun.machine.machine import Machine, Raised
from ta_lint.dryrun.machine.memo import Arguments
from ta_lint.dryrun.machine.raising import finish
from ta_lint.dryrun.machine.tables import evaluate, run
from ta_lint.dryrun.sources import passed_on, read_of
from ta_lint.dryrun.streams import Consumer, Stream
from ta_lint.dryrun.values import (
    DATA,
    NONE,
    REST,
    Bound,
    Choice,
    Class,
    External,
    Function,
    Known,
    Native,
    Object,
    Sequence,
    Table,
    Unknown,
    Value,
    cuts_of,
    each_in,
    is_data,
    join,
    joined,
)

ANY = "**"
"""The keyword of a value that any argument may have, as those of `f(**values)` whose names are not known."""
STUB = ".stub"
"""How the file of a library's program ends."""
MOST_DEEP = 40
"""Calls of the program's functions inside of one another."""


class Stopped(Exception):
    """What goes over a generator has left its loop."""

    def __init__(self, flow: Flow) -> None:
        super().__init__()
        self.flow = flow


def call(
    machine: Machine,
    function: Value,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
    *,
    loose: bool = False,
) -> Value:
    """The value of a call, which does what it does.

    Raises:
        Raised: it certainly raises an exception of the program.
    """
    machine.step()
    if isinstance(function, Bound):
        runs = _runs(machine, function)
        if runs is not None:
            return native(runs, Call(machine, node, [function.receiver, *args], kwargs, loose))
        return call(machine, function.function, [function.receiver, *args], kwargs, node, loose=loose)
    if isinstance(function, Function):
        return _of_the_program(machine, function, args, kwargs, node, loose)
    if isinstance(function, Native):
        return native(function, Call(machine, node, args, kwargs, loose, function.name))
    if isinstance(function, Class):
        return make(machine, function, args, kwargs, node, loose=loose)
    if isinstance(function, Choice):
        return _one_of(machine, function, args, kwargs, node, loose)
    if isinstance(function, Object):
        machine.memo.named("__call__")
        method = function.cls.find("__call__")
        if method is not None:
            return call(machine, method, [function, *args], kwargs, node, loose=loose)
    given = [*args, *kwargs.values()]
    passed_on(given)
    if isinstance(function, Unknown) and is_data(function):  # it may run a function, and hand on what it gets
        hand_over(machine, [one for one in given if isinstance(one, Function)], function.why, node)
        read = read_of(function)
        source = None if read is None else read.result(args, machine.place(node))
        kind = DATA if all(map(_is_plain, each_in(given))) else None
        shape = None if function.shape is None else sizes.of_call(function.shape, args)
        return Unknown(function.why, kind, cuts=cuts_of(function, *given), source=source, shape=shape)
    if isinstance(function, Unknown):
        function.parts.setdefault("__call__", Unknown(function.why))
        given = [*([] if function.of is None else [function.of]), *given]
    name = (
        function.name
        if isinstance(function, External)
        else getattr(function, "why", "") or "a value that is not known"
    )
    used(machine, given, node, ADDED)
    hand_over(machine, given, name, node)
    why = f"{name} is out of sight" if isinstance(function, External) else name
    shape = getattr(function, "shape", None)
    return Unknown(why, got=tuple(given), shape=None if shape is None else sizes.of_call(shape, args))


def _one_of(
    machine: Machine,
    function: Choice,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
    loose: bool,
) -> Value:
    """The value of a call of one of several functions. What some of them give is out of sight where another may give anything instead."""
    given: list[Value] = []

    def together(arm: list[Value]) -> Value:
        found = [call(machine, one, list(args), dict(kwargs), node, loose=loose) for one in arm]
        given.extend(found)
        return joined(found)

    arms = _arms(machine, function)
    is_one = len(arms[0]) == len(function.options)
    result = together(arms[0]) if is_one else machine.choose([partial(together, arm) for arm in arms])
    if isinstance(result, Unknown):
        hand_over(machine, [one for one in given if isinstance(one, Object)], result.why, node)
    return result


def _arms(machine: Machine, function: Choice) -> list[list[Value]]:
    """The functions of a choice, each on a path of its own. Methods of a library that belong to alternatives share one: what one of them does
    is done to the one object there is.
    """
    arms: list[list[Value]] = []
    for one in function.options:
        of_library = isinstance(one, Bound) and isinstance(one.function, Native)
        is_method = of_library or (isinstance(one, Bound) and one.receiver in machine.optimizers)
        shared = (arm for arm in arms if is_method and machine.are_alternatives(_receivers([*arm, one])))
        if (arm := next(shared, None)) is not None:
            arm.append(one)
        elif one != NONE:
            arms.append([one])
    return arms


def _receivers(methods: list[Value]) -> list[Value]:
    """Whose methods these are."""
    return [one.receiver if isinstance(one, Bound) else one for one in methods]


def _runs(machine: Machine, method: Bound) -> Native | None:
    """What a library does to run an object of a class of its own, if this is the method that the program has for that, called by its name."""
    own = method.receiver
    if (
        not isinstance(method.function, Function)
        or method.function.name != "forward"
        or own in machine.layers
    ):
        return None
    runs = own.cls.find("__runs__") if isinstance(own, Object) else None
    is_last = isinstance(own, Object) and own.cls.find("forward") is method.function
    return runs if isinstance(runs, Native) and is_last else None


def native(function: Native, made: Call) -> Value:
    """What a function of a library gives."""
    try:
        return function.run(made)
    except Misfit:  # it gets another object than it takes
        pass
    except LookupError as error:  # too little, or an object that was not made whole; or a bug of the stub
        made.machine.misfits.setdefault(function.name, _where(error))
    return Unknown(f"{function.name} gets something else than it takes")


def _where(error: LookupError) -> str:
    """The line of a stub that does not find what it looks for, and what that is."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(last.filename).stem}:{last.lineno} {type(error).__name__}: {error}"


def _is_plain(value: Value) -> bool:
    """Whether a value certainly is no tensor."""
    return isinstance(value, (External, Function)) or value == NONE or is_data(value)


def hand_over(
    machine: Machine, values: "list[Value]", name: str, node: ast.AST, seen: set[int] | None = None
) -> None:
    """Code out of sight gets these values, and may change what they hold: each container once, however many hold it."""
    seen = set() if seen is None else seen
    for value in values:
        if isinstance(value, (Sequence, Table)):
            if id(value) in seen:
                continue
            seen.add(id(value))
        if isinstance(value, Object) and (escape := value.cls.find("__handed_over__")) is not None:
            assert isinstance(escape, Native)
            native(escape, Call(machine, node, [value, Known(name)]))
        elif isinstance(value, Sequence):
            hand_over(machine, list(value.items), name, node, seen)
            if value.cls is not library.TUPLE:
                machine.state.extend(value, Unknown(f"{name} may add to it"))
        elif isinstance(value, Bound) and isinstance(value.function, Native):
            perhaps(machine, value, node)
        elif isinstance(value, Choice):
            hand_over(machine, [one for one in value.options if isinstance(one, Object)], name, node, seen)
        elif isinstance(value, Table):
            parts = [one for one in value.fields.values() if isinstance(one, Value)]
            hand_over(machine, parts, name, node, seen)
            machine.state.write(value.fields, REST, Unknown(f"{name} may change it"))
        elif isinstance(value, Function) and value.node not in machine.called:
            perhaps(machine, value, node)
        elif (isinstance(value, Object) and value.cls.node is not None) or value in machine.followed:
            machine.emit("hand over", node, value, by=Known(name))


def perhaps(machine: Machine, function: Value, node: ast.AST, *args: Value) -> Value:
    """A function that code out of sight gets runs perhaps, with these arguments and others that nobody knows: what it gives if it does."""
    machine.memo.spoil()
    given: list[Value] = [NONE]

    def arm() -> Flow:
        given.append(call(machine, function, list(args), {}, node, loose=True))
        return Flow.ON

    machine.branch([arm, lambda: Flow.ON])
    return given[-1]


def make(
    machine: Machine,
    cls: Class,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
    *,
    loose: bool = False,
) -> Value:
    """An instance of a class."""
    start = cls.find("__init__")
    if cls.node is not None:
        machine.memo.named("__init__")
        machine.memo.named("__new__")
    if (
        machine.outline
        and cls.node is not None
        and isinstance(start, Function)
        and start.node in machine.called
    ):
        return outlined(machine, cls, node)
    creator = cls.find("__new__")
    if isinstance(creator, Native):
        made = native(creator, Call(machine, node, [cls, *args], kwargs, loose))
    elif creator is not None:
        made = call(machine, creator, [cls, *args], kwargs, node, loose=loose)
    else:
        made = Object(cls, machine.place(node))
    if isinstance(made, Object) and made.cls.is_a(cls):
        if start is not None:
            call(machine, start, [made, *args], kwargs, node, loose=loose)
        elif cls.out_of_sight:
            hand_over(machine, [*args, *kwargs.values()], cls.name, node)
        given = (one for one in (*args, *kwargs.values()) if isinstance(one, Object))
        if any(one in machine.modules_switched for one in given):
            machine.ready.setdefault(cls, made)
        if cls.node is not None and not machine.doubt:
            machine.instances.setdefault(cls, made)
    return made


def outlined(machine: Machine, cls: Class, node: ast.AST) -> Object:
    """An instance of a class of which another has been made before: nobody looks into it."""
    creator = cls.find("__outline__")
    made = creator.run(Call(machine, node, [cls])) if isinstance(creator, Native) else None
    return made if isinstance(made, Object) else Object(cls, machine.place(node))


def _of_the_program(
    machine: Machine,
    function: Function,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
    loose: bool,
) -> Value:
    if machine.outline and function.node in machine.called and not function.frame.file.endswith(STUB):
        return Unknown(f"{function.name} has run before")
    machine.called.add(function.node)
    if machine.modes["recording"] is not True:
        machine.unrecorded.add(function)
    stub = function.frame.file.endswith(STUB)
    generates = machine.program.yields(function.frame.file, function.node)
    arguments = (
        None
        if stub or generates or function.within or function.after is not None
        else machine.memo.arguments(function, args, kwargs, loose=loose)
    )
    if arguments is not None and (known := machine.memo.recall(function, arguments)) is not None:
        return known
    deep, again = 0, set()
    for one in machine.frames:
        if one.function is not None:
            deep += 1
            if one.function.node is function.node:
                again.add(id(one))
    if deep > MOST_DEEP or len(again) > 1:
        machine.memo.spoil()
        return Unknown("calls are too deep" if deep > MOST_DEEP else f"{function.name} calls itself")
    frame = Frame(function.frame.file, function.frame, function, function.owner)
    bind(frame, function, args, kwargs, loose)
    frame.call = machine.place(node)
    for loop in machine.passes:
        loop.inside.add(id(frame.names))
    if stub:
        frame.site = frame.call
    if generates:
        return Stream(
            library.STREAM,
            lambda consumer: _generate(machine, frame, function, consumer),
            None,
            machine.place(node),
            settles=False,
        )
    if arguments is not None:
        return _remembered(machine, frame, function, arguments)
    made = Call(machine, node, args, kwargs, loose, function.name)
    return _within(made, frame, function) if function.within else _whole(made, frame, function)


def _remembered(machine: Machine, frame: Frame, function: Function, arguments: Arguments) -> Value:
    """What a function gives, for calls with the same arguments as well."""
    recording = machine.memo.begin(function, arguments, frame)
    result: Value | None = None
    try:
        result = execute(machine, frame, function)
    finally:
        machine.memo.end(recording, result)
    return result


def _whole(made: Call, frame: Frame, function: Function) -> Value:
    """The body of a function, and what a library does after it."""
    result = execute(made.machine, frame, function)
    if function.after is not None:
        function.after(made)
    return result


def _within(made: Call, frame: Frame, function: Function) -> Value:
    """A function whose decorators are context managers."""
    machine, node = made.machine, made.node
    for manager in function.within:
        enter(machine, manager, node)
    results: list[Value] = []

    def body() -> Flow:
        results.append(_whole(made, frame, function))
        return Flow.ON

    def final() -> Flow:
        for manager in reversed(function.within):
            leave(machine, manager, node)
        return Flow.ON

    finish(machine, body, final)
    return results[0]


def enter(machine: Machine, manager: Object, node: ast.AST) -> Value:
    """What `with manager as value` binds."""
    method = manager.cls.find("__enter__")
    return manager if method is None else call(machine, method, [manager], {}, node)


def leave(machine: Machine, manager: Object, node: ast.AST) -> None:
    """The `with` statement ends."""
    method = manager.cls.find("__exit__")
    if method is not None:
        call(machine, method, [manager, NONE, NONE, NONE], {}, node)


def execute(machine: Machine, frame: Frame, function: Function) -> Value:
    """Run the body of a function whose arguments are bound, and return what it returns."""
    doubt = machine.doubt
    frame.mark = machine.state.mark
    machine.frames.append(frame)
    passes, machine.passes = machine.passes, list(machine.passes)
    try:
        if isinstance(function.node, ast.Lambda):
            return evaluate(machine, function.node.body, frame)
        if not function.node.body:
            machine.program.restore(function.frame.file, function.node)
        flow = run(machine, function.node.body, frame)
        machine.state.meet(frame.mark, flow, frame.exits)
        if flow is Flow.ON:
            frame.returned.append(NONE)
        return joined(frame.returned)
    finally:
        machine.frames.pop()
        machine.passes = passes
        machine.doubt = doubt


def _generate(machine: Machine, frame: Frame, function: Function, consumer: Consumer) -> Flow:
    """Run a generator: what it yields goes to the consumer, there and then."""
    depth, passes = len(machine.frames), list(machine.passes)
    frame.consumer = consumer
    try:
        execute(machine, frame, function)
    except Stopped as stopped:
        if frame.consumer is not consumer:
            raise
        del machine.frames[depth:]
        machine.passes = passes
        return stopped.flow
    return Flow.ON


def bind(frame: Frame, function: Function, args: list[Value], kwargs: dict[str, Value], loose: bool) -> None:
    """Bind the parameters of a function to the arguments of a call."""
    parameters = function.node.args
    names = [one.arg for one in (*parameters.posonlyargs, *parameters.args)]
    if names and args and function.owner is not None:
        frame.receiver = args[0]
    frame.names.update(zip(names, args, strict=False))
    left = dict(kwargs)
    further = left.pop(ANY, None)
    for name in (*names[len(args) :], *(one.arg for one in parameters.kwonlyargs)):
        default = function.defaults.get(name)
        if name in left:
            frame.names[name] = left.pop(name)
        elif loose and further is not None:
            frame.names[name] = further if default is None else join(default, further)
        elif loose:
            frame.names[name] = Unknown(f"the argument {name} of {function.name}")
        else:
            frame.names[name] = default or Unknown(f"the argument {name} of {function.name}")
    if parameters.vararg is not None:
        rest = Unknown("further arguments") if loose and further is None else None
        frame.names[parameters.vararg.arg] = Sequence(library.TUPLE, tuple(args[len(names) :]), rest)
    if parameters.kwarg is not None:
        table = Table(library.DICT, None, dict(left))
        if loose:
            table.fields[REST] = further or Unknown("further arguments")
        frame.names[parameters.kwarg.arg] = table


def attempt(machine: Machine, function: Value, args: list[Value], node: ast.AST) -> Value:
    """The value of a call that may raise."""
    try:
        return call(machine, function, args, {}, node)
    except Raised:
        return Unknown("it raises")
