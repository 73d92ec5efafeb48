"""The files of a program: read, parsed and run once each, as Python imports them."""

import ast
import builtins
import os
import re
import warnings
from array import array
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from itertools import accumulate, islice, pairwise
from pathlib import Path
from typing import Any

from ta_lint.core.errors import Unreadable
from ta_lint.core.former import readable, restored
from ta_lint.core.lines import ends_cell
from ta_lint.core.reading import read
from ta_lint.core.source import decode
from ta_lint.dryrun.machine import library
from ta_lint.dryrun.machine.frame import Frame, Pass
from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.machine.tables import run
from ta_lint.dryrun.stubs.guess import given, guess, may_act, may_set_mode, others
from ta_lint.dryrun.stubs.torch import discards, gradients, growth, modules, switches
from ta_lint.dryrun.stubs.torch.state_dicts import states_in
from ta_lint.dryrun.stubs.torch.tensors import Tensor, may_be_loss, some_loss
from ta_lint.dryrun.values import NONE, Class, External, Known, Module, Object, OnDemand, Unknown, Value
from ta_lint.project.exports import Exports, exports
from ta_lint.project.layout import Layout

MAIN = Known("__main__")
MODULE = Class("module", (library.OBJECT,))
_BUILTINS = frozenset(dir(builtins))
_SAID = re.compile(r'"""(?s:.*?)"""|#.*')
_DEFINES = re.compile(rb"\b(?:def|lambda|class)\b")
AT_IMPORT = 300
"""Statements and calls that one statement at the top of an imported file may take, and as many as it has lines."""
MOST_LINES = 40_000
"""Lines of functions whose trees are kept from script to script."""
LARGEST = 1 << 20
"""Bytes of a file; a larger one is data."""


