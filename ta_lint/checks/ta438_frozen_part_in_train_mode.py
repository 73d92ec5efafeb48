"""TA438: `train()` reaches a part with frozen parameters, so its batch norms update their statistics."""

import re
from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.core.protocol import Action
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.loops.calls_in_loop import Variable
from ta_lint.facts.values.parameters import GradSwitch
from ta_lint.syntax.tree import Node, dotted

KEYWORDS = ("train",)
AROUND = (("requires_grad", "requires_grad_"),)

_BATCH_NORM = regex(r"torch\.nn\.(Lazy|Sync)?BatchNorm([123]d)?")
_MODELS_WITH_BATCH_NORM = regex(
    r"torchvision\.models\.(\w+\.)*((wide_)?res(net|next)|densenet|mobilenet|efficientnet|mnasnet|shufflenet|googlenet|"
    r"inception|regnet|vgg\d+_bn)\w*"
)
# Copies that are written to, though no gradient reaches them: their statistics are to move as well.
_FOLLOWS = regex(r"momentum|ema|teacher|target|key|_k$|averag|shadow", re.IGNORECASE)
_DEPTH = 4


def check(module: FileFacts) -> Iterator[Suspicion]:
    for call in module.tree.all(cst.Call):
        if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "train" or len(call.args) > 1:
            continue
        if not module.calls_in_loop.is_mode(call) or module.calls_in_loop.mode(call) is not Action.TRAIN:
            continue
        covered = call.func.value
        frozen = _frozen_in(module, call, covered)
        if frozen is not None:
            part = module.code(frozen.model)
            message = f"`train()` also reaches the frozen `{part}` and moves its statistics: call its `eval()` afterwards"
            yield Suspicion(call, message, ((frozen.node, "it is frozen here"),))


def _frozen_in(module: FileFacts, call: cst.Call, covered: Node) -> GradSwitch | None:
    """The statement that freezes a part which a model certainly has when it is put into training mode."""
    roots = [module.tree.root]
    klass = module.kinds.class_of(covered)
    if klass is not None and module.tree.root_of(klass) not in roots:
        roots.append(module.tree.root_of(klass))
    files = [module.beside(root) if root is not module.tree.root else module for root in roots]
    for facts in files:
        for switch in facts.parameters.switches:
            if switch.on or not _is_covered(facts, call, covered, klass, switch):
                continue
            if not _FOLLOWS.search(dotted(switch.model) or "") and _has_batch_norm(facts, switch.model):
                return None if any(map(_sets_modes_or_gradients, files)) else switch
    return None


def _sets_modes_or_gradients(module: FileFacts) -> bool:
    """Whether a file has code that may put the part into evaluation mode, or unfreeze it."""
    tree = module.tree
    if any(_overrides(module, function) for function in tree.all(cst.FunctionDef)):
        return True
    if any(switch.on for switch in module.parameters.switches):
        return True
    if any(_helps(module, call) for call in tree.all(cst.Call)):
        return True
    frozen = {switch.node for switch in module.parameters.switches}
    for attribute in tree.all(cst.Attribute):
        if attribute.attr.value == "eval" and _is_of_part(module, attribute):
            return True
        if attribute.attr.value in ("training", "track_running_stats") and isinstance(
            tree.parent[attribute], cst.AssignTarget
        ):
            return True
        if attribute.attr.value in ("requires_grad", "requires_grad_"):
            stored = isinstance(tree.parent[attribute], cst.AssignTarget) or attribute.attr.value.endswith(
                "_"
            )
            if stored and not any(tree.contains(node, attribute) for node in frozen):
                return True
    return False


def _helps(module: FileFacts, call: cst.Call) -> bool:
    """Whether a call runs a function of another file that writes `requires_grad` or calls `eval`."""
    function = module.calls.callee(call)
    if function is None or module.is_here(function):
        return False
    names = (attribute.attr.value for attribute in module.tree.within(function, cst.Attribute))
    return any(name in ("eval", "requires_grad", "requires_grad_") for name in names)


def _overrides(module: FileFacts, function: cst.FunctionDef) -> bool:
    """Whether a method may set the modes of a model's parts."""
    klass = module.tree.home(function)
    return (
        function.name.value in ("train", "eval")
        and isinstance(klass, cst.ClassDef)
        and (module.classes.derives(klass, "torch.nn.Module") or not module.classes.is_whole(klass))
    )


