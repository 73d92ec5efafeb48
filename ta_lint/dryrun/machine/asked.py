"""The methods that code calls on an argument, which say what it is under any name."""

import ast
from functools import lru_cache

from ta_lint.dryrun.values import Class, Function

MOST_CALLS = 3
"""Calls that an argument is followed through."""


def asked_of(function: Function, argument: str, calls: int = MOST_CALLS) -> frozenset[str]:
    """The methods that a function calls on an argument: itself, through a function or class that it gives it to, or through an attribute of
    the object that it keeps it in.
    """
    found = set(_calls(function.node).get(argument, ()))
    for attribute in _kept(function.node).get(argument, ()):
        found |= _of_attribute(function, attribute)
    if calls:
        for called, place in _given(function.node).get(argument, ()):
            gets = _function(function, called)
            parameter = None if gets is None else _parameter(gets, place)
            if gets is not None and gets is not function and parameter is not None:
                found |= asked_of(gets, parameter, calls - 1)
    return frozenset(found)


def asked_of_variable(function: Function, target: ast.Name | ast.Attribute) -> frozenset[str]:
    """The methods that a function calls on a variable; on an attribute of its object, those that any method of the class calls on that."""
    name = _name(target)
    return _calls(function.node).get(name, frozenset()) | _of_attribute(function, name)


def _of_attribute(function: Function, name: str) -> frozenset[str]:
    """The methods that any method of a class calls on an attribute, `self.model`, of its object."""
    own, _, attribute = name.partition(".")
    owner = function.owner.node if function.owner is not None else None
    if not attribute or owner is None or own != _own(function.node):
        return frozenset()
    methods = [one for one in owner.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
    return frozenset().union(*(_calls(one).get(f"{_own(one)}.{attribute}", frozenset()) for one in methods))


def _function(function: Function, name: str) -> Function | None:
    """The function that a name means in another one; of a class, its `__init__`."""
    holder = function.frame.holder(name)
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


@lru_cache(2_000)
def _calls(scope: ast.AST) -> dict[str, frozenset[str]]:
    """What is called on each variable, and on each attribute of one."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(scope):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            found.setdefault(_name(node.func.value), set()).add(node.func.attr)
    return {name: frozenset(methods) for name, methods in found.items() if name}


@lru_cache(2_000)
def _given(scope: ast.AST) -> dict[str, list[tuple[str, int | str]]]:
    """What each variable is given to: the name of what is called, and at which place or under which name."""
    found: dict[str, list[tuple[str, int | str]]] = {}
    for node in ast.walk(scope):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            every = [*enumerate(node.args), *((one.arg, one.value) for one in node.keywords)]
            for place, value in every:
                if isinstance(value, ast.Name) and place is not None:
                    found.setdefault(value.id, []).append((node.func.id, place))
    return found


@lru_cache(2_000)
def _kept(scope: ast.AST) -> dict[str, frozenset[str]]:
    """The attributes that each variable is assigned to."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
            found.setdefault(node.value.id, set()).update(map(_name, node.targets))
    return {name: frozenset(attributes) for name, attributes in found.items()}


def _name(node: ast.expr) -> str:
    """`model` or `self.model`, empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    inside = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    return f"{node.value.id}.{node.attr}" if inside else ""  # type: ignore[attr-defined]