class Program:
    """A file and all that it imports from its project."""

    def __init__(self, layout: Layout, reads: Callable[[str], bytes] | None = None) -> None:
        """`reads` gives the text of a file, empty if it has none; without it, that is what is on disk."""
        self._layout = layout
        self._reads = reads or _from_disk
        self._shares = reads is not None
        """Whether other programs have its trees as well."""
        self._modules: dict[str, Module] = {}
        self._frames: dict[str, Frame] = {}
        self._trees: dict[str, ast.Module | None] = {}
        """Of the script that runs now, and of what cannot be read."""
        self._exports: dict[str, Exports | None] = {}
        """What packages bind that have files of the names that are asked for."""
        self._texts: dict[str, bytes] = {}
        self._starts: dict[str, array[int]] = {}
        """Where the lines of a text begin."""
        self._whole: dict[ast.AST, str] = {}
        """The functions whose bodies are in memory and can be parsed again, each with its file."""
        self._yields: dict[ast.AST, bool] = {}
        self.trains: dict[ast.AST, bool] = {}
        """What `machine.reach` has found."""

    def tree(self, path: str) -> ast.Module | None:
        """Python's tree of a file, None if it cannot be read or is no Python."""
        if path not in self._trees:
            try:
                text = self._reads(path)
                self._trees[path] = (_shared if self._shares else _parsed)(text)
                self._texts[path] = text
                lines = text.splitlines(keepends=True)
                self._starts[path] = array("I", accumulate(map(len, lines), initial=0))
            except (Unreadable, SyntaxError, ValueError, RecursionError, MemoryError):
                self._trees[path] = None
        return self._trees[path]

    def lighten(self) -> None:
        """Forget the bodies of all functions, if they are many; one that is called is parsed again."""
        self._trees.clear()
        if sum(one.end_lineno - one.lineno + 1 for one in self._whole) <= MOST_LINES:  # type: ignore[attr-defined]
            return
        for function in self._whole:
            function.body = []  # type: ignore[attr-defined]
        self._whole.clear()

    def restore(self, path: str, function: ast.FunctionDef) -> None:
        """Parse the body of a function again."""
        text = self._text(path, function)
        indented = text[:1] in b" \t\f"
        start = b"\n" * (function.lineno - 1 - indented) + b"if 1:\n" * indented
        (statement,) = _parsed(start + text).body
        (again,) = statement.body if isinstance(statement, ast.If) else (statement,)
        function.body = again.body  # type: ignore[attr-defined]
        self._whole[function] = path

    def _keep(self, path: str, tree: ast.Module) -> None:
        """Note the functions of a file whose bodies can be parsed again: those without another function, which would become a new one."""
        text = self._texts[path]
        if not self._shares and b"coding" not in text[:200] and _is_utf8(text):
            for one in _outermost(tree):
                if len(_DEFINES.findall(self._text(path, one))) == 1:
                    self._whole[one] = path

    def defines(self, path: str, name: str) -> bool:
        """Whether a file has a function of this name, or a method: `Trainer.fit`, or `fit` alone."""
        owner, _, last = name.rpartition(".")
        scopes = (
            scope
            for scope in ast.walk(self.tree(path) or ast.Module([], []))
            if not owner or (isinstance(scope, ast.ClassDef) and scope.name == owner)
        )
        return any(
            isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and one.name == last
            for scope in scopes
            for one in ast.iter_child_nodes(scope)
        )

    def code(self, path: str, node: ast.AST) -> str:
        """The lines of a function, without what they say to people."""
        text = self._text(path, node) if path in self._texts else b""
        return _SAID.sub("", text.decode("utf-8", "replace").replace("\r", "\n"))

    def says(self, path: str, node: ast.AST, word: bytes) -> bool:
        """Whether a word is in the lines of some code."""
        return path in self._texts and word in self._text(path, node)

    def _text(self, path: str, node: ast.AST) -> bytes:
        starts = self._starts[path]
        first, end = (min(one, len(starts) - 1) for one in (node.lineno - 1, node.end_lineno))  # type: ignore[attr-defined]
        return self._texts[path][
            starts[first] : starts[end]
        ]  # an odd encoding may have more lines than the bytes

    def yields(self, path: str, node: ast.AST) -> bool:
        """Whether a function is a generator: whether it has a `yield` of its own."""
        found = self._yields.get(node)
        if found is None:
            may = path not in self._texts or b"yield" in self._text(path, node)
            if may and not node.body:  # type: ignore[attr-defined]
                self.restore(path, node)  # type: ignore[arg-type]
            found = self._yields[node] = may and any(
                isinstance(part, ast.Yield | ast.YieldFrom) for part in _own(node)
            )
        return found

    def shows(self, frame: Frame, node: ast.Expr) -> bool:
        """Whether a notebook shows the value of a statement, the last of its cell."""
        if not frame.file.endswith(".ipynb") or node.col_offset or frame.file not in self._texts:
            return False
        last, starts, text = node.end_lineno or node.lineno, self._starts[frame.file], self._texts[frame.file]
        behind = text[starts[last - 1] + (node.end_col_offset or 0) : starts[last]].decode("utf-8", "replace")
        lines = (
            text[one:other].decode("utf-8", "replace") for one, other in pairwise(islice(starts, last, None))
        )
        return ends_cell(behind, lines)

    def module(self, machine: Machine, path: str, name: str) -> Module:
        """A module of the project, whose top level has run."""
        found = self._modules.get(path)
        if found is None:
            frame = Frame(path)
            frame.names["__name__"] = Known(name)
            frame.names["__file__"] = Known(path)
            found = self._modules[path] = Module(MODULE, None, frame.names)
            self._frames[path] = frame
            tree = self.tree(path)
            if tree is not None:
                self._keep(path, tree)
                if len(self._modules) > 1:  # the first is the file itself
                    machine.allow_for(len(self._texts[path]))
                with machine.aside(may_go_on=partial(self._is_program, path) if name == "__main__" else None):
                    machine.frames.append(frame)
                    _run(machine, tree.body, frame)
        return found

    def _is_program(self, path: str) -> bool:
        """Whether a file is in no library, whose files are run by others."""
        return not self._layout.is_large(path)

    def frame(self, path: str) -> Frame:
        """The names at the top of a file that has run."""
        return self._frames[path]

    def imported(self, machine: Machine, importer: str, name: str) -> Value:
        """What `import name` binds, the last part of a dotted name included."""
        path = self._file_of(importer, name)
        if path is None:
            return library.find(name)
        return self._of(machine, path, name)

    def member(self, machine: Machine, importer: str, module: str, name: str) -> Value:
        """What `from module import name` binds. In a large package that is looked up where the name is used, so that one file does not
        run all others.
        """
        path = self._file_of(importer, module)
        if path is None:
            if module.startswith("."):
                return Unknown(f"{module}.{name} is not in the project")
            known = library.find(f"{module}.{name}")
            machine.memo.outside(known)
            return known
        if machine.checking or self._layout.is_large(path):
            return OnDemand(path, module, name)
        return self._member(machine, path, module, name)

    def demanded(self, machine: Machine, names: dict[Any, Any], key: str) -> Value:
        """The value of a name that has been imported on demand; from now on the name has it."""
        wanted = names[key]
        while isinstance(wanted, OnDemand):
            names[key] = Unknown(f"{wanted.module}.{wanted.name} imports itself")
            wanted = names[key] = self._member(machine, wanted.path, wanted.module, wanted.name)
        return wanted  # type: ignore[no-any-return]

    def _member(self, machine: Machine, path: str, module: str, name: str) -> Value:
        inside = self._layout.inside(path, name) if not path.endswith(".py") else None
        if inside is None or self._may_bind(path, name):
            found = self._of(machine, path, module)
            if name in found.fields:
                value = self.demanded(machine, found.fields, name)
                machine.memo.read(found.fields, name, value)
                return value
        return (
            Unknown(f"{module}.{name} is not in the project")
            if inside is None
            else self._of(machine, inside, f"{module}.{name}")
        )

    def _may_bind(self, package: str, name: str) -> bool:
        """Whether the `__init__.py` of a package may bind a name that a file of it has too. If not, it need not run."""
        if package not in self._exports:
            file = self._layout.file(package)
            try:
                text = b"" if file is None else self._reads(file)
            except Unreadable:
                text = b""
            self._exports[package] = exports(text.decode("utf-8", "replace"))
        bound = self._exports[package]
        return bound is None or bool(bound.stars) or name in bound.names

    def exported(self, machine: Machine, importer: str, module: str) -> Iterator[tuple[str, Value]]:
        """What `from module import *` binds."""
        path = self._file_of(importer, module)
        if path is not None and not machine.checking:
            machine.memo.spoil()
            names = self._of(machine, path, module).fields
            yield from [(name, value) for name, value in names.items() if not name.startswith("_")]

    @staticmethod
    def unbound(machine: Machine, name: str, module: Frame) -> Value:
        """A name that no frame binds: Python's own, or one that is missing, as in a part of a notebook, and guessed as an argument is."""
        if name in _BUILTINS:
            return library.find(f"builtins.{name}")
        guessed = None if _is_of_others(module) else guess(machine, name, "")
        module.names[name] = found = guessed or Unknown(f"the name {name}")
        return found

    @staticmethod
    def guess(
        machine: Machine, name: str, annotation: str, asked: frozenset[str] = frozenset(), *, of: Value = NONE
    ) -> Value | None:
        """What an argument is with this name and annotation, and these methods, or an attribute of a value, if that says so."""
        found = guess(machine, name, annotation, asked)
        is_layer = isinstance(found, Tensor) and isinstance(of, Object) and of.cls is modules.DISTANT
        return None if is_layer else found  # `features` of a network is what gives them

    @staticmethod
    def is_part(part: Value, whole: Value) -> None:
        """Something was in an object all the time: a part of a module is in its mode."""
        modules.is_part(part, whole)

    @staticmethod
    def acts(machine: Machine, names: list[str], node: ast.AST) -> None:
        """A function out of sight is called: it may do anything to gradients and modes if its name, or what it is asked for, says so. The step
        of an agent or a trainer may compute some.
        """
        if machine.modules_switched and any(map(may_set_mode, names)):
            switches.lost(machine)
        if names[0] == "step":
            gradients.perhaps_computed(machine, machine.optimizers)
        if machine.optimizers and any(map(may_act, names)):
            before = gradients.lost(machine, *machine.optimizers)
            machine.emit("unknown", node, None, before=before)

    @staticmethod
    def given(
        machine: Machine, name: str, asked: frozenset[str], got: tuple[Value, ...], *, imported: bool
    ) -> Value | None:
        """What code out of sight gives for what it got, if its name or the methods that are asked of it say so; `imported` is a class or
        function that a file imports.
        """
        return given(machine, name, asked, got, imported=imported)

    @staticmethod
    def entered(machine: Machine, receiver: Value | None) -> None:
        """A function begins that nobody calls: who calls it may have done anything to gradients before, and, unless it is a method, may do it
        before the script ends in the modes that it ends in.
        """
        gradients.lost(machine, *machine.optimizers)
        if receiver is None:
            switches.lost(machine)

    @staticmethod
    def may_be_loss(value: Value, module: Frame) -> bool:
        """Whether a value may be a loss of which nobody knows what it leads to."""
        return may_be_loss(value) and not _is_of_others(module)

    @staticmethod
    def loss(machine: Machine, value: Value, node: ast.AST) -> Value:
        """Such a value that the program goes back from: a tensor that has a graph."""
        return some_loss(machine, value, machine.place(node))

    @staticmethod
    def passed(machine: Machine, now: Pass) -> None:
        """A pass of a loop has come to its end."""
        if now.number:
            growth.seen(machine, now)

    @staticmethod
    def keeps_states(instance: Object) -> bool:
        """Whether an attribute of an object may be the state of a model that a call of its methods got."""
        return any(next(states_in(one), None) for one in instance.fields.values() if isinstance(one, Value))

    @staticmethod
    def dropped(machine: Machine, code: ast.expr, value: Value) -> None:
        """Nothing takes the value of this code."""
        discards.drop_of_unknown(machine, code, value)

    @staticmethod
    def reassigned(machine: Machine, optimizer: Value) -> None:
        """What is known by one name may be another optimizer from here on, with gradients of its own."""
        if isinstance(optimizer, Object) and optimizer in machine.optimizers:
            gradients.perhaps_computed(machine, [optimizer])

    def _of(self, machine: Machine, path: str, name: str) -> Module:
        """A module, or a folder of modules."""
        file = self._layout.file(path)
        if file is not None:
            return self.module(machine, file, name.lstrip("."))
        if path not in self._modules:
            self._modules[path] = Module(MODULE, None, {})
        return self._modules[path]

    def _file_of(self, importer: str, name: str) -> str | None:
        """The file or folder of a module of the project, None of any other."""
        dots = len(name) - len(name.lstrip("."))
        first, *rest = name[dots:].split(".")
        path = self._layout.module(importer, name[:dots] + first)
        for part in rest:
            path = None if path is None or path.endswith(".py") else self._layout.inside(path, part)
        return path


