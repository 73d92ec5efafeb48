"""The code that a test expects to fail: below `with pytest.raises(...)`, or given to `self.assertRaises(...)`."""

import ast

from ta_lint.core.finding import Finding
from ta_lint.core.source import Source

# By their last names, as imports and test cases spell them.
_EXPECTING = frozenset({"RaisesGroup", "assert_raises", "assert_raises_regex", "raises"})
_OF_A_TEST_CASE = "assertRaises"  # and `assertRaisesRegex`


class ExpectedFailures:
    """The lines of one file that are expected to fail."""

    def __init__(self, source: Source) -> None:
        self._spans: list[tuple[int, int]] = []
        syntax = source.syntax if "aises" in source.text else None  # as in all these names
        for node in ast.walk(syntax) if isinstance(syntax, ast.Module) else ():
            if _expects(node):
                assert isinstance(node, ast.stmt | ast.expr)
                self._spans.append((node.lineno, node.end_lineno or node.lineno))

    def hold(self, finding: Finding) -> bool:
        """Whether a finding is about nothing but code that is expected to fail."""
        return any(start <= finding.site.line and finding.site.end_line <= end for start, end in self._spans)


def _expects(node: ast.AST) -> bool:
    if isinstance(node, ast.With | ast.AsyncWith):
        return any(_is_expectation(item.context_expr) for item in node.items)
    return isinstance(node, ast.Call) and len(node.args) > 1 and _is_expectation(node)


def _is_expectation(node: ast.expr) -> bool:
    if not isinstance(node, ast.Call):
        return False
    called = node.func
    name = (
        called.attr
        if isinstance(called, ast.Attribute)
        else called.id
        if isinstance(called, ast.Name)
        else ""
    )
    return name in _EXPECTING or name.startswith(_OF_A_TEST_CASE)
