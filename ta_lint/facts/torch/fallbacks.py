"""Fallbacks: code that does one thing for one release of a library and another for other releases."""

from functools import cached_property

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts.values.kinds import Kinds
from ta_lint.syntax.layout import plain
from ta_lint.syntax.tree import Node, Tree

# Tests that show that the code supports several releases.
_ASKS_FOR_VERSION = regex(
    r"(?i)version|hasattr|getattr\((?!self\b)|callable\(|find_spec|TORCH_\w*\d|\b(?:has|is|use|using|with)_?torch|_(?:ge|gt|lt|le)_\d"
    r"|(?<!is)_available\b|\bin dir\("
)
# Tests for a torch release: `_TORCH_GREATER_EQUAL_2_4`, `Version(torch.__version__) >= Version("2.4")`.
_RELEASE = regex(
    r"(?i)torch\w*?_([12])_(\d+)(?![\d_])|torch\.__version__\)*\s*[<>]=?\s*[\w.]*\(?\s*[\"'](\d+)\.(\d+)"
)
# Errors that a name or parameter missing in some release raises.
_EXPECTED = frozenset({"ImportError", "ModuleNotFoundError", "AttributeError", "NameError", "TypeError"})


class Fallbacks:
    """Queries about code that supports several releases."""

    def __init__(self, tree: Tree, kinds: Kinds, text: str) -> None:
        self._tree = tree
        self._kinds = kinds
        self._text = text
        self._inside: dict[tuple[int, bool], bool] = {}
        """Whether what is below a node is inside a fallback, by the number of the node and for an import or not."""

    def around(self, node: Node) -> bool:
        """Whether code around or before a node tests the release, or expects something to be missing."""
        importing = isinstance(node, (cst.ImportAlias, cst.ImportFrom))
        return self._is_inside(node, importing) or self._is_after_an_end(node)

    def _is_inside(self, node: Node, importing: bool) -> bool:
        """Whether a node is below a test of the release, or below code for what may be missing."""
        passed: list[tuple[int, bool]] = []
        answer = False
        for above in self._tree.ancestors(node):
            key = self._tree.order(above), importing
            if key in self._inside:
                answer = self._inside[key]
                break
            passed.append(key)
            if self._is_fallback(above, importing):
                answer = True
                break
        self._inside.update(dict.fromkeys(passed, answer))
        return answer

    def _is_fallback(self, above: Node, importing: bool) -> bool:
        if isinstance(above, (cst.ExceptHandler, cst.ExceptStarHandler)):
            return not self._begins_anew(above)
        if isinstance(above, (cst.Try, cst.TryStar)):
            return any(importing or self._expects(handler) for handler in above.handlers)
        return isinstance(above, (cst.If, cst.IfExp)) and self._asks_for_version(above.test)

    def _is_after_an_end(self, node: Node) -> bool:
        return bool(self._ends) and not self._ends.isdisjoint(map(id, self._tree.preceding(node)))

    def knows_before(self, release: tuple[int, int]) -> bool:
        """Whether the file supports torch versions before a release: it tests for one of them."""
        return any(asked < release for asked in self._asked)

    @cached_property
    def _asked(self) -> list[tuple[int, int]]:
        """All torch releases that the file tests for."""
        found = (match.groups() for match in _RELEASE.finditer(self._text))
        return [(int(name or number), int(minor or rest)) for name, minor, number, rest in found]

    @cached_property
    def _ends(self) -> frozenset[int]:
        """The `id` of each statement that only some releases continue past."""
        return frozenset(map(id, filter(self._ends_otherwise, self._tree.all(cst.If, cst.Assert))))

    def _ends_otherwise(self, statement: Node) -> bool:
        """Whether only some releases continue past a statement: after an early return or an assertion."""
        if isinstance(statement, cst.Assert):
            return self._asks_for_version(statement.test)
        return (
            isinstance(statement, cst.If)
            and bool(self._tree.own(statement.body, cst.Return, cst.Raise))
            and self._asks_for_version(statement.test)
        )

    def _expects(self, handler: cst.ExceptHandler | cst.ExceptStarHandler) -> bool:
        if handler.type is None:
            return False
        return any(name.value in _EXPECTED for name in self._tree.within(handler.type, cst.Name))

    def _begins_anew(self, handler: cst.ExceptHandler | cst.ExceptStarHandler) -> bool:
        """Whether a handler is for the end of an iterator alone, which tells nothing of a release."""
        return isinstance(handler.type, cst.Name) and handler.type.value == "StopIteration"

    def _asks_for_version(self, test: Node) -> bool:
        """Whether a test mentions a version or looks for a name, directly or through its variables."""
        if _ASKS_FOR_VERSION.search(plain(test)):
            return True
        origins = (self._kinds.origin(name) for name in self._tree.within(test, cst.Name))
        return any(
            isinstance(origin, (cst.Call, cst.Comparison)) and _ASKS_FOR_VERSION.search(plain(origin))
            for origin in origins
        )
