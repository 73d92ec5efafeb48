"""The methods that code calls on an argument, which say what it is under any name."""

import ast
from functools import lru_cache

from ta_lint.dryrun.values import Function


def asked_of(function: Function, argument: str) -> frozenset[str]:
    """The methods that a function calls on an argument; if it is kept as an attribute of the object, those too that any method of the class
    calls on that.
    """
    found = set(_calls(function.node).get(argument, ()))
    own = _own(function.node)
    methods = function.owner.node.body if own and function.owner is not None and function.owner.node else ()
    for attribute in _kept(function.node).get(argument, ()):
        if attribute.startswith(f"{own}."):
            for method in methods:
                if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef):
                    name = f"{_own(method)}.{attribute.removeprefix(f'{own}.')}"
                    found |= _calls(method).get(name, frozenset())
    return frozenset(found)


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
