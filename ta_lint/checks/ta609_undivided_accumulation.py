"""TA609: gradients of several batches are accumulated, but the loss is not divided by their number."""

import re
from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Kind, Suspicion
from ta_lint.facts.loops.order import Accumulation, LoopEvent
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.edits import ProposedFix, is_atom, wrap
from ta_lint.syntax.layout import plain
from ta_lint.syntax.tree import Node, argument, dotted, is_name, literal_text, spreads

KEYWORDS = ("*backward",)
AROUND = (
    "step",
    ("%", "range"),
)

# Names of code that rescales gradients, losses or learning rates.
_SCALES = regex(r"scale_grad|^grad$|normali[sz]e_grad|all_?reduce_grad|loss_scal|_?scale_loss_?factor")
_CLIPS = regex(r"clip_?grad")
# Hooks that see each gradient before it is used.
_HOOKS = frozenset({"register_hook", "register_post_accumulate_grad_hook", "register_step_pre_hook"})
_SUMS = regex(r"reduction\s*=\s*['\"]sum['\"]|size_average\s*=\s*False")
_OPTIMIZER = regex(r"torch\.optim\.[A-Z]\w+")
_ADAPTS = regex(r"torch\.optim\.(Ada(m|mW|max|grad|factor)|NAdam|RAdam|RMSprop|Rprop)")
_RATES = regex(r"lr|learning_rate|loss|grad|weight", re.IGNORECASE)


def check(module: FileFacts) -> Iterator[Suspicion]:
    if module.loops.framework:
        return
    for accumulation in module.order.accumulations:
        if plain(accumulation.count) == "1" or _is_divided(module, accumulation):
            continue
        count = module.code(accumulation.count)
        message = (
            f"gradients of `{count}` batches are summed: divide the loss by `{count}` to keep the step size"
        )
        related = ((accumulation.guard, "the step comes once for all of them"),)
        yield Suspicion(
            accumulation.backwards[0].call,
            message,
            related,
            _fix(module, accumulation),
            _is_scaled_away(module),
        )


def _is_scaled_away(module: FileFacts) -> bool:
    """Whether all optimizers of a file divide the gradient by its size, and nothing clips it before."""
    made = [call for call, _ in module.calls_matching(_OPTIMIZER)]
    if any("clip_grad" in (called_name(call) or "") for call in module.tree.all(cst.Call)):
        return False
    return bool(made) and all(_ADAPTS.fullmatch(module.qualified(call.func) or "") for call in made)


def _is_divided(module: FileFacts, accumulation: Accumulation) -> bool:
    """Whether the loss, gradients or learning rate are rescaled, possibly in code outside this file."""
    tree, loop = module.tree, accumulation.loop
    if any(event.via or _divides_itself(module, event) for event in accumulation.backwards):
        return True
    roots = tree.within(accumulation.count, cst.Name)[:1]
    return (
        any(_SCALES.search(name.value) for name in tree.within(loop, cst.Name))
        or any(_may_rescale(module, call) for call in tree.within(loop, cst.Call))
        or any(called_name(call) in _HOOKS for call in tree.all(cst.Call))
        or any(tree.contains(loop, bound.node) for root in roots for bound in module.names.bindings(root))
        or any(_is_rate(module, operation, accumulation) for operation in tree.all(cst.BinaryOperation))
        or any(_is_loss_divided(module, backward, accumulation) for backward in accumulation.backwards)
        or any(_is_loss_a_sum(module, backward, accumulation) for backward in accumulation.backwards)
    )


def _may_rescale(module: FileFacts, call: cst.Call) -> bool:
    """Whether a call gets parameters, and a function of the project changes their gradients, or nobody knows what it does."""
    if not any(_holds_parameters(module, arg.value) for arg in call.args):
        return False
    known = (module.qualified(call.func) or "").startswith(("torch.", "builtins."))
    if known or _CLIPS.search(called_name(call) or ""):
        return False
    function = module.calls.callee(call) or _kept_function(module, call.func)
    if function is None:
        return True
    grads = [node for node in module.tree.within(function, cst.Attribute) if node.attr.value == "grad"]
    return any(_is_changed(module, grad) for grad in grads)


