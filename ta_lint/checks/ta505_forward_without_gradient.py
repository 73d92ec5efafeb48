"""TA505: the loss of a `backward()` was computed under `no_grad`, so there is no graph to traverse."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.loops.loops import BACKWARD
from ta_lint.facts.values.names import Binding
from ta_lint.syntax.tree import Node

KEYWORDS = (("no_grad", "inference_mode", "set_grad_enabled"),)
AROUND = ("*backward",)

_DEPTH = 6

# Methods and functions that create a leaf, or hide the gradient's path.
_REQUIRES = frozenset({"requires_grad_", "retain_grad", "apply"})

# Methods whose arguments are devices, dtypes and sizes, and losses whose target is a class index.
_MOVES = frozenset(
    "bool clone contiguous cpu cuda detach double expand flatten float half int long permute reshape size squeeze to "
    "transpose type unsqueeze view".split()
)
_OF_CLASSES = regex(r"torch\.nn\.(functional\.(nll_loss|cross_entropy)|NLLLoss|CrossEntropyLoss)")


def check(module: FileFacts) -> Iterator[Suspicion]:
    for call in module.tree.all(cst.Call):
        if not isinstance(call.func, cst.Attribute) or call.func.attr.value not in BACKWARD:
            continue
        loss = _start(module, call)
        if loss is None or _asks_for_gradient(module, call):
            continue
        forward = _forward(module, loss, _DEPTH)
        if forward is not None:
            message = (
                f"`{module.code(call)}` has no graph: `{module.code(forward)}` is computed without gradient"
            )
            decision = module.recording.around(forward)
            related: tuple[tuple[Node, str], ...] = ((forward, "computed here"),)
            if decision is not None and isinstance(decision.node, cst.With):
                related = (
                    (forward, "computed here"),
                    (decision.node.items[0], "recording is switched off here"),
                )
            yield Suspicion(call, message, related=related)


def _start(module: FileFacts, call: cst.Call) -> Node | None:
    """The loss of `loss.backward()`, `scaler.scale(loss).backward()`, `accelerator.backward(loss)`."""
    given = [arg.value for arg in call.args if arg.keyword is None and not arg.star]
    receiver = call.func.value if isinstance(call.func, cst.Attribute) else None
    if isinstance(receiver, cst.Call) and receiver.args and module.kinds.is_scaler(receiver.func):
        return receiver.args[0].value
    if isinstance(receiver, cst.Call) and isinstance(receiver.func, cst.Attribute):
        scales = receiver.func.attr.value == "scale" and len(receiver.args) == 1
        return receiver.args[0].value if scales else receiver
    return given[0] if given else receiver


def _asks_for_gradient(module: FileFacts, call: cst.Call) -> bool:
    """Whether the function creates leaves itself, so that a graph may start at any of its tensors."""
    home = module.tree.home(call)
    if any(name.value in _REQUIRES for name in module.tree.within(home, cst.Name)):
        return True
    keywords = (arg.keyword for arg in module.tree.within(home, cst.Arg))
    targets = (item.target for item in module.tree.within(home, cst.AssignTarget))
    set_by_hand = any(
        isinstance(target, cst.Attribute) and target.attr.value == "requires_grad" for target in targets
    )
    return set_by_hand or any(
        keyword is not None and keyword.value == "requires_grad" for keyword in keywords
    )


def _forward(module: FileFacts, node: Node, depth: int) -> Node | None:
    """The forward pass without gradient that a loss comes from, if no part of the loss can have a graph."""
    found: list[Node] = []
    return found[0] if _is_bare(module, node, depth, found) and found else None


def _is_bare(module: FileFacts, node: Node, depth: int, found: list[Node]) -> bool:
    """Whether a value certainly has no graph; collects the model calls that are not recorded."""
    if depth == 0:
        return False
    if isinstance(node, (cst.Integer, cst.Float, cst.SimpleString, cst.UnaryOperation)):
        return not isinstance(node, cst.UnaryOperation) or _is_bare(module, node.expression, depth, found)
    if isinstance(node, cst.Tuple):
        return all(_is_bare(module, element.value, depth, found) for element in node.elements)
    if isinstance(node, cst.BinaryOperation):
        return all(_is_bare(module, side, depth, found) for side in (node.left, node.right))
    if isinstance(node, cst.Subscript):
        return _is_bare(module, node.value, depth, found)
    if isinstance(node, cst.Attribute):
        return _is_bare(module, node.value, depth, found)  # outputs.loss
    if isinstance(node, cst.Name):
        return _is_bare_variable(module, node, depth, found)
    if isinstance(node, cst.Call):
        return _is_bare_call(module, node, depth, found)
    return False


def _is_bare_variable(module: FileFacts, name: cst.Name, depth: int, found: list[Node]) -> bool:
    binding: Binding | None = module.names.definition(name)
    if binding is None or binding.value is None:
        return False
    if binding.how == "for":
        return True  # batches are data
    if binding.how not in ("assign", "unpack"):
        return False
    value = binding.value
    off = isinstance(value, cst.Call) and module.recording.records(value) is False
    if off and _runs_model(module, value):
        found.append(value)
        return True
    return _is_bare(module, value, depth - 1, found)


def _is_bare_call(module: FileFacts, call: cst.Call, depth: int, found: list[Node]) -> bool:
    if module.recording.records(call) is False and _runs_model(module, call):
        found.append(call)
        return True
    qualified = module.qualified(call.func) or ""
    made = module.kinds.construction(call.func)
    criterion = (module.qualified(made.func) or "") if made is not None else ""
    is_criterion = criterion.startswith("torch.nn.") and criterion.endswith("Loss")
    receiver = call.func.value if isinstance(call.func, cst.Attribute) else None
    is_method = receiver is not None and not qualified and not is_criterion
    if is_method and any(
        module.calls_in_loop.acts_as_model(node) for node in (call.func, receiver) if node is not None
    ):
        return False
    if (
        not (qualified.startswith("torch.") or is_criterion or is_method)
        or module.calls.callee(call) is not None
    ):
        return False
    parts: list[Node] = [arg.value for arg in call.args]
    if _OF_CLASSES.fullmatch(criterion if is_criterion else qualified):
        parts = parts[:1]
    elif is_method and isinstance(call.func, cst.Attribute) and call.func.attr.value in _MOVES:
        parts = []
    parts += [receiver] if is_method and receiver is not None else []
    return all(_is_constant(part) or _is_bare(module, part, depth, found) for part in parts)


def _runs_model(module: FileFacts, call: Node) -> bool:
    return isinstance(call, cst.Call) and module.calls_in_loop.acts_as_model(
        module.calls_in_loop.called(call)
    )


def _is_constant(node: Node) -> bool:
    return isinstance(node, cst.Name) and node.value in ("None", "True", "False")
