"""TA910: an undefined name raises `NameError` when the code runs."""

import ast
import builtins
import re
import symtable
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import PurePosixPath

from ta_lint.checks import MayGive, TextFinding, flakes
from ta_lint.core.source import Source

# Code that starts a run, trains, evaluates or saves crashes late; a model or loss fails with its first batch. The rule's page
# has the figures.
_OF_A_RUN = ("__main__", "argparse", "argv", "DataLoader", "epoch", "tqdm", "training_step", "zero_grad")
_RUNS = frozenset({"backward", "eval", "fit", "step"})
KEYWORDS = ((*(f"*{word}*" for word in _OF_A_RUN), *_RUNS, "save"),)

_PYTHON_2 = frozenset(
    "basestring buffer cmp execfile file long raw_input reduce reload unichr unicode xrange".split()
)
# It asks which Python runs it, or runs on Python 2 alone.
_ASKS_FOR_PYTHON_2 = re.compile(r"version_info|\bPY[23]\b|\bsix\b|\bsys\.setdefaultencoding\b")

# A file that does this may define names invisibly.
_DEFINERS = frozenset({"exec", "globals", "locals"})
_DEFINES_UNSEEN = re.compile(
    r"sys\.modules\[__name__\]|\bbuiltins\.\w+ *=[^=]|\bsetattr\(\s*builtins\b"
    r"|\b_init_api\("  # TVM and DGL: C functions become module names
    r"|\brun_cell_magic\(|magic\(\s*u?['\"](?:run|pylab|store)\b"  # an exported notebook
    # and an original notebook (`core.notebook`)
    r"|# IPython_*: *%(?:(?:run|pylab|store|macro|%capture)\b|%?(?:prun|time|timeit)\b.*=)"
)

# A file without imports is a fragment; whatever runs it provides the names: `%run -i`, `%load`, `exec`.
_IMPORTS = re.compile(r"\b(?:import|__import__)\b")

# The symbol table does not count `count += 1` as a read.
_AUGMENTED = re.compile(r"\b(\w++)[ \t]*(?:[-+%@&|^]|\*\*?|//?|<<|>>)=")

_KNOWN = (frozenset(dir(builtins)) | {"__file__", "__path__"} | flakes.ELSEWHERE) - _DEFINERS
_COMPREHENSIONS = frozenset({"dictcomp", "genexpr", "listcomp", "setcomp"})  # they bind before they read
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_ENDS = (ast.Break, ast.Continue, ast.Raise, ast.Return)

_UNBINDS = 0  # used as a line number: later code may read the name unbound, wherever it is

_Above = dict[ast.AST, ast.AST]
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def check_text(source: Source, may_give: MayGive) -> Iterator[TextFinding]:
    yield from reports(source, may_give)


@lru_cache(maxsize=1)
def reports(source: Source, may_give: MayGive) -> tuple[TextFinding, ...]:
    """The undefined names of a file: found once, for TA910 and TA911."""
    return tuple(_reports(source, may_give))


def _reports(source: Source, may_give: MayGive) -> Iterator[TextFinding]:
    symbols = source.symbols
    if isinstance(symbols, SyntaxError) or _is_template(source) or _is_fragment(source):
        return
    unbound, hiding_in = _candidates(symbols, source.text)
    if not (unbound or hiding_in) or unbound & _DEFINERS:
        return
    syntax = source.syntax
    if isinstance(syntax, SyntaxError):
        return
    suspects = _suspects(source, syntax, unbound, hiding_in, may_give)
    if not suspects or not _is_of_a_run(source):
        return
    above = {child: node for node in flakes.nodes(source) for child in ast.iter_child_nodes(node)}
    postponed = _postpones_annotations(syntax)
    reported: set[tuple[ast.AST, str]] = set()
    for name, local in suspects:
        place = _function_around(name, above), name.id
        if place in reported:
            continue  # one line says it for all
        is_magic = source.notebook is not None and _may_be_magic(name, above)
        if is_magic or not _can_raise(name, above, postponed):
            continue
        if not local:
            reported.add(place)
            at_once = source.notebook is not None and isinstance(place[0], ast.Module)
            yield _report(name, "is not defined here: this raises `NameError`", source, is_note=at_once)
        elif not _is_bound_in_a_loop_around(name, above):
            reported.add(place)
            yield _report(
                name,
                "is assigned only later in this function, so this raises `UnboundLocalError`: assign it first",
                source,
            )


