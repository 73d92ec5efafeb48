"""Import statements: which packages they load, and where a file first loads one."""

import libcst as cst

from ta_lint.syntax.tree import Node, Tree, dotted

# Packages that import torch first of all, so that an `import torch` above them changes no order.
_ON_TORCH = frozenset({"functorch", "torchaudio", "torchtext", "torchvision"})


def imported_before(package: str, at: Node, tree: Tree) -> Node | None:
    """The first top-level statement that loads a package; None if there is none before the node `at`."""
    loading = {package, *(_ON_TORCH if package == "torch" else ())}
    for statement in tree.root.body:
        if tree.contains(statement, at):
            return None
        small = statement.body if isinstance(statement, cst.SimpleStatementLine) else ()
        if any(loading & packages(part) for part in small):
            return statement
    return None


def packages(statement: Node) -> set[str]:
    """The top-level packages that a statement imports."""
    if isinstance(statement, cst.Import):
        return {(dotted(alias.name) or "").partition(".")[0] for alias in statement.names}
    if isinstance(statement, cst.ImportFrom) and statement.module is not None and not statement.relative:
        return {(dotted(statement.module) or "").partition(".")[0]}
    return set()
