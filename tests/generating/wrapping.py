"""What steps are inside of: branches, loops, functions, context managers."""

from collections.abc import Callable

from generating.models import UNSURE
from generating.steps import Scope, mode, unit
from generating.writer import Lines, indented, renamed

Wrapper = Callable[[Scope, Lines, int], Lines]


def block(scope: Scope, count: int, deep: int = 0) -> Lines:
    """Some steps, each perhaps inside of something."""
    lines: Lines = []
    for _ in range(1 + scope.w.number(count - 1)):
        lines += wrapped(scope, unit(scope), deep)
    return lines


def wrapped(scope: Scope, lines: Lines, deep: int) -> Lines:
    """The lines inside of a branch, a loop, a function, ..."""
    w = scope.w
    if deep >= 2 or not w.sometimes():
        return lines
    return w.pick(*WRAPPERS)(scope, lines, deep)  # type: ignore[no-any-return]


def if_known(scope: Scope, lines: Lines, deep: int) -> Lines:
    test = scope.w.pick("FLAG", "not FLAG", "step == 0", "step % 2 == 0", "step > 1", "EVERY > 1 and FLAG", "FLAG or EVERY == 2", "x.shape[0] == 2", f"isinstance({scope.models[0]}, nn.Module)",
                        f"hasattr({scope.models[0]}, 'weight')", f"{scope.models[0]} is not None", "step in (0, 2)", "EVERY in {1: 'a', 2: 'b'}", "0 < EVERY < 3")  # fmt: skip
    other = ["else:", *indented(wrapped(scope, unit(scope), deep + 1))] if scope.w.sometimes(3) else []
    return [f"if {test}:", *indented(wrapped(scope, lines, deep + 1)), *other]


def if_unsure(scope: Scope, lines: Lines, deep: int) -> Lines:
    other = ["else:", *indented(wrapped(scope, unit(scope), deep + 1))] if scope.w.sometimes() else []
    return [f"if {scope.w.pick(*UNSURE)}:", *indented(wrapped(scope, lines, deep + 1)), *other]


def in_loop(scope: Scope, lines: Lines, deep: int) -> Lines:
    w = scope.w
    inner = wrapped(scope, lines, deep + 1)
    if w.sometimes(3):
        at = w.pick("if again == 1:", f"if {w.pick(*UNSURE)}:", "if FLAG:")
        leave = [at, f"    {w.pick('break', 'continue')}"]
        inner = (
            [*leave, *inner] if w.sometimes() else [*inner, *leave, *(unit(scope) if w.sometimes(3) else [])]
        )
    head = w.pick("for again in range(2):", "for again in range(1):", "for again in range(5):", "for again in (1, 2, 3):", "for again in [0]:", "for again in range(step):", "for again, _ in enumerate('ab'):",
                  "for again in reversed(range(3)):", "for again in sorted({2, 1}):", "for again in range(0, 4, 2):", "for again in range(EVERY):")  # fmt: skip
    if w.sometimes(4):
        return [
            "again = 0",
            f"while again < {w.pick('2', '1', 'EVERY', '4')}:",
            *indented(["again += 1", *inner]),
        ]
    tail = ["else:", *indented(unit(scope))] if w.sometimes(6) else []
    return [head, *indented(inner), *tail]


def in_try(scope: Scope, lines: Lines, deep: int) -> Lines:
    w = scope.w
    inner = wrapped(scope, lines, deep + 1)
    kind = w.number(4)
    if kind == 0:
        return ["try:", *indented(inner), "finally:", *indented(mode(scope))]
    if kind == 1:
        return ["try:", *indented(inner), "except ZeroDivisionError:", *indented(unit(scope))]
    if kind == 2:
        return [
            "try:",
            *indented([*inner, f"if {w.pick(*UNSURE)}:", "    raise KeyError('late')"]),
            "except KeyError:",
            *indented(mode(scope)),
        ]
    if kind == 3:
        return [
            "try:",
            *indented([f"if {w.pick(*UNSURE, 'FLAG')}:", "    raise KeyError('early')", *inner]),
            "except (KeyError, ValueError) as error:",
            *indented(mode(scope)),
            "else:",
            *indented(mode(scope)),
        ]
    return [
        "with contextlib.suppress(KeyError):",
        *indented([*inner, f"if {w.pick(*UNSURE)}:", "    raise KeyError('late')", *mode(scope)]),
    ]


