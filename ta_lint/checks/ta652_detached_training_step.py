"""TA652: a Lightning training step returns a loss without its graph, so Lightning cannot train with it."""

from collections.abc import Iterator, Sequence

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.tree import Node, argument

KEYWORDS = ("training_step",)
AROUND = (
    ("lightning", "pytorch_lightning"),
    ("item", "detach", "float", "data", "tolist", "numpy", "tensor", "Variable"),
)

_CUTS = frozenset({"detach", "item", "numpy", "tolist"})
_MAKERS = frozenset({"torch.tensor", "torch.autograd.Variable"})
_SILENT = "nothing trains"
_LOUD = "Lightning's `backward` raises"
_DEPTH = 4  # how many operations a value is followed through


def check(module: FileFacts) -> Iterator[Suspicion]:
    for klass in module.lightning.modules:
        hook = module.lightning.hook(klass, "training_step")
        if hook is None or module.lightning.automatic(klass) is not True or _goes_back_itself(module, klass):
            continue
        for statement in module.tree.own(hook, cst.Return):
            made = _losses(module, statement.value) if statement.value is not None else []
            if (way := _of_all(module, made, _DEPTH)) is not None:
                is_forced = all(_is_forced(module, node) for node in made)
                harm = _SILENT if is_forced else _LOUD
                message = f"`{way}` leaves no graph to the model, so {harm}: return the loss tensor itself"
                yield Suspicion(statement, message, _related(module, made, statement), is_note=not is_forced)


def _goes_back_itself(module: FileFacts, klass: cst.ClassDef) -> bool:
    lineage = module.lightning.lineage(klass) or ()
    return any(module.lightning.hook(one, "backward") is not None for one in lineage)


def _losses(module: FileFacts, returned: Node) -> list[Node]:
    """What may make the loss that a step returns, by itself or as an entry of a dictionary."""
    origins = [origin.node for origin in module.flow.of(returned).origins]
    if any(isinstance(node, (cst.Dict, cst.DictComp)) or _makes_dictionary(module, node) for node in origins):
        return [origin.node for origin in module.flow.of(returned, ("loss",)).origins]
    return origins


def _makes_dictionary(module: FileFacts, node: Node) -> bool:
    return isinstance(node, cst.Call) and module.qualified(node.func) == "builtins.dict"


def _cut(module: FileFacts, node: Node, depth: int = _DEPTH) -> str | None:
    """What takes the graph from a value, as it is written, None if it may have one."""
    if isinstance(node, cst.BinaryOperation):
        sides = [side for side in (node.left, node.right) if module.number(side) is None]
        return _of_all(module, sides, depth)
    if isinstance(node, cst.Name):
        return _of_all(module, [origin.node for origin in module.flow.of(node).origins], depth)
    if isinstance(node, cst.Attribute):
        return ".data" if node.attr.value == "data" else None
    if not isinstance(node, cst.Call):
        return None
    name = called_name(node)
    if module.qualified(node.func) in _MAKERS and node.args:
        computed = module.tree.within(node.args[0].value, cst.Name, cst.Call)
        return f"{name}()" if computed else None  # not a constant that trains nothing on purpose
    if isinstance(node.func, cst.Attribute) and name == "requires_grad_":
        return _of_all(module, [origin.node for origin in module.flow.of(node.func.value).origins], depth)
    if isinstance(node.func, cst.Attribute) and not node.args and name in _CUTS:
        return f".{name}()"
    return "float()" if module.qualified(node.func) == "builtins.float" else None


def _is_forced(module: FileFacts, node: Node) -> bool:
    """Whether a value is made to require a gradient, so that a backward pass from it does not raise."""
    return isinstance(node, cst.Call) and (
        called_name(node) == "requires_grad_"
        or module.boolean(argument(node, "requires_grad") or node) is True
    )


def _of_all(module: FileFacts, nodes: Sequence[Node], depth: int) -> str | None:
    """What takes the graph from each of several values."""
    ways = {_cut(module, node, depth - 1) if depth else None for node in nodes}
    return min(filter(None, ways)) if ways and None not in ways else None


def _related(module: FileFacts, made: list[Node], statement: cst.Return) -> tuple[tuple[Node, str], ...]:
    """Where the graph is lost, if that is another line."""
    return tuple(
        (node, "the graph ends here")
        for node in made
        if module.is_here(node) and module.tree.statement(node) is not statement
    )