def _run(machine: Machine, body: list[ast.stmt], frame: Frame) -> None:
    """Run the top of a file. What an import computes for long, such as tables for a library's own use, is not known."""
    if frame.names["__name__"] == MAIN:
        run(machine, body, frame)
        return
    for statement in body:
        lines = (statement.end_lineno or statement.lineno) - statement.lineno
        with machine.aside(AT_IMPORT + lines):
            run(machine, [statement], frame)


def _is_of_others(module: Frame) -> bool:
    """Whether a file imports another library that trains networks, whose losses go backward too."""
    for one in islice(module.names.values(), module.looked_at, None):
        if isinstance(one, External) and one.name.partition(".")[0] in others():
            module.is_of_others = True
    module.looked_at = len(module.names)
    return module.is_of_others


def _from_disk(path: str) -> bytes:
    return code_of(read(path, LARGEST + 1))


def code_of(text: bytes) -> bytes:
    """The text of a file that others import: none of one that is too large to be code."""
    return text if len(text) <= LARGEST else b""


def _parsed(text: bytes) -> ast.Module:
    with warnings.catch_warnings(action="ignore"):  # of the program's own text
        try:
            return ast.parse(text)
        except SyntaxError:
            if b"async" not in text:
                raise
            return restored(ast.parse(readable(decode(text))))


@lru_cache(64)
def _shared(text: bytes) -> ast.Module:
    """The same, for the programs of one project, which have many files in common."""
    return _parsed(text)


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _outermost(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """The functions of a file, and the methods of its classes, but no function in another."""
    pending: list[ast.AST] = [tree]
    while pending:
        for part in ast.iter_child_nodes(pending.pop()):
            if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
                yield part
            elif isinstance(part, ast.stmt | ast.excepthandler | ast.match_case):
                pending.append(part)


def _own(function: ast.AST) -> Iterator[ast.AST]:
    """The parts of a function, but for those of functions in it."""
    body = getattr(function, "body", [])
    pending = list(body) if isinstance(body, list) else [body]
    while pending:
        part = pending.pop()
        yield part
        if not isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            pending.extend(ast.iter_child_nodes(part))


def layout_of(path: str) -> Layout:
    """The folders of the project that a script is in."""
    root = Path(Layout(os.sep).outermost(str(Path(path).resolve())))
    while (root / "__init__.py").exists():
        root = root.parent
    return Layout(str(root))
