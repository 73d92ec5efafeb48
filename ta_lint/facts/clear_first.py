"""The edit that clears gradients at the start of each pass of a training loop."""

import libcst as cst

from ta_lint.core.finding import Site
from ta_lint.facts.file_facts import FileFacts
from ta_lint.facts.loops.loops import TrainingLoop
from ta_lint.syntax.edits import Edit, ProposedFix, insert_line_before, remove_statement
from ta_lint.syntax.layout import plain
from ta_lint.syntax.tree import dotted


def clear_first(module: FileFacts, step: Site) -> ProposedFix | None:
    """Clear the gradients that a step uses in each pass of its loop, with a misplaced statement or a new one.

    Only if each step follows its backward in one statement list: otherwise gradients may accumulate on purpose.
    """
    for loop in module.training_loops:
        if any(module.places.span(one.call)[:2] == (step.line, step.column) for one in loop.steps):
            return _clear_in(loop, module, _misplaced(loop, module))
    return None


def _clear_in(loop: TrainingLoop, module: FileFacts, moved: cst.Expr | None) -> ProposedFix | None:
    tree, region = module.tree, loop.region
    optimizers = {plain(step.optimizer) for step in loop.steps}
    blocks = {tree.block(call) for call in (*loop.backwards, *(step.call for step in loop.steps))}
    optimizer = loop.steps[0].optimizer
    if (
        len(optimizers) > 1
        or len(blocks) > 1
        or dotted(optimizer) is None
        or isinstance(region, cst.FunctionDef)
    ):
        return None
    name = tree.within(optimizer, cst.Name)[0]
    if module.names.is_bound_in(name, region):
        return None
    code = module.verbatim(moved.value) if moved is not None else f"{dotted(optimizer)}.zero_grad()"
    edits: list[Edit] = [insert_line_before(tree, region.body.body[0], code)]
    if moved is not None:
        edits.append(remove_statement(tree, moved))
    return ProposedFix("clear the gradients in each pass", tuple(edits))


def _misplaced(loop: TrainingLoop, module: FileFacts) -> cst.Expr | None:
    """The same optimizer's `zero_grad()` before the loop, in the same statement list."""
    optimizer = loop.steps[0].optimizer
    for statement in module.tree.preceding(loop.region):
        call = statement.value if isinstance(statement, cst.Expr) else None
        if (
            isinstance(statement, cst.Expr)
            and isinstance(call, cst.Call)
            and isinstance(call.func, cst.Attribute)
            and call.func.attr.value == "zero_grad"
            and plain(call.func.value) == plain(optimizer)
            and module.tree.block(statement) is module.tree.block(loop.region)
        ):
            return statement
    return None