def _is_of_a_run(source: Source) -> bool:
    """Whether code starts a run, trains, evaluates or saves, judged by its names, strings and calls."""
    nodes = flakes.nodes(source)
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    return any(
        _is_call_of_a_run(node) or any(word in text for text in _texts(node) for word in _OF_A_RUN)
        for node in nodes
        if not (isinstance(node, ast.Constant) and id(node) in docstrings)
    )


def _texts(node: ast.AST) -> list[str]:
    """The names in a node itself, or its string value."""
    return [value for _, value in ast.iter_fields(node) if isinstance(value, str)]


def _is_call_of_a_run(node: ast.AST) -> bool:
    """Whether a node is `loss.backward()`, `model.eval()`, `trainer.fit()`, `optimizer.step()` or `torch.save()`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return node.func.attr in _RUNS or ast.unparse(node.func) == "torch.save"


def _suspects(
    source: Source,
    syntax: ast.Module,
    unbound: set[str],
    hiding_in: dict[int, set[str]],
    may_give: MayGive,
) -> list[tuple[ast.Name, bool]]:
    """The candidates that pyflakes reports as undefined, and whether the enclosing function binds them later."""
    hiding = _perhaps_read_first(syntax, hiding_in)
    if not (unbound or hiding) or _DEFINES_UNSEEN.search(source.text):
        return []
    unbound = unbound - _bound_elsewhere(source, syntax)
    modules = tuple(
        "." * node.level + (node.module or "")
        for node in flakes.nodes(source)
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*"
    )
    return [
        (name, local)
        for name, local, starred in _undefined(source)
        if name.id in (hiding if local else unbound) and not (starred and may_give(modules, name.id))
    ]


def _is_fragment(source: Source) -> bool:
    """Whether a file is a part of what runs, so that names may come from elsewhere."""
    return not _IMPORTS.search(source.text) if source.notebook is None else bool(source.notebook.has_unread)


def _is_template(source: Source) -> bool:
    """Whether a file is a template such as `models/hubert/modular_hubert.py` of transformers, which is never run."""
    path = PurePosixPath(source.path)
    return path.stem.startswith(f"modular_{path.parent.name}")


def _candidates(symbols: symtable.SymbolTable, text: str) -> tuple[set[str], dict[int, set[str]]]:
    """The names that are global in some scope and bound in none; and, by the line of a function, the names read in it
    that shadow outer ones.

    The symbol table rules out almost every file, for a quarter of the cost of the tree and pyflakes. It also corrects
    pyflakes' mistakes with `del` and with names that one iteration of a loop leaves to the next.
    """
    known = _KNOWN | {symbol.get_name() for symbol in symbols.get_symbols() if _is_bound(symbol)}
    augmented = cache(lambda: frozenset(_AUGMENTED.findall(text)))
    unbound: set[str] = set()
    hiding: dict[int, set[str]] = {}
    pending = [(symbols, known)]
    while pending:
        table, outer = pending.pop()
        if isinstance(table, symtable.Function):
            unbound.update(name for name in table.get_globals() if name not in known)
            if table.get_name() not in _COMPREHENSIONS:
                own = set(table.get_locals())
                shared = own & outer - set(table.get_parameters())
                read = {name for name in shared if table.lookup(name).is_referenced() or name in augmented()}
                if read:
                    hiding.setdefault(table.get_lineno(), set()).update(read)
                outer = outer | own
        else:
            unbound.update(
                name
                for name in table.get_identifiers()
                if name not in known and table.lookup(name).is_global()
            )
        pending += [(child, outer) for child in table.get_children()]
    return unbound, hiding


def _is_bound(symbol: symtable.Symbol) -> bool:
    return (
        symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace() or symbol.is_declared_global()
    )


def _perhaps_read_first(syntax: ast.Module, hiding: dict[int, set[str]]) -> set[str]:
    """The names that a function may read above their binding, judged by line; this spares most files pyflakes."""
    functions = {node.lineno: node for node in _functions(syntax)} if hiding else {}
    return {
        name
        for line, names in hiding.items()
        for name in (_read_above(functions[line], names) if line in functions else names)
    }


def _read_above(function: _Function, names: set[str]) -> set[str]:
    read: dict[str, int] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store):
            name, line = node.id, node.lineno if isinstance(node.ctx, ast.Load) else _UNBINDS
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            name, line = node.target.id, node.lineno
        elif isinstance(node, ast.ExceptHandler) and node.name is not None:
            name, line = node.name, _UNBINDS
        else:
            continue
        read[name] = min(line, read.get(name, line))
    bound: dict[str, int] = {}
    for statement in _statements(function):
        for name, line in _bindings(statement):
            bound[name] = min(line, bound.get(name, line))
    return {name for name in names if name not in bound or read.get(name, _UNBINDS) <= bound[name]}


def _functions(syntax: ast.Module) -> Iterator[_Function]:
    pending: list[ast.Module | ast.ClassDef | _Function] = [syntax]
    while pending:
        for statement in _statements(pending.pop()):
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield statement
            if isinstance(statement, _SCOPES):
                pending.append(statement)


def _statements(scope: ast.Module | ast.ClassDef | _Function) -> Iterator[ast.AST]:
    """The statements of one scope, including nested blocks and the headers of handlers and cases."""
    pending: list[ast.AST] = [*scope.body]
    while pending:
        statement = pending.pop()
        yield statement
        if not isinstance(statement, _SCOPES):
            for block in ("body", "handlers", "orelse", "finalbody", "cases"):
                pending += getattr(statement, block, ())


def _bindings(statement: ast.AST) -> Iterator[tuple[str, int]]:
    """The names that a statement or its header binds, and the line it ends on; ignores rare ways to bind a name."""
    targets: list[ast.expr | None] = []
    end: int | None = None
    if isinstance(statement, ast.Assign):
        targets, end = [*statement.targets], statement.end_lineno
    elif isinstance(statement, (ast.For, ast.AsyncFor)):
        targets, end = [statement.target], statement.iter.end_lineno
    elif isinstance(statement, (ast.With, ast.AsyncWith)):
        last = statement.items[-1]
        targets = [item.optional_vars for item in statement.items]
        end = (last.optional_vars or last.context_expr).end_lineno
    elif isinstance(statement, (ast.Import, ast.ImportFrom)):
        for alias in statement.names:
            yield alias.asname or alias.name.partition(".")[0], alias.end_lineno or alias.lineno
    elif isinstance(statement, _SCOPES):
        yield statement.name, statement.body[0].lineno
    for target in targets:
        for node in ast.walk(target) if target is not None else ():
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id, end or node.lineno


def _bound_elsewhere(source: Source, syntax: ast.Module) -> set[str]:
    """Names that the file may use without binding them."""
    names = set(_PYTHON_2) if _ASKS_FOR_PYTHON_2.search(source.text) else set()
    if PurePosixPath(source.path).name == "__init__.py":  # imports bind its submodules
        for node in ast.walk(syntax):
            if isinstance(node, ast.ImportFrom):
                names.update((node.module or "").split("."))
            elif isinstance(node, ast.Import):
                names.update(part for alias in node.names for part in alias.name.split("."))
    return names


def _undefined(source: Source) -> Iterator[tuple[ast.Name, bool, bool]]:
    """The names that pyflakes reports as undefined, whether as unbound locals, and whether as what an `import *` may define.

    Pyflakes also reads string annotations, which are never evaluated; its position there matches no name.
    """
    from pyflakes.messages import ImportStarUsage, UndefinedLocal, UndefinedName

    names = {
        (node.lineno, node.col_offset): node for node in flakes.nodes(source) if isinstance(node, ast.Name)
    }
    for message in flakes.messages(source):
        name = names.get((message.lineno, message.col))
        if name is not None and isinstance(message, (UndefinedName, UndefinedLocal, ImportStarUsage)):
            yield name, isinstance(message, UndefinedLocal), isinstance(message, ImportStarUsage)


def _can_raise(name: ast.AST, above: _Above, postponed: bool) -> bool:
    """Whether running the file evaluates a name, and nothing expects that to fail."""
    child = name
    while (node := above.get(child)) is not None:
        annotation = child is getattr(node, "annotation", None) or child is getattr(node, "returns", None)
        if annotation and (postponed or (isinstance(node, ast.AnnAssign) and _is_in_function(node, above))):
            return False
        if isinstance(node, ast.If) and child in node.body and _is_false(node.test):
            return False
        if isinstance(node, ast.Try) and child in node.body and any(map(_catches, node.handlers)):
            return False
        if isinstance(child, ast.stmt) and _is_behind_an_end(child, node):
            return False
        child = node
    return True


def _is_behind_an_end(statement: ast.stmt, above: ast.AST) -> bool:
    """Whether a statement never runs, as a `raise` or `return` stands before it in its block."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(above, name, ())
        if isinstance(block, list) and statement in block:
            return any(isinstance(before, _ENDS) for before in block[: block.index(statement)])
    return False


