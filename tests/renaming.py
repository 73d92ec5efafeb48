"""The same program under other names: variables, functions, classes and attributes that it defines itself. No line moves."""

import ast
import builtins
import io
import re
import symtable
import tokenize
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import torch

from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.values import Function

Rename = Callable[[str, int], str]
"""A new name for an old one, which has this number."""

STYLES: dict[str, Rename] = {
    "neutral": lambda name, number: f"zq{number}",
    "scaffold_": lambda name, number: f"scaffold_{name}",
    "refined_": lambda name, number: f"refined_{name}",
    "latest_": lambda name, number: f"latest_{name}",
    "my_": lambda name, number: f"my_{name}",
}


def renamed(text: str, style: Rename, machine: Machine) -> str:
    """The program, with each name of its own renamed, but for what its dry run guesses: arguments, and names that nothing binds."""
    guessed = {line for event in machine.events for line in _guessed(event.entry)}
    names = _Names(ast.parse(text), guessed, _unbound(symtable.symtable(text, "train.py", "exec")))
    variables = {name: style(name, number) for number, name in enumerate(sorted(names.variables))}
    attributes = {name: style(name, number + 1_000) for number, name in enumerate(sorted(names.attributes))}
    lines = text.splitlines(keepends=True)
    for token, after_dot in reversed(list(_tokens(text))):
        row, column = token.start
        of_class = after_dot or (row, column) in names.in_class_bodies
        new = (attributes if of_class else variables).get(token.string)
        if new is not None and (row, column) not in names.keywords:
            line = lines[row - 1]
            lines[row - 1] = line[:column] + new + line[column + len(token.string) :]
    return "".join(lines)


def _guessed(entry: Any) -> Iterator[int]:
    """The lines of an entry and of what makes the object that it is a method of: these get guessed arguments."""
    if entry is not None:
        yield entry.node.lineno
        start = entry.owner.find("__init__") if getattr(entry, "owner", None) is not None else None
        if isinstance(start, Function):
            yield start.node.lineno


def _unbound(top: symtable.SymbolTable) -> set[str]:
    """The names that a program uses and that nothing in it binds."""
    bound = {
        one.get_name()
        for one in top.get_symbols()
        if one.is_assigned() or one.is_imported() or one.is_namespace()
    }
    tables, used = [top], set[str]()
    for table in tables:
        tables += table.get_children()
        used |= {
            one.get_name()
            for one in table.get_symbols()
            if one.is_referenced() and (one.is_global() or table is top)
        }
        bound |= {
            one.get_name() for one in table.get_symbols() if one.is_declared_global() and one.is_assigned()
        }
    return used - bound


def _tokens(text: str) -> Iterator[tuple[tokenize.TokenInfo, bool]]:
    """The names of a program, each with whether it is an attribute."""
    before = ""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME:
            yield token, before == "."
        before = token.string


