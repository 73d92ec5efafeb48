"""TA211: `backward(retain_graph=True)` where each pass builds a new graph and uses it once."""

from collections.abc import Iterator
from functools import cache, partial

import libcst as cst

from ta_lint.core.protocol import Action
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.loops.gradients import Flow
from ta_lint.facts.loops.loops import Loop
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.edits import ProposedFix, remove_argument
from ta_lint.syntax.layout import plain
from ta_lint.syntax.tree import Node

KEYWORDS = ("retain_graph",)
AROUND = ("*backward",)

# Other functions that traverse a graph.
_DIFFERENTIATES = frozenset(
    {"grad", "gradcheck", "jacobian", "hessian", "vjp", "jvp", "register_hook", "penalty"}
)

_COMPUTED = (cst.BinaryOperation, cst.Subscript, cst.Dict)


def check(module: FileFacts) -> Iterator[Suspicion]:
    if module.loops.framework is not None:
        return
    backwards = cache(partial(_backwards, module))
    for backward in module.tree.all(cst.Call):
        if called_name(backward) != "backward":
            continue
        kept = next(
            (arg for arg in backward.args if arg.keyword and arg.keyword.value == "retain_graph"), None
        )
        loops = module.tree.loops(backward)
        if kept is None or not loops or module.boolean(kept.value) is not True:
            continue
        if _is_the_only_way(backward, backwards(loops[0])) and _is_built_anew(module, backward, loops[0]):
            message = (
                f"`{module.code(backward)}` keeps a graph that is not used again: leave `retain_graph` out"
            )
            fix = ProposedFix("let the graph go", (remove_argument(backward, kept),))
            yield Suspicion(
                backward, message, related=((loops[0], "each pass builds its graph anew"),), fix=fix
            )


def _backwards(module: FileFacts, loop: Loop) -> list[cst.Call] | None:
    """The backward calls of a pass; None unless it makes a step, and goes through a graph in no other way."""
    events = module.calls_in_loop.events(loop.body)
    if any((called_name(event.call) or "") in _DIFFERENTIATES for event in events):
        return None
    if not any(module.loops.step(call) is not None for call in module.tree.own(loop.body, cst.Call)):
        return None
    return [event.call for event in events if event.action is Action.BACKWARD]


def _is_the_only_way(backward: cst.Call, backwards: list[cst.Call] | None) -> bool:
    """Whether a pass runs a single backward pass and a step, so that it is plain training."""
    creates = any(arg.keyword and arg.keyword.value == "create_graph" for arg in backward.args)
    return not creates and backwards is not None and all(call is backward for call in backwards)


def _is_built_anew(module: FileFacts, backward: cst.Call, loop: Loop) -> bool:
    """Whether all inputs of the loss are bound in the pass, or before the loop to something without a graph."""
    if not isinstance(backward.func, cst.Attribute):
        return False
    seen: set[Node] = set()
    pending: list[Node] = [_loss(backward.func.value)]
    calls_model = False
    while pending:
        node = pending.pop()
        for name in module.tree.within(node, cst.Name):
            last = module.names.definition(name)
            for binding in [last] if last is not None else module.names.bindings(name):
                if binding.node in seen:
                    continue
                seen.add(binding.node)
                inside = module.tree.contains(loop, binding.node)
                if not inside and not _has_no_graph(module, binding.value, name):
                    return False
                if isinstance(binding.value, _COMPUTED) and not inside:
                    pending.append(binding.value)
                if inside and binding.value is not None and binding.how in ("assign", "unpack", "augment"):
                    if binding.how != "augment" and _carries(module, binding.value, name, loop):
                        return False
                    pending.append(binding.value)
                    calls_model = calls_model or bool(module.tree.within(binding.value, cst.Call))
    return calls_model


def _loss(start: Node) -> Node:
    """The loss in `scaler.scale(loss)`."""
    scales = isinstance(start, cst.Call) and called_name(start) == "scale" and len(start.args) == 1
    return start.args[0].value if scales and isinstance(start, cst.Call) else start


def _carries(module: FileFacts, value: Node, name: cst.Name, loop: Loop) -> bool:
    """Whether a pass computes a variable from its previous value, as for a recurrent state."""
    before = [b for b in module.names.bindings(name) if not module.tree.contains(loop, b.node)]
    return bool(before) and any(part.value == name.value for part in module.tree.within(value, cst.Name))


def _has_no_graph(module: FileFacts, value: Node | None, name: cst.Name) -> bool:
    """Whether a value bound before a loop is a model, a constant, data, or something else without a graph.

    The output of a model has a graph, and a computed value may have one.
    """
    if module.calls_in_loop.acts_as_model(name) or value is None:
        return True
    if isinstance(value, _COMPUTED):  # has no graph if its parts have none
        return all(_has_no_graph(module, call, name) for call in module.tree.within(value, cst.Call))
    if isinstance(value, cst.Call):
        qualified = module.qualified(value.func)
        if qualified is not None:
            return "requires_grad" not in plain(value)
        function = module.calls.callee(value)
        if function is not None:
            return module.gradients.of(value).flow is Flow.NO or _only_prepares(module, function, value)
        return not module.calls_in_loop.acts_as_model(value.func) and called_name(value) not in (
            "forward",
            "encode",
            "embed",
        )
    return isinstance(
        value, (cst.Name, cst.Attribute, cst.Integer, cst.Float, cst.List, cst.Tuple, cst.SimpleString)
    )


def _only_prepares(module: FileFacts, function: cst.FunctionDef, call: cst.Call) -> bool:
    """Whether a function of the project runs no model and sees no parameter: it reads settings, or loads data."""
    names = {name.value for name in module.tree.within(function, cst.Name)}
    return (
        not names & {"self", "Parameter", "requires_grad", "requires_grad_"}
        and not any(
            module.calls_in_loop.acts_as_model(inner.func)
            for inner in module.tree.within(function.body, cst.Call)
        )
        and all(module.gradients.of(arg.value).flow is not Flow.YES for arg in call.args)
    )
