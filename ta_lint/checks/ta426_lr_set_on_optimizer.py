"""TA426: `optimizer.lr = x` sets a plain attribute and does not change the learning rate."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Kind, Suspicion
from ta_lint.syntax.edits import ProposedFix, insert_line_before, remove_statement
from ta_lint.syntax.tree import Node, dotted

KEYWORDS = (("lr", "learning_rate"),)
AROUND = ("optim",)

_RATES = ("lr", "learning_rate")
_OF_TORCH = regex(r"torch\.optim\.[A-Z]\w*")


def check(module: FileFacts) -> Iterator[Suspicion]:
    for statement in module.tree.all(cst.Assign):
        target = statement.targets[0].target
        if (
            len(statement.targets) == 1
            and isinstance(target, cst.Attribute)
            and target.attr.value in _RATES
            and _is_of_torch(target.value, module)
            and not _is_read(target, module)
        ):
            message = f"`{module.code(target)}` does not set the learning rate: set it in `param_groups`"
            yield Suspicion(statement, message, fix=_fix(statement, target, module))


def _is_of_torch(node: Node, module: FileFacts) -> bool:
    """Whether an expression is certainly an optimizer of torch, which stores its settings in `param_groups`."""
    if module.kind(node) is not Kind.OPTIMIZER:
        return False
    origin = module.kinds.origin(node)
    if isinstance(origin, cst.Param) and origin.annotation is not None:
        made = module.qualified(origin.annotation.annotation)
        return made is not None and _OF_TORCH.fullmatch(made) is not None
    call = module.kinds.construction(node)
    made_by = [call] if call is not None else [one.node for one in module.flow.of(node).origins]
    return bool(made_by) and all(_makes_one(one, module) for one in made_by)


def _makes_one(node: Node, module: FileFacts) -> bool:
    """Whether an expression builds an optimizer of torch."""
    return isinstance(node, cst.Call) and _OF_TORCH.fullmatch(module.qualified(node.func) or "") is not None


def _is_read(target: cst.Attribute, module: FileFacts) -> bool:
    """Whether something reads the attribute, so that it may be deliberate."""
    return any(
        other.attr.value == target.attr.value
        and dotted(other.value) == dotted(target.value)
        and not isinstance(module.tree.parent[other], cst.AssignTarget)
        for other in module.tree.all(cst.Attribute)
    )


def _fix(statement: cst.Assign, target: cst.Attribute, module: FileFacts) -> ProposedFix | None:
    """A loop over the groups, if the statement has its own line and its value is a name or number."""
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


def _is_free(name: str, statement: Node, module: FileFacts) -> bool:
    """Whether a name is used only in other loops, if at all."""
    return all(
        (loop := module.tree.enclosing(other, cst.For)) is not None
        and dotted(loop.target) == name
        and not module.tree.contains(loop, statement)
        for other in module.tree.all(cst.Name)
        if other.value == name
    )
