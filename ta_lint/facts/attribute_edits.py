"""The edits that do what an assignment to an attribute was meant to."""

import libcst as cst

from ta_lint.core.finding import Site
from ta_lint.facts.file_facts import FileFacts
from ta_lint.syntax.edits import ProposedFix, insert_line_before, remove_statement, replace
from ta_lint.syntax.tree import Node, dotted


def call_instead(module: FileFacts, attribute: Site, method: str) -> ProposedFix | None:
    """`model.requires_grad_(False)` for `model.requires_grad = False`."""
    found = _assigned(module, attribute)
    if found is None:
        return None
    statement, target = found
    code = f"{module.verbatim(target.value)}.{method}({module.verbatim(statement.value)})"
    return ProposedFix(f"call `{method}`", (replace(statement, code),))


def set_in_groups(module: FileFacts, attribute: Site) -> ProposedFix | None:
    """A loop over the groups of an optimizer, if the statement has its own line and its value is a name or number."""
    found = _assigned(module, attribute)
    if found is None:
        return None
    statement, target = found
    line = module.tree.parent[statement]
    simple = isinstance(statement.value, (cst.Name, cst.Attribute, cst.Float, cst.Integer))
    alone = isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1
    if not simple or not alone or not _is_free("param_group", statement, module):
        return None
    code = (
        f"for param_group in {module.verbatim(target.value)}.param_groups:\n"
        f'    param_group["lr"] = {module.verbatim(statement.value)}'
    )
    edits = (insert_line_before(module.tree, statement, code), remove_statement(module.tree, statement))
    return ProposedFix("set the rate of every group", edits)


def _assigned(module: FileFacts, attribute: Site) -> tuple[cst.Assign, cst.Attribute] | None:
    """The statement that assigns to an attribute alone, and the attribute."""
    for statement in module.tree.all(cst.Assign):
        target = statement.targets[0].target
        at = module.places.span(target)[:2]
        if isinstance(target, cst.Attribute) and at == (attribute.line, attribute.column):
            return (statement, target) if len(statement.targets) == 1 else None
    return None


def _is_free(name: str, statement: Node, module: FileFacts) -> bool:
    """Whether a name is used only in other loops, if at all."""
    return all(
        (loop := module.tree.enclosing(other, cst.For)) is not None
        and dotted(loop.target) == name
        and not module.tree.contains(loop, statement)
        for other in module.tree.all(cst.Name)
        if other.value == name
    )