def _holds_parameters(module: FileFacts, given: Node) -> bool:
    """Whether an argument is the parameters of a model, or the model or optimizer that holds them."""
    if module.kind(given) in (Kind.MODULE, Kind.OPTIMIZER):
        function = module.tree.parent[module.tree.parent[given]]
        return isinstance(function, cst.Call) and _is_of_project(module, function)
    made = module.kinds.origin(given)
    names = (called_name(call) for call in module.tree.within(made, cst.Call))
    return any(name in ("parameters", "named_parameters") for name in names)


def _is_of_project(module: FileFacts, call: cst.Call) -> bool:
    return module.calls.callee(call) is not None or _kept_function(module, call.func) is not None


def _kept_function(module: FileFacts, called: Node) -> cst.FunctionDef | None:
    """The function of the project that a variable or attribute holds: `self.normalise = rescale`."""
    origins = module.flow.of(called).origins
    found = {module.calls.function(origin.node) for origin in origins if not origin.path}
    return found.pop() if len(found) == 1 else None


def _is_changed(module: FileFacts, grad: Node) -> bool:
    """Whether a gradient is multiplied, divided or replaced: `p.grad.mul_(factor)`, `p.grad /= count`."""
    above = module.tree.parent[grad]
    while isinstance(above, cst.Attribute) and above.attr.value == "data":
        above = module.tree.parent[above]
    if isinstance(above, cst.Attribute):
        return above.attr.value.endswith("_") and above.attr.value != "zero_"
    return isinstance(above, (cst.AugAssign, cst.AssignTarget, cst.BinaryOperation))


def _divides_itself(module: FileFacts, backward: LoopEvent) -> bool:
    """Whether `accelerator.backward(loss)` and its like may divide the loss: it depends on how they were built."""
    func = backward.call.func
    if not isinstance(func, cst.Attribute) or func.value is backward.subject:
        return False
    made = module.kinds.construction(func.value)
    if made is None or module.qualified(made.func) != "accelerate.Accelerator" or spreads(made):
        return True
    return any(arg.keyword is not None and "accumulation" in arg.keyword.value for arg in made.args)


def _is_rate(module: FileFacts, operation: cst.BinaryOperation, accumulation: Accumulation) -> bool:
    """Whether something other than the loss is divided by the count, such as `lr / k`."""
    return (
        isinstance(operation.operator, cst.Divide)
        and plain(operation.right) == plain(accumulation.count)
        and not _is_number_of_loss(operation.left)
        and any(_RATES.search(name.value) for name in module.tree.within(operation.left, cst.Name))
    )


def _is_number_of_loss(value: Node) -> bool:
    """Whether a value is a plain number taken from a tensor, as for a report: `loss.item()`."""
    return isinstance(value, cst.Call) and called_name(value) in ("float", "item")


def _is_loss_divided(module: FileFacts, backward: LoopEvent, accumulation: Accumulation) -> bool:
    """Whether the loss is divided in its loop, or passes through code outside this file."""
    return any(_may_divide(module, node, accumulation) for node in _made_of(module, backward, accumulation))


def _made_of(module: FileFacts, backward: LoopEvent, accumulation: Accumulation) -> Iterator[Node]:
    """The expressions of the loop that a backward pass takes its loss from."""
    pending: list[Node] = [backward.subject]
    seen: set[Node] = set()
    while pending:
        node = pending.pop()
        if node not in seen:
            seen.add(node)
            yield node
            pending += _carried(module, node, accumulation)


def _is_loss_a_sum(module: FileFacts, backward: LoopEvent, accumulation: Accumulation) -> bool:
    """Whether a loss is the sum over a batch, or may be where the file has such sums: more batches are then one larger one."""
    calls = [node for node in _made_of(module, backward, accumulation) if isinstance(node, cst.Call)]
    means = [call.func for call in calls if called_name(call) == "mean"]
    sums = [
        _sums(module, call) for call in calls if not any(module.tree.contains(mean, call) for mean in means)
    ]
    return True in sums or (None in sums and _SUMS.search(module.source.text) is not None)


def _sums(module: FileFacts, call: cst.Call) -> bool | None:
    """Whether a call computes a sum over the batch, by its or its criterion's arguments; None if not known."""
    function = module.calls.callee(call)
    if function is not None:
        return any(map(_is_told_to_sum, module.tree.within(function, cst.Call)))
    made = module.kinds.construction(call.func)
    told = call if made is None else made
    if _is_told_to_sum(told):
        return True
    name = module.qualified(told.func)
    return False if called_name(call) == "mean" or (name or "").startswith("torch.") else None


