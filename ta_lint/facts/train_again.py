"""The edit that puts a model back into training mode in each pass of a training loop."""

import libcst as cst

from ta_lint.core.finding import Site
from ta_lint.facts.file_facts import FileFacts
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.edits import Edit, ProposedFix, insert_line_after, insert_line_before
from ta_lint.syntax.layout import plain
from ta_lint.syntax.tree import LOOPS, Node


def train_again(module: FileFacts, switch: Site) -> ProposedFix | None:
    """Call `train()` at the start of the loop that trains, or, if the training follows the `eval()` there, before it."""
    tree, call = module.tree, module.call_at(switch)
    if call is None or not isinstance(call.func, cst.Attribute):
        return None
    loop = _training_loop(module, call)
    if loop is None or not isinstance(loop.body, cst.IndentedBlock):
        return None
    code = f"{module.verbatim(call.func.value)}.train()"
    block = tree.block(call)
    if not isinstance(block, cst.IndentedBlock):
        return None
    model = call.func.value
    after = [part for part in block.body if tree.before(call, part)]
    trains = next((part for part in after if _trains(module, part, model)), None)
    if trains is not None:
        return _with(insert_line_before(tree, _first(trains), code))
    if any(tree.before(backward, call) for backward in _backwards(module, loop)):
        return _with(insert_line_before(tree, _first(loop.body.body[0]), code))
    return _with(insert_line_after(tree, _first(block.body[-1]), code))


def _with(edit: Edit) -> ProposedFix:
    return ProposedFix("train in training mode", (edit,))


def _training_loop(module: FileFacts, call: cst.Call) -> cst.For | cst.While | None:
    """The innermost loop around a call that computes gradients."""
    return next(
        (
            above
            for above in module.tree.ancestors(call)
            if isinstance(above, LOOPS) and _backwards(module, above)
        ),
        None,
    )


def _backwards(module: FileFacts, region: Node) -> list[cst.Call]:
    return [call for call in module.tree.within(region, cst.Call) if called_name(call) == "backward"]


def _trains(module: FileFacts, statement: Node, model: Node) -> bool:
    """Whether a statement runs a model with gradients, or computes them."""
    runs = any(
        plain(call.func) == plain(model) and module.recording.records(call) is not False
        for call in module.tree.within(statement, cst.Call)
    )
    return runs or bool(_backwards(module, statement))


def _first(statement: Node) -> Node:
    """The statement itself if it is compound, else the first of its line."""
    return statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else statement
