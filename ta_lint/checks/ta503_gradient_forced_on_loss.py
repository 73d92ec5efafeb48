"""TA503: the loss is made to require a gradient, which hides that its graph does not reach the model."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.loops.gradients import Flow
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.kinds import Kind
from ta_lint.syntax.tree import Node, argument, dotted

KEYWORDS = (("requires_grad", "requires_grad_"),)
AROUND = (("*backward", "*scaler"),)

# Functions that copy values into a new tensor.
_COPIES = frozenset({"torch.tensor", "torch.autograd.Variable", "torch.FloatTensor"})


def check(module: FileFacts) -> Iterator[Suspicion]:
    seen: set[Node] = set()
    for loss in module.gradients.losses:
        for term in module.gradients.terms(loss):
            forced = [term] if _forces(module, term) else _forcings(module, term, loss.call)
            for node in forced:
                if node not in seen and not _is_differentiated(module, node):
                    seen.add(node)
                    message = (
                        f"`{module.code(node)}` hides that the loss has no graph, "
                        "so nothing trains: find what cuts it off"
                    )
                    related = ((loss.call, "the backward pass starts here"),)
                    yield Suspicion(node, message, related=related)


def _forces(module: FileFacts, term: Node) -> bool:
    """Whether a term of the loss is `x.requires_grad_()` or `torch.tensor(x, requires_grad=True)` of a computed `x`."""
    if not isinstance(term, cst.Call):
        return False
    if isinstance(term.func, cst.Attribute) and term.func.attr.value == "requires_grad_":
        return _is_asked_for(module, term) and _is_computed(module, term.func.value)
    forced = argument(term, "requires_grad")
    return (
        forced is not None
        and module.boolean(forced) is True
        and module.qualified(term.func) in _COPIES
        and bool(term.args)
        and _is_computed(module, term.args[0].value)
    )


def _forcings(module: FileFacts, term: Node, backward: Node) -> list[Node]:
    """The statements before a backward pass that make a term of the loss require a gradient."""
    path = dotted(term)
    if path is None:
        return []
    tree = module.tree
    home = tree.home(term)
    reaching = module.names.definition(term) if isinstance(term, cst.Name) else None
    found: list[Node] = []
    for attribute in tree.own(home, cst.Attribute):
        if dotted(attribute.value) != path or not tree.before(attribute, backward):
            continue
        if reaching is not None and not tree.before(reaching.node, attribute):
            continue
        if not _holds_something_computed(module, attribute.value):
            continue
        above = tree.parent[attribute]
        if attribute.attr.value == "requires_grad_" and isinstance(above, cst.Call):
            if _is_asked_for(module, above) and above.func is attribute:
                found.append(above)
        elif attribute.attr.value == "requires_grad" and isinstance(above, cst.AssignTarget):
            statement = tree.parent[above]
            if isinstance(statement, cst.Assign) and module.boolean(statement.value) is True:
                found.append(statement)
    return found


def _holds_something_computed(module: FileFacts, variable: Node) -> bool:
    """Whether a variable holds a loss: its value is computed, or, if the value is unknown, its name says so."""
    if isinstance(variable, cst.Name):
        bindings = module.names.bindings(variable)
        reaching = module.names.definition(variable)
        values = [
            binding.value
            for binding in ([reaching] if reaching is not None else bindings)
            if binding.how in ("assign", "augment") and binding.value is not None
        ]
        if values:
            return any(_is_computed(module, value) for value in values)
    return "loss" in (dotted(variable) or "").lower()


def _is_computed(module: FileFacts, value: Node) -> bool:
    """Whether a value may come from a model: numbers and new tensors do not."""
    gradient = module.gradients.of(value)
    return gradient.flow is not Flow.NO or gradient.cut is not None


def _is_differentiated(module: FileFacts, forced: Node) -> bool:
    """Whether the file needs the variable's own gradient: it reads `grad`, or passes the variable to an optimizer or to
    `torch.autograd.grad`.
    """
    tree = module.tree
    statement = tree.statement(forced)
    if isinstance(statement, cst.Assign) and statement.value is forced:
        variable: Node = statement.targets[0].target
    elif isinstance(forced, cst.Call) and called_name(forced) == "requires_grad_":
        variable = cst.ensure_type(forced.func, cst.Attribute).value
    else:
        return False
    mentions: list[Node] = list(module.names.mentions(variable)) if isinstance(variable, cst.Name) else []
    if (path := dotted(variable)) is not None and not mentions:
        mentions = [attribute for attribute in tree.all(cst.Attribute) if dotted(attribute) == path]
    return any(
        (isinstance(above := tree.parent[mention], cst.Attribute) and above.attr.value == "grad")
        or any(
            _asks_for_gradients(module, call)
            for call in tree.ancestors(mention)
            if isinstance(call, cst.Call)
        )
        for mention in mentions
    )


def _asks_for_gradients(module: FileFacts, call: cst.Call) -> bool:
    return module.qualified(call.func) == "torch.autograd.grad" or module.kind(call) is Kind.OPTIMIZER


def _is_asked_for(module: FileFacts, call: cst.Call) -> bool:
    """Whether a `requires_grad_` call sets the flag rather than clearing it."""
    return not call.args or module.boolean(call.args[0].value) is True
