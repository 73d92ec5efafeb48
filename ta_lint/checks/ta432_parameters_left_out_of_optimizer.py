"""TA432: a module runs in a training loop beside trained modules, but no optimizer has its parameters."""

import re
from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.parameters import OptimizerCall
from ta_lint.syntax.tree import Node, attribute_of_self, dotted

KEYWORDS = (("parameters", "named_parameters"),)
AROUND = (("*backward", "training_step"),)

# Operations that a module to be trained may go through.
_HANDLING = frozenset("apply cpu cuda double float half state_dict to train zero_grad".split())
# Words in the expression or function that creates a module that should stay frozen.
_KEEPS = frozenset("copy deepcopy eval load_state_dict requires_grad requires_grad_".split())
_DETACHED = frozenset({"data", "detach", "detach_", "item", "tolist"})
_FIXED = regex(
    r"target|teacher|fix|froz|freez|random|ema|momentum|pretrain|extract|percept|vgg|lpips|old", re.IGNORECASE
)


def check(module: FileFacts) -> Iterator[Suspicion]:
    optimizers = module.parameters.optimizers
    if not optimizers or any(optimizer.sources is None for optimizer in optimizers):
        return
    if any(
        isinstance(call.func, cst.Attribute) and call.func.attr.value == "add_param_group"
        for call in module.tree.all(cst.Call)
    ):
        return
    known: dict[Node, list[OptimizerCall]] = {}  # by the scope that they are in
    for statement in module.tree.all(cst.Assign):
        target = statement.targets[0].target
        if len(statement.targets) != 1 or not isinstance(statement.value, cst.Call):
            continue
        path = dotted(target)
        if path is None or _FIXED.search(path):
            continue
        scope = _scope(target, module)
        if scope is not None and scope not in known:
            known[scope] = [o for o in optimizers if module.tree.contains(scope, o.call)]
        beside = known[scope] if scope is not None else []
        if not beside or not _is_own(statement.value, module):
            continue
        if any(_is_held(name, optimizers) for name in (path, *_others(statement.value, module))):
            continue
        used = _goes_back(target, path, module)
        if used is not None:
            message = f"`{path}` never learns, as no optimizer has its parameters: add them to the optimizer"
            related = ((beside[0].call, "an optimizer of others"), (used, "the loss comes from here"))
            yield Suspicion(statement, message, related)


def _is_own(made: cst.Call, module: FileFacts) -> bool:
    """Whether a call creates new trainable parameters, and is not an external network that may be pretrained."""
    call = module.kinds.construction(made)
    if call is None:
        return False
    called = module.qualified(call.func)
    region = made if module.tree.contains(made, call) else module.tree.home(call)
    kept = any(name.value in _KEEPS for name in module.tree.within(region, cst.Name))
    return (
        not kept
        and (called is None or called.startswith("torch.nn."))
        and module.parameters.is_trainable(made)
    )


def _scope(target: Node, module: FileFacts) -> Node | None:
    """The scope of a variable: the function of a name, the class of a `self` attribute."""
    if isinstance(target, cst.Name):
        return module.tree.home(target)
    return module.tree.enclosing(target, cst.ClassDef) if attribute_of_self(target) is not None else None


def _others(value: Node, module: FileFacts) -> Iterator[str]:
    """The other variables with a value's parameters: `model` in `torch.compile(model)`."""
    while isinstance(value, cst.Call) and (inner := module.kinds.handed_on(value)) is not None:
        if (path := dotted(inner)) is not None:
            yield path
        value = module.kinds.origin(inner)


def _is_held(path: str, optimizers: list[OptimizerCall]) -> bool:
    """Whether an optimizer of the file has the parameters, a part of them, or those of a containing module."""
    names = [dotted(source.model) or "" for optimizer in optimizers for source in optimizer.sources or ()]
    return any(
        name == path or name.startswith(f"{path}.") or path.startswith(f"{name}.") or not name
        for name in names
    )


def _goes_back(target: Node, path: str, module: FileFacts) -> Node | None:
    """The call of a module that a loss depends on, if the file uses the module only for training."""
    found = None
    for mention in _mentions(target, path, module):
        above = module.tree.parent[mention]
        if isinstance(above, cst.Call) and above.func is mention:
            found = found or (above if _is_in_loss(above, module) else None)
        elif not (
            mention is target
            or (isinstance(above, cst.Attribute) and above.attr.value in _HANDLING and above.value is mention)
        ):
            return None
    return found


def _mentions(target: Node, path: str, module: FileFacts) -> list[Node]:
    """All mentions of a variable; for a `self` attribute, all attributes of that name on any object."""
    if isinstance(target, cst.Name):
        return list(module.names.mentions(target))
    last = path.rpartition(".")[2]
    return [attribute for attribute in module.tree.all(cst.Attribute) if attribute.attr.value == last]


def _is_in_loss(call: cst.Call, module: FileFacts) -> bool:
    return (
        not module.gradients.is_off(call)
        and not _is_detached(call, module)
        and call in module.gradients.behind_losses
    )


def _is_detached(call: cst.Call, module: FileFacts) -> bool:
    """Whether the enclosing expression detaches the output."""
    return any(
        isinstance(above, cst.Attribute) and above.attr.value in _DETACHED
        for above in module.tree.ancestors(call)
        if module.tree.statement(above) is module.tree.statement(call)
    )
