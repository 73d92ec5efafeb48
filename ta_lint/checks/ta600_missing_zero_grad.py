"""TA600: a training loop steps the optimizer but never clears gradients, so each step adds to all before it."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import Clearing, FileFacts, Suspicion, TrainingLoop
from ta_lint.syntax.edits import Edit, ProposedFix, insert_line_before, remove_statement
from ta_lint.syntax.layout import plain
from ta_lint.syntax.tree import dotted

KEYWORDS = ("step",)
AROUND = ("*backward",)


def check(module: FileFacts) -> Iterator[Suspicion]:
    for loop in module.training_loops:
        if module.clearings.when(loop) is Clearing.NEVER:
            step = loop.steps[0].call
            message = (
                f"`{module.code(step)}` uses the sum of all gradients so far: call `zero_grad()` in the loop"
            )
            related = tuple((repeat, "the loop") for repeat in loop.loops)
            yield Suspicion(step, message, related=related, fix=clear_first(loop, module))


def clear_first(loop: TrainingLoop, module: FileFacts, moved: cst.Expr | None = None) -> ProposedFix | None:
    """Clear the gradients at the start of each pass, with a misplaced statement or a new one.

    Only if each step follows its backward in one statement list: otherwise gradients may accumulate on purpose.
    """
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