class _Names:
    """What a program defines itself and can be called otherwise."""

    def __init__(self, tree: ast.Module, guessed: set[int], unbound: set[str]) -> None:
        every = list(ast.walk(tree))
        imported = {
            (one.asname or one.name).partition(".")[0]
            for node in every
            if isinstance(node, ast.Import | ast.ImportFrom)
            for one in node.names
        }
        said = {
            word
            for node in every
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
            for word in re.findall(r"\w+", node.value)
        }
        said |= {
            one.id if isinstance(one, ast.Name) else one.attr
            for node in every
            if isinstance(node, ast.FormattedValue)
            for one in ast.walk(node)
            if isinstance(one, ast.Name | ast.Attribute)
        }
        given = {
            keyword.arg
            for node in every
            if isinstance(node, ast.Call | ast.ClassDef)
            for keyword in node.keywords
        }
        given |= {name for node in every if isinstance(node, ast.MatchClass) for name in node.kwd_attrs}
        self.keywords = {
            (one.lineno, one.col_offset)
            for node in every
            if isinstance(node, ast.Call | ast.ClassDef)
            for one in node.keywords
        }
        self.in_class_bodies: set[tuple[int, int]] = set()
        self.variables: set[str] = set()
        self.attributes: set[str] = set()
        loaded: set[str] = set()
        for node in every:
            if isinstance(node, ast.ClassDef):
                for one in node.body:
                    loaded |= self._class_body(one, _is_plain(node))
        inner = {part for node in every if isinstance(node, ast.ClassDef) for part in node.body}
        for node in every:
            if (
                isinstance(node, ast.Name)
                and isinstance(node.ctx, ast.Store)
                and (node.lineno, node.col_offset) not in self.in_class_bodies
            ):
                self.variables.add(node.id)
            elif (
                isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node not in inner
            ) or (isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name):
                self.variables.add(str(node.name))
            elif (
                isinstance(node, ast.Attribute)
                and isinstance(node.ctx, ast.Store)
                and isinstance(node.value, ast.Name)
                and node.value.id == "self"
            ):
                self.attributes.add(node.attr)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                arguments = [
                    *node.args.posonlyargs,
                    *node.args.args,
                    *node.args.kwonlyargs,
                    *filter(None, (node.args.vararg, node.args.kwarg)),
                ]
                if node.lineno in guessed:
                    given |= {one.arg for one in arguments}
                self.variables |= {one.arg for one in arguments}
        kept = imported | said | unbound | {name for name in given if name} | set(dir(builtins))
        self.variables = {name for name in self.variables - kept if not name.startswith("_")}
        others = {node.attr for node in every if isinstance(node, ast.Attribute) and _root(node) in imported}
        self.attributes = {
            name for name in self.attributes - kept - loaded - others - library() if not name.startswith("_")
        }

    def _class_body(self, statement: ast.stmt, plain: bool) -> set[str]:
        """Keep what a statement of a class body defines; returns what it reads."""
        found: list[tuple[str, tuple[int, int]]] = []
        loaded: set[str] = set()
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            start = {ast.FunctionDef: 4, ast.AsyncFunctionDef: 10, ast.ClassDef: 6}[type(statement)]
            found.append((statement.name, (statement.lineno, statement.col_offset + start)))
            parts: list[ast.AST] = list(statement.decorator_list)
        else:
            parts = [statement]
        for part in (below for one in parts for below in ast.walk(one)):
            if isinstance(part, ast.Name):
                if isinstance(part.ctx, ast.Store):
                    found.append((part.id, (part.lineno, part.col_offset)))
                else:
                    loaded.add(part.id)
        self.in_class_bodies |= {place for _, place in found}
        if plain:
            self.attributes |= {name for name, _ in found}
            return loaded
        return loaded | {name for name, _ in found}


def _root(node: ast.expr) -> str:
    """The name that a dotted name begins with: `torch` in `torch.optim.lr_scheduler`."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_plain(node: ast.ClassDef) -> bool:
    """Whether no library but torch can know the attributes of a class."""
    return not node.decorator_list and all(
        ast.unparse(base).rpartition(".")[2] in ("Module", "Dataset", "object") for base in node.bases
    )


@cache
def library() -> frozenset[str]:
    """What attributes of torch and of Python's types are called: a class of the program may mean those."""
    folder = Path(torch.__file__).parent
    files = [
        path
        for under in ("nn", "optim", "utils/data", "amp", "distributions")
        for path in (folder / under).rglob("*.py")
    ]
    written = {
        name
        for path in files
        for name in re.findall(r"\bself\.(\w+)|\bdef (\w+)", path.read_text("utf-8"))
        for name in name
    }
    kinds: list[Any] = [
        torch,
        torch.Tensor,
        torch.nn.Module,
        torch.optim.Optimizer,
        str,
        list,
        dict,
        set,
        int,
        float,
        Path,
    ]
    return frozenset(written) | {name for kind in kinds for name in dir(kind)}


def story(machine: Machine) -> list[Any]:
    """What a dry run says, without names: actions, lines, passes and sizes."""
    return [
        (
            event.action,
            event.place.line,
            event.certain,
            tuple((loop.line, number) for loop, number in event.passes),
            tuple(
                sorted(
                    (key, _size(value)) for key, value in event.detail.items() if key not in ("by", "name")
                )
            ),
            tuple(getattr(getattr(function, "node", None), "lineno", 0) for function in event.functions),
            event.entry is not None and event.entry.node.lineno,
        )
        for event in machine.events
    ]


def _size(value: Any) -> Any:
    if isinstance(value, bool | int | None):
        return value
    return len(value) if hasattr(value, "__len__") else type(value).__name__