def _is_of_part(module: FileFacts, attribute: cst.Attribute) -> bool:
    """Whether `eval` may be that of a part: not of what the same file also puts into training mode."""
    receiver = dotted(attribute.value)
    return receiver is None or not any(
        other.attr.value == "train" and dotted(other.value) == receiver
        for other in module.tree.all(cst.Attribute)
    )


def _is_covered(
    module: FileFacts, call: cst.Call, covered: Node, klass: cst.ClassDef | None, switch: GradSwitch
) -> bool:
    frozen = module.calls_in_loop.variable(switch.model)
    if frozen is None:
        return False
    if klass is not None and frozen[0] is klass:
        return len(frozen) > 1
    whole = module.calls_in_loop.variable(covered)
    if whole is None or not _comes_after(module, call, switch.node):
        return False
    if frozen == whole:
        return _gets_new_parts(module, switch)
    if _is_inside(frozen, whole):
        return True
    return _is_given(module, covered, frozen, _DEPTH)


def _is_inside(part: Variable, whole: Variable) -> bool:
    return len(part) > len(whole) and part[: len(whole)] == whole


def _comes_after(module: FileFacts, call: cst.Call, switch: Node) -> bool:
    tree = module.tree
    if tree.root_of(call) is not tree.root_of(switch) or tree.home(call) is not tree.home(switch):
        return True
    return tree.before(switch, call)


def _gets_new_parts(module: FileFacts, switch: GradSwitch) -> bool:
    """Whether a model that was frozen as a whole gets a layer after that, in the same code: `model.fc = nn.Linear(...)`."""
    path = dotted(switch.model)
    for assign in module.tree.within(module.tree.home(switch.node), cst.Assign):
        target = assign.targets[0].target
        if not isinstance(target, (cst.Attribute, cst.Subscript)) or not module.tree.before(
            switch.node, assign
        ):
            continue
        if (dotted(target) or dotted(target.value) or "").startswith(f"{path}.") and module.layers.made(
            assign.value
        ):
            return True
    return False


def _is_given(module: FileFacts, whole: Node, part: Variable, depth: int) -> bool:
    """Whether a model is built of a part: `nn.Sequential(backbone, head)`."""
    made = module.kinds.construction(whole)
    if made is None or depth == 0:
        return False
    if module.qualified(made.func) not in ("torch.nn.Sequential", "torch.nn.ModuleList"):
        return False
    return any(
        module.calls_in_loop.variable(arg.value) == part or _is_given(module, arg.value, part, depth - 1)
        for arg in made.args
        if not arg.star
    )


def _has_batch_norm(module: FileFacts, model: Node) -> bool:
    origin = module.kinds.origin(model)
    values = module.calls_in_loop.values(origin) if isinstance(origin, cst.Param) else [model]
    made: list[cst.Call | None] = []
    for value in values:
        made += module.kinds.made_of(value) or [None]
    return bool(made) and all(call is not None and _makes_batch_norm(module, call, ()) for call in made)


def _makes_batch_norm(module: FileFacts, call: cst.Call, seen: tuple[Node, ...]) -> bool:
    """Whether a call certainly makes a batch norm that has statistics, or a module with one."""
    qualified = module.qualified(call.func) or ""
    if _BATCH_NORM.fullmatch(qualified):
        return len(call.args) == 1
    if _MODELS_WITH_BATCH_NORM.fullmatch(qualified):
        return True
    if qualified == "torch.nn.Sequential":
        inner = [found for found in module.tree.within(call, cst.Call) if found is not call]
        inner += [one for arg in call.args if (one := module.kinds.construction(arg.value)) is not None]
        return any(_makes_batch_norm(module, found, (*seen, call)) for found in inner if found is not call)
    klass = module.classes.local(call.func)
    if klass is None or klass in seen or len(seen) > _DEPTH:
        return False
    constructor = module.classes.method(klass, "__init__")
    if constructor is None or not module.classes.derives(klass, "torch.nn.Module"):
        return False
    inside = [
        found
        for found in module.tree.own(constructor, cst.Call)
        if module.tree.enclosing(found, cst.If, cst.IfExp) is None
    ]
    return any(_makes_batch_norm(module, found, (*seen, klass)) for found in inside)
