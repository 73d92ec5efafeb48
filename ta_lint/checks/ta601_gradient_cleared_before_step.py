"""TA601: gradients are cleared after `backward()` and before `step()`, so the step has none."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Kind, StepCall, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.edits import ProposedFix, insert_line_before, remove_statement
from ta_lint.syntax.layout import plain
from ta_lint.syntax.tree import Node, argument, dotted

KEYWORDS = ("zero_grad",)
AROUND = (
    "*backward",
    "step",
)

# Calls that leave gradients unchanged, on any object.
_KEEP_GRADIENTS = frozenset(
    "add_scalar append clip_grad_norm_ clip_grad_value_ cpu debug detach flush format get_last_lr info item log "
    "log_metrics mean named_parameters parameters perf_counter set_description set_postfix state_dict sum synchronize time unscale_ warning "
    "write zero_grad".split()
)
_COMPUTES_GRADIENTS = regex(
    r"torch\.(autograd|func|utils\.checkpoint|optim|distributed)\..*|builtins\.(exec|eval)"
)


def check(module: FileFacts) -> Iterator[Suspicion]:
    for step in module.loops.steps:
        clear = _clear_before(step, module)
        backward = _backward_before(clear, step, module) if clear is not None else None
        if clear is not None and backward is not None and not _is_skipped(clear, backward, step, module):
            message = (
                f"`{module.code(clear)}` clears what `{module.code(backward)}` computed, "
                f"before `{module.code(step.call)}` can use it"
            )
            related = ((backward, "the gradients are computed here"), (step.call, "the step that has none"))
            yield Suspicion(clear, message, related=related, fix=_moved(clear, backward, step, module))


def _moved(clear: cst.Call, backward: cst.Call, step: StepCall, module: FileFacts) -> ProposedFix | None:
    """Move the clearing before the backward pass, if that is the only one for the step and nothing is conditional."""
    tree = module.tree
    blocks = {tree.block(call) for call in (clear, backward, step.call)}
    statement = tree.statement(backward)
    others = module.loops.backwards(tree.block(clear))
    if len(blocks) > 1 or not isinstance(statement, cst.Expr) or others != [backward]:
        return None
    edits = (insert_line_before(tree, statement, module.verbatim(clear)), remove_statement(tree, clear))
    return ProposedFix("clear before the backward", edits)


def _clear_before(step: StepCall, module: FileFacts) -> cst.Call | None:
    """The `zero_grad()` that certainly runs before a step, with nothing in between that could compute gradients."""
    for statement in module.tree.preceding(step.call):
        clear = next(
            (c for c in module.tree.within(statement, cst.Call) if _clears_for(step, c, module)), None
        )
        if clear is not None:
            return clear if isinstance(statement, cst.Expr) and statement.value is clear else None
        if not _keeps_gradients(statement, step, module):
            return None
    return None


def _backward_before(clear: cst.Call, step: StepCall, module: FileFacts) -> cst.Call | None:
    """The last `backward()` before a `zero_grad()`, if no step or other clearing comes between."""
    for statement in module.tree.preceding(clear):
        if backwards := module.loops.backwards(statement):
            return backwards[-1]
        calls = module.tree.within(statement, cst.Call)
        if any(_clears_for(step, call, module) or module.loops.step(call) is not None for call in calls):
            return None
    return None


def _is_skipped(clear: Node, backward: Node, step: StepCall, module: FileFacts) -> bool:
    """Whether a branch drops the gradients of a bad batch on purpose: another path steps with them."""
    tree = module.tree
    branch = next((above for above in tree.ancestors(clear) if isinstance(above, cst.If)), None)
    if branch is None or tree.contains(branch, backward) or not tree.contains(branch.body, step.call):
        return False
    return any(
        tree.home(other.call) is tree.home(step.call)
        and not tree.contains(branch.body, other.call)
        and plain(other.optimizer) == plain(step.optimizer)
        for other in module.loops.steps
    )


def _clears_for(step: StepCall, call: cst.Call, module: FileFacts) -> bool:
    """Whether a call clears all gradients that a step uses."""
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "zero_grad":
        return False
    receiver = call.func.value
    return plain(receiver) == plain(step.optimizer) or _is_what_is_optimized(receiver, step, module)


def _is_what_is_optimized(model: cst.BaseExpression, step: StepCall, module: FileFacts) -> bool:
    """Whether the optimizer was built in this file from exactly `model.parameters()`."""
    made = module.kinds.construction(step.optimizer)
    if made is None or module.kind(made) is not Kind.OPTIMIZER:
        return False
    params = argument(made, "params", 0)
    if not isinstance(params, cst.Call) or params.args or not isinstance(params.func, cst.Attribute):
        return False
    return params.func.attr.value == "parameters" and _is_same_variable(params.func.value, model, module)


def _is_same_variable(first: Node, second: Node, module: FileFacts) -> bool:
    """Two uses of one name in one scope; `self` is the same in all methods."""
    if dotted(first) is None or dotted(first) != dotted(second):
        return False
    one, other = module.tree.within(first, cst.Name)[0], module.tree.within(second, cst.Name)[0]
    return one.value == "self" or module.names.bindings(one) == module.names.bindings(other)


def _keeps_gradients(statement: Node, step: StepCall, module: FileFacts) -> bool:
    """Whether a statement certainly computes no gradients, and does not rebind the optimizer's name."""
    tree = module.tree
    bindings = [b for name in tree.within(step.optimizer, cst.Name)[:1] for b in module.names.bindings(name)]
    return (
        not any(True for _ in module.clearings.writes(statement))
        and not tree.within(statement, cst.Yield, cst.Await)
        and not any(tree.contains(statement, binding.node) for binding in bindings)
        and all(_is_known(call, module) for call in tree.within(statement, cst.Call))
    )


def _is_known(call: cst.Call, module: FileFacts) -> bool:
    qualified = module.qualified(call.func)
    if qualified is not None and qualified.startswith(("torch.", "builtins.")):
        return _COMPUTES_GRADIENTS.fullmatch(qualified) is None
    if called_name(call) == "step":  # `step` of an agent or trainer may do anything
        return module.loops.step(call) is not None or "sched" in plain(call.func)
    return called_name(call) in _KEEP_GRADIENTS
