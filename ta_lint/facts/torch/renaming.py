"""Fixes that replace a use of an old torch symbol by its replacement (`facts.api`)."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import libcst as cst

from ta_lint.core.source import Source
from ta_lint.facts.torch.api import Use
from ta_lint.facts.torch.symbols import Rewrite, Symbol, symbols
from ta_lint.facts.values.names import Names
from ta_lint.facts.values.spelling import Spellings
from ta_lint.syntax.edits import (
    Anchor,
    Edit,
    ProposedFix,
    Replacement,
    Side,
    add_argument,
    insert_after,
    insert_line_before,
    remove_argument,
    remove_imported,
    replace,
)
from ta_lint.syntax.places import Places
from ta_lint.syntax.tree import Node, Tree, argument, evaluated, spreads

# Types in which `torch.range` represents integers exactly.
_RANGED = frozenset(
    f"torch.{name}" for name in ("float", "float32", "double", "float64", "int", "int32", "int64", "long")
)
_EXACT = 2**8  # bfloat16 may be the default

_LISTS = frozenset(f"builtins.{name}" for name in ("dir", "globals", "locals", "vars"))
_INFINITIES = frozenset({"torch.inf", "math.inf", "numpy.inf"})


class _Move(NamedTuple):
    """A rewritten import: the new module and name, the edits at its uses, and whether the result stays the same."""

    module: str
    name: str
    edits: list[Edit]
    equal: bool


class Renaming:
    """Fixes for uses of old symbols."""

    def __init__(
        self, tree: Tree, places: Places, names: Names, source: Source, spellings: Spellings
    ) -> None:
        self._tree = tree
        self._places = places
        self._names = names
        self._source = source
        self._spellings = spellings

    def fix(self, use: Use) -> ProposedFix | None:
        """The fix for a use; None if the data has none, or it is not certain here."""
        symbol = use.symbol
        if self._is_named_elsewhere(symbol) or self._spellings.is_patched(symbol.replacement):
            return None
        if isinstance(use.node, cst.ImportFrom):
            return self._of_import(use.node, tuple(_aliases(use.node)), symbol)
        if isinstance(use.node, cst.ImportAlias):
            statement = self._tree.parent[use.node]
            return (
                self._of_import(statement, (use.node,), symbol)
                if isinstance(statement, cst.ImportFrom)
                else None
            )
        if symbol.fix is None:
            return None
        if isinstance(use.node, cst.Call):
            return self._of_method_call(use.node, symbol, symbol.fix)
        return self._of_name(use.node, symbol, symbol.fix)

    # -- names and calls --------------------------------------------------------------------------------------

    def _of_name(self, name: Node, symbol: Symbol, rewrite: Rewrite) -> ProposedFix | None:
        spelling = self._alongside(symbol, name) or self._spelling(symbol.replacement, name)
        if spelling is None:
            return None
        code, imports = spelling
        above = self._tree.parent[name]
        equal = symbol.same_result
        if isinstance(above, cst.Call) and above.func is name:
            edits = self._of_call(above, code, rewrite)
            equal = equal and self._is_equal(above, rewrite)
        elif isinstance(above, cst.Decorator) and rewrite.decorates:
            edits = [replace(name, f"{code}({rewrite.last_argument})")]
        elif rewrite.renames_only or rewrite.suffix:
            edits = [replace(name, code + rewrite.suffix)]
        else:
            edits = None
        return _fix(symbol, edits, imports, equal)

    def _of_method_call(self, call: cst.Call, symbol: Symbol, rewrite: Rewrite) -> ProposedFix | None:
        """The edits that rename a method, or turn its call into a function call if all arguments carry over."""
        assert isinstance(call.func, cst.Attribute)
        method = symbol.replacement.removeprefix("torch.Tensor.")
        if method != symbol.replacement:
            return _fix(symbol, [replace(call.func.attr, method)], (), symbol.same_result)
        spelling = self._spelling(symbol.replacement, call)
        given = self._given_now(call, rewrite)
        if spelling is None or given is None:
            return None
        receiver = call.func.value
        opening = Replacement(Anchor(call, Side.START), Anchor(receiver, Side.START), f"{spelling[0]}(")
        code = ", ".join(["", *filter(None, given)])
        closing = Replacement(Anchor(receiver, Side.END), Anchor(call, Side.END), f"{code})")
        return _fix(symbol, [opening, closing], spelling[1], symbol.same_result)

    def _given_now(self, call: cst.Call, rewrite: Rewrite) -> list[str] | None:
        """The new code for the arguments of a method; None if one of them is not a known value."""
        parameters = _parameters(call, rewrite)
        if spreads(call) or parameters is None:
            return None
        found = [
            rewrite.values.get(name, {}).get(self._places.code(arg.value))
            for name, arg in zip(parameters, call.args, strict=True)
        ]
        return [code for code in found if code is not None] if None not in found else None

    def _is_named_elsewhere(self, symbol: Symbol) -> bool:
        """Whether the file uses a symbol in a way no fix can follow: in a string, as in a patch, or in a comparison."""
        if any(evaluated(string) == symbol.name for string in self._tree.all(cst.SimpleString)):
            return True
        return symbol.kind == "callable" and any(
            attribute.attr.value == symbol.last
            and symbol.name in (self._names.written(attribute), self._names.qualified(attribute))
            and self._is_compared(attribute)
            for attribute in self._tree.all(cst.Attribute)
        )

    def _is_compared(self, node: Node) -> bool:
        """Whether a class is compared or passed to `isinstance`, alone or as one of several."""
        above = self._tree.parent[node]
        while isinstance(
            above, (cst.Arg, cst.Element, cst.Tuple, cst.List, cst.BinaryOperation, cst.ComparisonTarget)
        ):
            above = self._tree.parent[above]
        if isinstance(above, cst.Call):
            return self._names.qualified(above.func) in ("builtins.isinstance", "builtins.issubclass")
        return isinstance(above, cst.Comparison)

    def _of_call(self, call: cst.Call, code: str, rewrite: Rewrite) -> list[Edit] | None:
        """The edits that turn a call of the old function into one of `code`; None if that is uncertain."""
        given = self._given(call, rewrite)
        if given is None:
            return None
        now = {
            arg: rewrite.values[name][self._places.code(arg.value)]
            for name, arg in given
            if name in rewrite.values
        }
        goes = [arg for name, arg in given if name in rewrite.drops or now.get(arg) == ""]
        kept = [(name, arg) for name, arg in given if arg not in goes]
        if not kept:
            inside = ", ".join(filter(None, (rewrite.first_argument, rewrite.last_argument)))
            whole = Replacement(Anchor(call.func, Side.START), Anchor(call, Side.END), f"{code}({inside})")
            return [whole]
        added = self._added(call, dict(given), rewrite)
        if added is None:
            return None
        removed = [remove_argument(call, arg) for arg in goes]
        return [replace(call.func, code), *self._of_arguments(kept, now, rewrite), *removed, *added]

    def _given(self, call: cst.Call, rewrite: Rewrite) -> list[tuple[str, cst.Arg]] | None:
        """The arguments of a call with their parameters; None if the rewrite does not apply to the call."""
        if spreads(call) and (rewrite.parameters is not None or rewrite.last_argument or rewrite.renamed):
            return None
        generators = (arg.value for arg in call.args if isinstance(arg.value, cst.GeneratorExp))
        if not all(map(self._places.parentheses, generators)):
            return None
        parameters = _parameters(call, rewrite)
        if parameters is None or len(_counted(call, rewrite)) < rewrite.at_least:
            return None
        given = list(zip(parameters, call.args, strict=True))
        return given if self._are_as_said(dict(given), rewrite) else None

    def _of_arguments(
        self, kept: list[tuple[str, cst.Arg]], now: dict[cst.Arg, str], rewrite: Rewrite
    ) -> Iterator[Edit]:
        """The edits for the remaining arguments: new names, new values, and the text before the first one."""
        before = (f"{rewrite.first_argument}, " if rewrite.first_argument else "") + (
            "[" if rewrite.as_list else ""
        )
        for name, arg in kept:
            before += f"{name}=" if rewrite.as_keywords and arg.keyword is None else ""
            if before:
                yield Replacement(Anchor(arg, Side.START), Anchor(arg, Side.START), before)
            if arg.keyword is not None and arg.keyword.value in rewrite.renamed:
                yield replace(arg.keyword, rewrite.renamed[arg.keyword.value])
            if arg in now:
                yield replace(arg, now[arg])
            before = ""

    def _added(self, call: cst.Call, given: dict[str, cst.Arg], rewrite: Rewrite) -> list[Edit] | None:
        """Additions for the new function: a closing bracket for a list, an end moved by one, a last argument."""
        edits: list[Edit] = []
        if rewrite.as_list:
            last = Anchor(_counted(call, rewrite)[-1], Side.END)
            edits.append(Replacement(last, last, "]"))
        if rewrite.end_included:
            ends = self._past_the_end(given)
            if ends is None:
                return None
            edits += ends
        if rewrite.last_argument:
            added = add_argument(call, rewrite.last_argument)
            if added is None:
                return None
            edits.append(added)
        return edits

    def _are_as_said(self, given: dict[str, cst.Arg], rewrite: Rewrite) -> bool:
        """Whether arguments that must be numbers are, and dropped arguments have the only value that allows it."""
        code = self._places.code
        numbers = all(self._is_number(given[name].value) for name in rewrite.numbers if name in given)
        known = all(
            code(given[name].value) in values for name, values in rewrite.values.items() if name in given
        )
        return (
            numbers
            and known
            and all(
                name in given and code(given[name].value) == value for name, value in rewrite.drops.items()
            )
        )

    def _past_the_end(self, given: dict[str, cst.Arg]) -> list[Edit] | None:
        """The edits that make `end`, which the old function includes, exclusive; None if that is uncertain.

        Without a `dtype` the old function returns floats even for integers; the new one does so only for floats.
        """
        step = _integer(given["step"].value) if "step" in given else 1
        start, end = _integer(given["start"].value), given["end"].value
        if not step or start is None:
            return None
        past = 1 if step > 0 else -1
        point = "" if "dtype" in given else ".0"
        last = _integer(end)
        if last is not None:
            return [replace(end, f"{last + past}{point}")] if (last - start) * past >= 0 else None
        if not isinstance(end, (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.BinaryOperation)):
            return None
        edits: list[Edit] = [replace(given["start"].value, f"{start}{point}")] if point else []
        if not isinstance(end, cst.BinaryOperation):
            return [*edits, insert_after(end, f" {'+' if past > 0 else '-'} 1")]
        if past > 0 and isinstance(end.operator, cst.Subtract) and _integer(end.right) == 1:  # up to `n - 1`
            return [*edits, replace(end, self._places.code(end.left))]
        return None

    def _is_equal(self, call: cst.Call, rewrite: Rewrite) -> bool:
        """Whether the new call computes the same, for symbols where that depends on the arguments."""
        parameters = _parameters(call, rewrite)
        if parameters is None:
            return not rewrite.same_result_with and not rewrite.end_included
        given = dict(zip(parameters, call.args, strict=True))
        if rewrite.same_result_with and not any(name in given for name in rewrite.same_result_with):
            return False
        return not rewrite.end_included or self._is_whole(given)

    def _is_whole(self, given: dict[str, cst.Arg]) -> bool:
        """Whether a range certainly has only integers, in a type that holds them exactly in both functions."""
        numbers = [_integer(given[name].value) for name in ("start", "end", "step") if name in given]
        if any(number is None or abs(number) >= _EXACT for number in numbers):
            return False
        return "dtype" not in given or self._names.qualified(given["dtype"].value) in _RANGED

    def _is_number(self, node: Node) -> bool:
        if isinstance(node, cst.UnaryOperation):
            node = node.expression
        if isinstance(node, cst.Call):
            infinity = argument(node, "", 0)
            return self._names.qualified(node.func) == "builtins.float" and isinstance(
                infinity, cst.SimpleString
            )
        return isinstance(node, (cst.Integer, cst.Float)) or self._names.qualified(node) in _INFINITIES

    def _alongside(self, symbol: Symbol, name: Node) -> tuple[str, tuple[str, ...]] | None:
        """`F.interpolate` for `F.upsample`: the new symbol with the old prefix, if both are in the same module."""
        package = f"{symbol.name.rpartition('.')[0]}."
        if not isinstance(name, cst.Attribute) or not symbol.replacement.startswith(package):
            return None
        return f"{self._places.code(name.value)}.{symbol.replacement.removeprefix(package)}", ()

    def _spelling(self, new: str, at: Node) -> tuple[str, tuple[str, ...]] | None:
        """How code at a node can spell the new symbol; skips imports of the old one, which have the same name."""
        imported = (symbols().get(path) for path, _ in self._names.imports())
        if not any(symbol is not None and symbol.replacement == new for symbol in imported):
            return self._spellings.of(new, at)
        return (new, ()) if self._spellings.bound("torch", at) == "torch" else None

    # -- imports ----------------------------------------------------------------------------------------------

    def _of_import(
        self, statement: cst.ImportFrom, wanted: tuple[cst.ImportAlias, ...], symbol: Symbol
    ) -> ProposedFix | None:
        """The same statement with a new module if all its names move there; else a separate import beside it."""
        if self._source.path.endswith("__init__.py") or statement.module is None or statement.relative:
            return None
        paths = {alias: path for path, alias in self._names.imports()}
        moves = {alias: self._move(alias, paths[alias]) for alias in _aliases(statement)}
        modules = {move.module if move is not None else None for move in moves.values()}
        if len(modules) == 1 and None not in modules:
            edits: list[Edit] = [replace(statement.module, modules.pop() or "")]
            for alias, move in moves.items():
                if move is not None:
                    named = replace(alias.name, move.name)
                    edits += [*([named] if alias.name.value != move.name else []), *move.edits]
            return _fix(symbol, edits, (), all(move is not None and move.equal for move in moves.values()))
        if len(wanted) > 1 or len(moves) == 1:
            return None
        move = moves[wanted[0]]
        if move is None:
            return None
        asname = wanted[0].evaluated_alias
        code = f"from {move.module} import {move.name}" + (f" as {asname}" if asname is not None else "")
        beside = insert_line_before(self._tree, statement, code)
        return _fix(symbol, [beside, remove_imported(self._tree, wanted[0]), *move.edits], (), move.equal)

    def _move(self, alias: cst.ImportAlias, path: str) -> _Move | None:
        """The new import of a symbol, if all its uses in the file can follow."""
        symbol = symbols().get(path)
        package, _, old = path.rpartition(".")
        if symbol is None:
            symbol = symbols().get(package)
            if (
                symbol is None
                or old not in symbol.moved
                or self._spellings.is_patched(f"{symbol.replacement}.{old}")
            ):
                return None
            return _Move(symbol.replacement, old, [], symbol.same_result)
        module, _, new = symbol.replacement.rpartition(".")
        local = alias.asname.name if alias.asname is not None else alias.name
        if symbol.fix is None or not module or symbol.fix.suffix or not isinstance(local, cst.Name):
            return None
        if self._spellings.is_patched(symbol.replacement):
            return None
        code = new if alias.asname is None else local.value
        edits = self._of_mentions(local, code, symbol.fix)
        if edits is None:
            return None
        calls = (self._tree.parent[mention] for mention in self._names.mentions(local))
        equal = all(self._is_equal(call, symbol.fix) for call in calls if isinstance(call, cst.Call))
        return _Move(module, new, edits, symbol.same_result and equal)

    def _of_mentions(self, local: cst.Name, code: str, rewrite: Rewrite) -> list[Edit] | None:
        """The edits at all uses of an imported name; None if one of them cannot follow."""
        if rewrite.renames_only and code == local.value:
            return []
        mentions = [name for name in self._names.mentions(local) if name is not local]
        if not mentions or len(self._names.bindings(local)) > 1 or self._is_exported(local.value):
            return None
        if code != local.value and self._names.is_bound(code):
            return None
        if isinstance(self._names.scope(local), cst.ClassDef):
            return None  # a class attribute, which other code accesses by name
        edits: list[Edit] = []
        for name in mentions:
            above = self._tree.parent[name]
            renamed: list[Edit] | None = [replace(name, code)] if code != local.value else []
            if isinstance(above, cst.Call) and above.func is name:
                renamed = self._of_call(above, code, rewrite)
            elif isinstance(above, cst.Decorator) and rewrite.decorates:
                renamed = [replace(name, f"{code}({rewrite.last_argument})")]
            elif not rewrite.renames_only and self._tree.enclosing(name, cst.Annotation) is None:
                renamed = None
            if renamed is None:
                return None
            edits += renamed
        return edits

    def _is_exported(self, name: str) -> bool:
        """Whether `__all__`, or other code that looks names up as strings, may expose a name."""
        if any(evaluated(string) == name for string in self._tree.all(cst.SimpleString)):
            return True
        return any(
            isinstance(call.func, cst.Name) and not call.args and self._names.qualified(call.func) in _LISTS
            for call in self._tree.all(cst.Call)
        )


def _integer(node: Node) -> int | None:
    """An integer literal, signed or not."""
    negative = isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus)
    literal = node.expression if isinstance(node, cst.UnaryOperation) and negative else node
    if not isinstance(literal, cst.Integer):
        return None
    return -evaluated(literal) if negative else evaluated(literal)


def _aliases(statement: cst.ImportFrom) -> Sequence[cst.ImportAlias]:
    return () if isinstance(statement.names, cst.ImportStar) else statement.names


def _counted(call: cst.Call, rewrite: Rewrite) -> list[cst.Arg]:
    """The arguments that matter: all of them, or only the positional ones that become list items."""
    return [arg for arg in call.args if arg.keyword is None or not rewrite.as_list]


def _parameters(call: cst.Call, rewrite: Rewrite) -> list[str] | None:
    """The parameter of each argument; None if an argument has no known counterpart."""
    if rewrite.parameters is None:
        return [arg.keyword.value if arg.keyword is not None else "" for arg in call.args]
    limit = rewrite.positional if rewrite.positional is not None else len(rewrite.parameters)
    found: list[str] = []
    for index, arg in enumerate(call.args):
        name = arg.keyword.value if arg.keyword is not None else None
        if name is None and index < limit:
            name = rewrite.parameters[index]
        if name not in rewrite.parameters or name in found:
            return None
        if rewrite.as_list and arg.keyword is not None and name in rewrite.parameters[:limit]:
            return None
        found.append(name)
    return found


def _fix(
    symbol: Symbol, edits: list[Edit] | None, imports: tuple[str, ...], equal: bool
) -> ProposedFix | None:
    """A fix that is safe if the new code computes exactly the same."""
    if edits is None:
        return None
    return ProposedFix(f"use {symbol.advice}", tuple(edits), imports, unsafe=not equal)