def in_function(scope: Scope, lines: Lines, deep: int) -> Lines:
    """A function that gets all that it needs, or some of it."""
    w = scope.w
    name, inner = w.fresh("train"), wrapped(scope, lines, deep + 1)
    given = {one: w.fresh("net") for one in scope.models if w.sometimes()}
    given |= {one: w.fresh("opt") for one in scope.optimizers if w.sometimes()}
    if w.sometimes(3):
        at = w.number(len(inner))
        while 0 < at < len(inner) and inner[at].startswith((" ", "else", "except", "finally")):
            at += 1
        inner = [
            *inner[:at],
            f"if {w.pick(*UNSURE, 'step == 0', 'FLAG')}:",
            f"    {w.pick('return', 'return None', 'return x, y')}",
            *inner[at:],
        ]
    inner = renamed(inner, given)
    names = ["x", "y", "step", *given.values()]
    kind = w.number(6)
    positional = ", ".join(["x", "y", "step", *given])
    named = ", ".join(f"{new}={old}" for old, new in given.items())
    decorator: Lines = []
    if w.sometimes(5):
        wrapper = w.fresh("logged")
        w.define(f"def {wrapper}(function):", *indented([w.pick("@functools.wraps(function)", "# plain"), "def inner(*args, **kwargs):", *indented(w.pick(["return function(*args, **kwargs)"],
                 ["result = function(*args, **kwargs)", "return result"], ["for _ in range(2):", "    result = function(*args, **kwargs)", "return result"],
                 ["if FLAG:", "    return function(*args, **kwargs)"])), "return inner"]))  # fmt: skip
        decorator = [f"@{wrapper}"]
    if kind == 1:
        lines = [*decorator, f"def {name}(*, {', '.join(names)}):", *indented(inner)]
        call = f"{name}(x=x, y=y, step=step{', ' + named if named else ''})"
    elif kind == 2:
        lines = [*decorator, f"def {name}(*args):", *indented([f"{', '.join(names)} = args", *inner])]
        call = w.pick(
            f"{name}({positional})",
            f"{name}(*({positional}))",
            f"{name}(x, *[y, step{', ' + ', '.join(given) if given else ''}])",
        )
    elif kind == 3:
        lines = [*decorator, f"def {name}({', '.join(names)}):", *indented(inner)]
        call = w.pick(
            f"functools.partial({name}, x)({', '.join(positional.split(', ')[1:])})",
            f"functools.partial({name}, step=step{', ' + named if named else ''})(x, y)",
            f"(lambda a, b: {name}(a, b, {', '.join(['step', *given])}))(x, y)",
        )
    elif kind == 4:
        call, lines = _by_object(scope, name, names, given, inner)
    elif kind == 5:
        options = ", ".join(
            f"'{new}': {old}"
            for new, old in [("x", "x"), ("y", "y"), ("step", "step"), *((b, a) for a, b in given.items())]
        )
        lines = [*decorator, f"def {name}({', '.join(names)}):", *indented(inner)]
        call = f"{name}(**{{{options}}})"
    elif kind == 6:
        lines = (
            [f"def {name}({', '.join(names)}):", *indented(["yield 0", *(line for line in inner), "yield 1"])]
            if not any("return x" in line for line in inner)
            else [f"def {name}({', '.join(names)}):", *indented(inner)]
        )
        if lines[1].strip() == "yield 0":
            call = w.pick(
                f"for _ in {name}({positional}): pass",
                f"list({name}({positional}))",
                f"found = sum({name}({positional}))",
                f"next({name}({positional}))",
                f"found = [one for one in {name}({positional}) if one]",
            )
        else:
            call = f"{name}({positional})"
    else:
        lines = [*decorator, f"def {name}({', '.join(names)}):", *indented(inner)]
        call = f"{name}({positional})"
    if w.sometimes(4):
        return [*lines, call]  # a closure, made in the loop
    w.define(*lines)
    return [call]


def _by_object(
    scope: Scope, name: str, names: list[str], given: dict[str, str], inner: Lines
) -> tuple[str, Lines]:
    """A class whose method does the step, on what its instance keeps."""
    w = scope.w
    fields = list(given.values())
    cls = name.title()
    inner = renamed(inner, {one: f"self.{one}" for one in fields})
    method = w.pick("__call__", "fit")
    made = f"{cls}({', '.join(given)})"
    if w.sometimes(3):
        head = [
            "@dataclass",
            f"class {cls}:",
            *indented([*(f"{one}: object" for one in fields), "done: list = field(default_factory=list)"]),
        ]
    else:
        head = [
            f"class {cls}:",
            *indented(
                [
                    f"def __init__(self, {', '.join([*fields, 'note=None'])}):",
                    *indented([*(f"self.{one} = {one}" for one in fields), "self.done = []"]),
                ]
            ),
        ]
    lines = [
        *head,
        *indented([f"def {method}(self, x, y, step):", *indented([*inner, "self.done.append(step)"])]),
    ]
    return f"{made}{'' if method == '__call__' else '.fit'}(x, y, step)", lines


def in_match(scope: Scope, lines: Lines, deep: int) -> Lines:
    w = scope.w
    return [
        f"match {w.pick('EVERY', 'step', 'FLAG')}:",
        *indented(
            [
                f"case {w.pick('1', '0', 'True')}:",
                *indented(unit(scope)),
                f"case {w.pick('2 | 3', '2', 'False')}:",
                *indented(lines),
                "case _:",
                *indented(mode(scope)),
            ]
        ),
    ]


def under_manager(scope: Scope, lines: Lines, deep: int) -> Lines:
    """A context manager of the program."""
    w = scope.w
    name, inner = w.fresh("stage"), wrapped(scope, lines, deep + 1)
    before, after = mode(scope), mode(scope)
    if any("step" in line for line in [*before, *after]):
        before = after = ["pass"]
    if w.sometimes():
        w.define(
            "@contextlib.contextmanager",
            f"def {name}():",
            *indented(
                w.pick(
                    [*before, "yield 'stage'", *after],
                    [*before, "try:", "    yield", "finally:", *indented(after)],
                )
            ),
        )
    else:
        w.define(
            f"class {name}:",
            *indented(
                [
                    "def __enter__(self):",
                    *indented([*before, "return self"]),
                    "def __exit__(self, kind, error, trace):",
                    *indented(after),
                ]
            ),
        )
    return [f"with {name}() as stage:", *indented(inner)]


WRAPPERS: tuple[Wrapper, ...] = (
    if_known,
    if_unsure,
    in_loop,
    in_function,
    in_function,
    in_function,
    in_try,
    in_match,
    under_manager,
)