def _is_told_to_sum(call: cst.Call) -> bool:
    """Whether arguments ask for a sum, or for an unknown reduction."""
    reduction, averaged = argument(call, "reduction"), argument(call, "size_average")
    return (reduction is not None and literal_text(reduction) not in ("mean", "batchmean")) or (
        averaged is not None and not is_name(averaged, "True")
    )


def _may_divide(module: FileFacts, node: Node, accumulation: Accumulation) -> bool:
    """Whether a node divides by the count, or may do so in unknown code."""
    if isinstance(node, cst.BinaryOperation):
        number = module.number(accumulation.count)
        return isinstance(node.operator, cst.Divide) and module.number(node.right) in (None, number)
    if isinstance(node, cst.AugAssign):
        return isinstance(node.operator, cst.DivideAssign)
    return isinstance(node, cst.Call) and _hides_division(module, node, accumulation)


def _carried(module: FileFacts, node: Node, accumulation: Accumulation) -> list[Node]:
    """The expressions that a node may take the loss from."""
    if isinstance(node, cst.BinaryOperation):
        return [node.left, node.right]
    if isinstance(node, cst.Name):
        return _values(module, node, accumulation)
    if isinstance(node, (cst.Attribute, cst.Subscript, cst.AugAssign)):
        return [node.value]
    if isinstance(node, cst.IfExp):
        return [node.body, node.orelse]
    if not isinstance(node, cst.Call):
        return []
    carried: list[Node] = []
    if isinstance(node.func, cst.Attribute) and not (module.qualified(node.func) or "").startswith("torch."):
        carried.append(node.func.value)
    if called_name(node) in ("scale", "scale_loss", "sum", "backward"):
        carried += [arg.value for arg in node.args[:1]]
    return carried


def _values(module: FileFacts, name: cst.Name, accumulation: Accumulation) -> list[Node]:
    """The values that a name is bound to in the loop."""
    return [
        binding.node if binding.how == "augment" else binding.value
        for binding in module.names.bindings(name)
        if binding.value is not None and module.tree.contains(accumulation.loop, binding.node)
    ]


def _hides_division(module: FileFacts, call: cst.Call, accumulation: Accumulation) -> bool:
    """Whether a call may divide by the count: it takes or mentions the count, or belongs to a wrapper or base class."""
    count = (dotted(accumulation.count) or module.code(accumulation.count)).rpartition(".")[2]
    name = called_name(call) or ""
    if name in ("div", "div_", "mul", "mul_", "true_divide", "sum", "detach"):
        return True
    if any(found.value == count for arg in call.args for found in module.tree.within(arg, cst.Name)):
        return True
    function = module.calls.callee(call)
    if function is not None:
        return any(found.value == count for found in module.tree.within(function, cst.Name)) or bool(
            [
                o
                for o in module.tree.within(function, cst.BinaryOperation)
                if isinstance(o.operator, cst.Divide)
            ]
        )
    receiver = call.func.value if isinstance(call.func, cst.Attribute) else None
    is_own = isinstance(receiver, cst.Name) and receiver.value == "self"
    klass = module.tree.enclosing(call, cst.ClassDef)
    return is_own and klass is not None and not module.classes.attribute(klass, name)


def _fix(module: FileFacts, accumulation: Accumulation) -> ProposedFix | None:
    """Divide the loss only in the backward pass, so that a loss logged later keeps its value."""
    backward = accumulation.backwards[0]
    if (
        len(accumulation.backwards) > 1
        or not isinstance(backward.subject, cst.Name)
        or backward.scaler is not None
    ):
        return None
    count = module.verbatim(accumulation.count)
    divisor = count if is_atom(accumulation.count) or module.number(accumulation.count) else f"({count})"
    is_argument = isinstance(module.tree.parent[backward.subject], cst.Arg)
    opening, closing = ("", "") if is_argument else ("(", ")")
    edits = wrap(backward.subject, opening, f" / {divisor}{closing}")
    return ProposedFix(f"divide the loss by `{count}`", edits)