def _may_be_magic(name: ast.AST, above: _Above) -> bool:
    """Whether a notebook may treat a line as a magic without its percent sign: `watermark -iv`, `pwd`."""
    statement = name
    while not isinstance(statement, ast.stmt):
        statement = above[statement]
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, (ast.BinOp, ast.Name)) and isinstance(above[statement], ast.Module)


def _postpones_annotations(syntax: ast.Module) -> bool:
    return any(
        isinstance(node, ast.ImportFrom)
        and node.module == "__future__"
        and any(alias.name == "annotations" for alias in node.names)
        for node in syntax.body
    )


def _function_around(node: ast.AST, above: _Above) -> ast.AST:
    """The innermost function that a node is in, or else its file."""
    while not isinstance(node, (*_FUNCTIONS, ast.Module)):
        node = above[node]
    return node


def _is_in_function(node: ast.AST, above: _Above) -> bool:
    while not isinstance(node, (*_FUNCTIONS, ast.ClassDef, ast.Module)):
        node = above[node]
    return isinstance(node, _FUNCTIONS)


def _is_false(test: ast.expr) -> bool:
    """`TYPE_CHECKING`, `typing.TYPE_CHECKING`, `False`, `0`."""
    name = getattr(test, "attr", getattr(test, "id", None))
    return name == "TYPE_CHECKING" or (isinstance(test, ast.Constant) and not test.value)


def _catches(handler: ast.ExceptHandler) -> bool:
    caught = ast.walk(handler.type) if handler.type is not None else ()
    return any(getattr(node, "id", None) in ("NameError", "UnboundLocalError") for node in caught)


def _is_bound_in_a_loop_around(name: ast.Name, above: _Above) -> bool:
    """Whether an earlier iteration of a loop may have bound a name."""
    node: ast.AST = name
    while not isinstance(node, (*_FUNCTIONS, ast.Module)):
        if isinstance(node, _LOOPS) and any(_binds(inner, name.id) for inner in ast.walk(node)):
            return True
        node = above[node]
    return False


def _binds(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Name):
        return node.id == name and not isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.alias):
        return (node.asname or node.name.partition(".")[0]) == name
    return getattr(node, "name", None) == name  # def, class, except, match


def _report(name: ast.Name, what: str, source: Source, is_note: bool = False) -> TextFinding:
    column = flakes.column(source, name.lineno, name.col_offset)
    end = column + len(name.id)
    return TextFinding(name.lineno, column, name.lineno, end, f"`{name.id}` {what}", is_note)
