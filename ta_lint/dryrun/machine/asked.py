"""The methods that code calls on an argument or a variable, which say what it is under any name."""

import ast
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

from ta_lint.dryrun.machine.frame import Frame
from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.values import Class, Function

BACKWARD = "backward"
"""What is asked of a loss: to go back through its graph."""
OF_ENGINES = (BACKWARD, "manual_backward")
"""The methods of an engine that gets a loss, and asks that of it."""
MOST_FUNCTIONS = 6
"""Functions that an argument is followed through, those that get it first."""


def asked_of(function: Function, argument: str) -> frozenset[str]:
    """The methods that a function calls on an argument: itself, through a function or class that it gives it to, or through an attribute of
    the object that it keeps it in.
    """
    return _asked(function.node, function.frame, function, argument)


def asked_of_variable(machine: Machine, frame: Frame, target: ast.Name | ast.Attribute) -> frozenset[str]:
    """The methods that are called on a variable: by the function or the script that has it, and by what gets it from there; on an
    attribute of an object, those that any method of the class calls on that.
    """
    name, function = _name(target), frame.function
    scope = machine.program.tree(frame.file) if function is None else function.node
    if scope is None or not name:
        return frozenset()
    if (scope, name) not in machine.asked:
        found = _asked(scope, frame, function, name)
        if function is not None:
            gives = name in _returned(scope) and _gives_loss(function)
            found |= _of_attribute(function, name) | ({BACKWARD} if gives else frozenset())
        machine.asked[scope, name] = found
    return machine.asked[scope, name]


def _asked(scope: ast.AST, frame: Frame, function: Function | None, name: str) -> frozenset[str]:
    """The methods that a scope calls on a name, and the functions that it gives it to; these are looked up from a frame."""
    found: set[str] = set()
    pending, seen = [(scope, frame, function, name)], set[tuple[ast.AST, str]]()
    while pending and len(seen) < MOST_FUNCTIONS:
        scope, frame, function, name = pending.pop(0)
        if (scope, name) in seen:
            continue
        seen.add((scope, name))
        found.update(_calls(scope).get(name, ()))
        if function is not None:
            for attribute in _kept(scope).get(name, ()):
                found |= _of_attribute(function, attribute)
        for called, place in islice(_given(scope).get(name, ()), MOST_FUNCTIONS):
            gets = _function(frame, called)
            parameter = None if gets is None else _parameter(gets, place)
            if gets is not None and parameter is not None:
                pending.append((gets.node, gets.frame, gets, parameter))
    return frozenset(found)


def _gives_loss(function: Function) -> bool:
    """Whether it is a method in place of one of a library that gives a tensor, such as the loss that a trainer goes back from."""
    theirs = None if function.owner is None else function.owner.find(function.name, function.owner)
    returns = getattr(theirs.node, "returns", None) if isinstance(theirs, Function) else None
    return returns is not None and "Tensor" in ast.unparse(returns)


def called_on_own(method: Function) -> frozenset[str]:
    """The methods that a method calls on its object."""
    return _calls(method.node).get(_own(method.node), frozenset())


def called_names(function: Function) -> frozenset[str]:
    """The functions and classes that a function calls by their names."""
    return frozenset(
        one.func.id
        for one in _parts(function.node)
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Name)
    )


def _of_attribute(function: Function, name: str) -> frozenset[str]:
    """The methods that any method of a class calls on an attribute, `self.model`, of its object."""
    own, _, attribute = name.partition(".")
    owner = function.owner.node if function.owner is not None else None
    if not attribute or owner is None or own != _own(function.node):
        return frozenset()
    return _of_attributes(owner).get(attribute, frozenset())


@lru_cache(500)
def _of_attributes(cls: ast.ClassDef) -> dict[str, frozenset[str]]:
    """The same of each attribute."""
    found: dict[str, frozenset[str]] = {}
    for method in cls.body:
        if isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for name, methods in _calls(method).items():
                own, _, attribute = name.partition(".")
                if attribute and own == _own(method):
                    found[attribute] = found.get(attribute, frozenset()) | methods
    return found


def _function(frame: Frame, name: str) -> Function | None:
    """The function that a name means; of a class, its `__init__`."""
    holder = frame.holder(name)
    value = None if holder is None else holder.names[name]
    start = value.find("__init__") if isinstance(value, Class) else value
    return start if isinstance(start, Function) else None


def _parameter(function: Function, place: int | str) -> str | None:
    """The parameter that gets the argument at a place, or with a name."""
    if isinstance(place, str):
        return place
    every = [*function.node.args.posonlyargs, *function.node.args.args][function.owner is not None :]
    return every[place].arg if place < len(every) else None


def _own(method: ast.AST) -> str:
    """What a method calls its object: `self`."""
    first = method.args.posonlyargs + method.args.args  # type: ignore[attr-defined]
    return first[0].arg if first else ""


@lru_cache(500)
def _calls(scope: ast.AST) -> dict[str, frozenset[str]]:
    """What is called on each variable, and on each attribute of one. An engine that goes back from a loss asks it to."""
    found: dict[str, set[str]] = {}
    sums: list[tuple[str | None, ast.expr]] = []  # with their names, None for what an engine gets
    for node in _parts(scope):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in OF_ENGINES and node.args:
                sums.append((None, node.args[0]))
            else:
                found.setdefault(_name(node.func.value), set()).add(node.func.attr)
                _of_part(node.func.value, node.func.attr, found)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len":
            for one in node.args:
                _of_part(one, "__len__", found)
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            sums.append((_name(node.targets[0]), node.value))
    for name, total in reversed(sums):
        if name is None or BACKWARD in found.get(name, ()):
            for term in _terms(total):
                found.setdefault(term, set()).add(BACKWARD)
    return {name: frozenset(methods) for name, methods in found.items() if name}


def _of_part(part: ast.expr, method: str, found: dict[str, set[str]]) -> None:
    """A method of a part is asked of the whole too: `sampler.set_epoch` of a loader."""
    if isinstance(part, ast.Attribute):
        found.setdefault(_name(part.value), set()).add(f"{part.attr}.{method}")


@lru_cache(500)
def _returned(scope: ast.AST) -> frozenset[str]:
    """The variables that a function returns, alone or first of several, and the terms of their sums."""
    found: set[str] = set()
    for node in reversed(_parts(scope)):
        if isinstance(node, ast.Return) and node.value is not None:
            value = node.value
            for one in (value.body, value.orelse) if isinstance(value, ast.IfExp) else (value,):
                found.update(_terms(one.elts[0] if isinstance(one, ast.Tuple) and one.elts else one))
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and _name(node.targets[0]) in found:
            found.update(_terms(node.value))
    return frozenset(found)


def _terms(total: ast.expr) -> Iterator[str]:
    """The variables that a value is a sum or multiple of."""
    if isinstance(total, ast.BinOp) and isinstance(total.op, (ast.Add, ast.Sub)):
        yield from _terms(total.left)
        yield from _terms(total.right)
    elif isinstance(total, ast.BinOp) and isinstance(total.op, (ast.Mult, ast.Div)):
        factor = total.left if isinstance(total.right, ast.Constant) else total.right
        yield from _terms(factor) if ast.Constant in map(type, (total.left, total.right)) else ()
    elif name := _name(total):
        yield name


@lru_cache(500)
def _given(scope: ast.AST) -> dict[str, list[tuple[str, int | str]]]:
    """What each variable is given to: the name of what is called, and at which place or under which name."""
    found: dict[str, list[tuple[str, int | str]]] = {}
    for node in _parts(scope):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            every = [*enumerate(node.args), *((one.arg, one.value) for one in node.keywords)]
            for place, value in every:
                if isinstance(value, ast.Name) and place is not None:
                    found.setdefault(value.id, []).append((node.func.id, place))
    return found


@lru_cache(500)
def _kept(scope: ast.AST) -> dict[str, frozenset[str]]:
    """The attributes that each variable is assigned to."""
    found: dict[str, set[str]] = {}
    for node in _parts(scope):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
            found.setdefault(node.value.id, set()).update(map(_name, node.targets))
    return {name: frozenset(attributes) for name, attributes in found.items()}


@lru_cache(500)
def _parts(scope: ast.AST) -> list[ast.Call | ast.Assign | ast.Return]:
    """The calls, assignments and returns of a function, in source order; of a script, those outside of its functions and classes."""
    inner = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    found: list[ast.Call | ast.Assign | ast.Return] = []
    pending: list[ast.AST] = [scope]
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.Call, ast.Assign, ast.Return)):
            found.append(node)
        for one in ast.iter_child_nodes(node):
            if not (isinstance(scope, ast.Module) and isinstance(one, inner)):
                pending.append(one)
    return sorted(found, key=lambda one: (one.lineno, one.col_offset))


def _name(node: ast.expr) -> str:
    """`model` or `self.model`, empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    inside = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    return f"{node.value.id}.{node.attr}" if inside else ""  # type: ignore[attr-defined]
