"""TA616: the best state that a loop keeps is a set of references, and training continues to change their tensors."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Kind, Suspicion
from ta_lint.facts.loops.loops import names_training
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.edits import ProposedFix, wrap
from ta_lint.syntax.tree import Node, dotted, is_name

KEYWORDS = ("state_dict", ("load_state_dict", "*save*", "return"))

Target = cst.Name | cst.Attribute

# Containers that keep the same tensors.
_SHALLOW = frozenset({"builtins.dict", "collections.OrderedDict", "copy.copy"})

# Objects whose `state_dict` copies, or holds nothing that training changes in place.
_NO_MODEL = regex(
    r"(^|[._])(ema|swa|average\w*|shadow|optim\w*|opt|sched\w*|scaler|loader|sampler)", re.IGNORECASE
)
_COPYING_STATE = (
    "torch.distributed.fsdp",
    "torch.distributed._composable",
    "torch.distributed.checkpoint",
    "deepspeed",
)

_BEST = regex(r"best|better|improv|lowest|highest", re.IGNORECASE)


@dataclass(frozen=True)
class KeptState:
    """After `statement`, `target` or an entry of it holds the live state of `model`."""

    statement: cst.Assign
    target: Target
    model: str


def check(module: FileFacts) -> Iterator[Suspicion]:
    if any(name.startswith(_COPYING_STATE) for name in module.names.imported):
        return
    if "def state_dict" in module.names.attributes_of_imports or module.calls.functions("state_dict"):
        return  # a `state_dict` of the project's own may return copies
    for call in module.tree.all(cst.Call):
        kept = _kept(module, call)
        if kept is not None and (_outlives_training(module, kept) or _is_restored_by_its_class(module, kept)):
            target = module.code(kept.target)
            message = f"`{target}` changes as `{kept.model}` trains on: keep a `deepcopy` of its state"
            yield Suspicion(kept.statement, message, fix=_copied(call, module))


def _copied(state: cst.Call, module: FileFacts) -> ProposedFix | None:
    spelled = module.spelled("copy.deepcopy", at=state)
    return (
        ProposedFix("copy it", wrap(state, f"{spelled[0]}(", ")"), spelled[1])
        if spelled is not None
        else None
    )


# -- the kept state ---------------------------------------------------------------------------------------------


def _kept(module: FileFacts, call: cst.Call) -> KeptState | None:
    """The assignment of `model.state_dict()`: as it is, as a shallow copy, or in a dictionary."""
    model = _model(module, call)
    if model is None:
        return None
    value: Node = call
    while (around := _around(module, value)) is not None:
        value = around
    assign, target = _assigned(module, value)
    if assign is None or target is None:
        return None
    if isinstance(target, cst.Subscript):
        target = target.value
    of_self = (
        isinstance(target, cst.Attribute)
        and isinstance(target.value, cst.Name)
        and target.value.value == "self"
    )
    if not (isinstance(target, cst.Name) or (isinstance(target, cst.Attribute) and of_self)):
        return None
    return KeptState(assign, target, model)


def _assigned(module: FileFacts, value: Node) -> tuple[cst.Assign | None, Node | None]:
    """The assignment of a value, alone or in a tuple, and its target."""
    above = module.tree.parent[value]
    if isinstance(above, cst.Assign) and len(above.targets) == 1:
        return above, above.targets[0].target
    several = module.tree.parent[above] if isinstance(above, cst.Element) else None
    assign = module.tree.parent[several] if isinstance(several, cst.Tuple) else None
    if isinstance(assign, cst.Assign) and isinstance(several, cst.Tuple) and len(assign.targets) == 1:
        targets = assign.targets[0].target
        if isinstance(targets, cst.Tuple) and len(targets.elements) == len(several.elements):
            return assign, targets.elements[several.elements.index(above)].value
    return None, None


def _model(module: FileFacts, call: cst.Call) -> str | None:
    if called_name(call) != "state_dict" or call.args or not isinstance(call.func, cst.Attribute):
        return None
    name = dotted(call.func.value)
    is_module = module.kind(call.func.value) in (Kind.MODULE, None)
    return name if name is not None and is_module and not _NO_MODEL.search(name) else None


def _around(module: FileFacts, value: Node) -> Node | None:
    """The shallow copy or dictionary that contains a value."""
    parents = module.tree.parent
    above = parents[value]
    if isinstance(above, cst.CompFor) and above.iter is value:
        return _entries_kept(above, module)
    if isinstance(above, cst.DictElement) and above.value is value:
        return parents[above]
    if isinstance(above, cst.Attribute) and above.attr.value in ("copy", "items"):
        call = parents[above]
        return call if isinstance(call, cst.Call) and not call.args else None
    if isinstance(above, cst.Arg) and above.keyword is None and not above.star:
        call = parents[above]
        return call if isinstance(call, cst.Call) and module.qualified(call.func) in _SHALLOW else None
    return None


def _entries_kept(entries: cst.CompFor, module: FileFacts) -> Node | None:
    """The dictionary `{k: v for k, v in state.items()}`, whose values are the tensors of the state: also by `v.detach()`, `v.data`."""
    whole, target = module.tree.parent[entries], entries.target
    if not isinstance(whole, cst.DictComp) or not isinstance(target, cst.Tuple) or len(target.elements) != 2:
        return None
    value: Node = whole.value
    while (shared := _same_memory(value)) is not None:
        value = shared
    name = target.elements[1].value
    return whole if isinstance(name, cst.Name) and is_name(value, name.value) else None


def _same_memory(value: Node) -> Node | None:
    """The tensor whose memory `tensor.detach()` or `tensor.data` shares."""
    if isinstance(value, cst.Call) and not value.args and isinstance(value.func, cst.Attribute):
        return value.func.value if value.func.attr.value == "detach" else None
    return value.value if isinstance(value, cst.Attribute) and value.attr.value == "data" else None


# -- in a loop ------------------------------------------------------------------------------------------------


def _outlives_training(module: FileFacts, kept: KeptState) -> bool:
    """Whether the state is kept for the best pass of a loop that continues training, and used after the loop."""
    region = _region(module, kept)
    return (
        region is not None
        and _is_for_the_best(module, kept, region)
        and not module.loops.is_last_pass(kept.statement, region)
        and not _is_copied_later(module, kept, region)
        and _trains(module, kept, region)
        and any(_is_restored(module, kept, use, region) for use in _uses(module, kept))
    )


def _region(module: FileFacts, kept: KeptState) -> cst.For | cst.While | None:
    """The outermost loop around the assignment that rebinds neither model nor target."""
    region = None
    for loop in module.tree.loops(kept.statement):
        if _is_rebuilt(module, kept, loop) or _is_reset(module, kept, loop, region):
            break
        region = loop
    return region


def _is_rebuilt(module: FileFacts, kept: KeptState, loop: Node) -> bool:
    """Whether each pass of a loop rebinds the model, as in cross-validation."""
    parts = kept.model.split(".")
    owners = {".".join(parts[: length + 1]) for length in range(len(parts))}
    return any(dotted(target) in owners for target in _bound(module, loop))


def _is_reset(module: FileFacts, kept: KeptState, loop: Node, inner: Node | None) -> bool:
    name = dotted(kept.target)
    return any(
        dotted(target) == name and not (inner is not None and module.tree.contains(inner, target))
        for target in _bound(module, loop)
        if module.tree.contains(module.tree.block(target), kept.statement)
        and module.tree.statement(target) is not kept.statement
    )


def _bound(module: FileFacts, region: Node) -> list[Node]:
    """The targets of the assignments and loops in a region."""
    assigned = [item.target for item in module.tree.own(region, cst.AssignTarget)]
    looped = [loop.target for loop in module.tree.own(region, cst.For)]
    targets: list[Node] = []
    for target in [*assigned, *looped]:
        elements = (
            module.tree.within(target, cst.Element) if isinstance(target, (cst.Tuple, cst.List)) else []
        )
        targets += [element.value for element in elements] or [target]
    return targets


def _is_for_the_best(module: FileFacts, kept: KeptState, region: Node) -> bool:
    """Whether a condition in the loop selects the pass: `if loss < best_loss`, by name or by an updated record."""
    tree = module.tree
    for above in tree.ancestors(kept.statement):
        if above is region:
            break
        if isinstance(above, cst.If) and not tree.contains(above.test, kept.statement):
            words = [name.value for name in tree.within(above.test, cst.Name)]
            records = {dotted(target) for target in _bound(module, above)}
            compared = {dotted(part) for part in tree.within(above.test, cst.Name, cst.Attribute)}
            if compared & records or any(map(_BEST.search, [*words, module.code(kept.target)])):
                return True
    return False


def _is_copied_later(module: FileFacts, kept: KeptState, region: Node) -> bool:
    """Whether the pass replaces the kept state, as by `best = {k: v.clone() for k, v in best.items()}`.

    Moving the model to another device than it trains on also copies.
    """
    tree = module.tree
    name = dotted(kept.target)
    for target in _bound(module, tree.block(kept.statement)):
        inner = isinstance(target, cst.Subscript) and dotted(target.value) == name
        later = tree.before(kept.statement, target) and not tree.contains(kept.statement, target)
        if later and (inner or dotted(target) == name):
            return True
    return any(
        called_name(call) in ("cpu", "cuda", "to")
        and isinstance(call.func, cst.Attribute)
        and dotted(call.func.value) == kept.model
        for call in tree.own(region, cst.Call)
    )


def _trains(module: FileFacts, kept: KeptState, region: cst.For | cst.While) -> bool:
    """Whether a loop trains in this file, or calls something whose name says that it trains the model."""
    return module.loops.trains(region.body) or any(
        names_training(call) and _takes(call, kept.model) for call in module.tree.own(region.body, cst.Call)
    )


def _takes(call: cst.Call, model: str) -> bool:
    owner = model.partition(".")[0]
    if any(dotted(arg.value) in (model, owner) for arg in call.args):
        return True
    receiver = dotted(call.func.value) if isinstance(call.func, cst.Attribute) else None
    return receiver in (model, owner) and called_name(call) != "train"  # `model.train()` sets the mode


# -- its uses ---------------------------------------------------------------------------------------------------


def _uses(module: FileFacts, kept: KeptState) -> list[Target]:
    if isinstance(kept.target, cst.Name):
        return list(module.names.mentions(kept.target))
    klass = module.tree.enclosing(kept.statement, cst.ClassDef) or module.tree.root
    return [use for use in module.tree.within(klass, cst.Attribute) if dotted(use) == dotted(kept.target)]


def _is_restored(module: FileFacts, kept: KeptState, use: Target, region: Node) -> bool:
    """Whether a use loads the kept state into the same model, or, after the loop, loads, saves or returns it."""
    tree = module.tree
    if tree.home(use) is not tree.home(kept.statement):
        return isinstance(use, cst.Attribute) and kept.model in _loaders(module, use)
    if tree.contains(region, use):
        return kept.model in _loaders(module, use) and _is_apart(module, kept, use)
    if tree.before(use, region) or _is_replaced(module, kept, use, region):
        return False
    return bool(_loaders(module, use)) or _is_saved(module, use) or _is_returned(module, use)


def _is_replaced(module: FileFacts, kept: KeptState, use: Target, region: Node) -> bool:
    """Whether the target is rebound between the loop and a use."""
    tree = module.tree
    return any(
        dotted(target) == dotted(kept.target)
        and tree.before(region, target)
        and not tree.contains(region, target)
        and tree.before(target, use)
        and tree.contains(tree.block(target), use)
        for target in _bound(module, tree.home(use))
    )


def _loaders(module: FileFacts, use: Node) -> list[str]:
    """The models that load a state, or an expression built from it."""
    calls = [call for call in _calls_around(module, use) if called_name(call) == "load_state_dict"]
    receivers = (dotted(call.func.value) or "" for call in calls if isinstance(call.func, cst.Attribute))
    return list(receivers)


def _is_saved(module: FileFacts, use: Node) -> bool:
    return any(module.qualified(call.func) == "torch.save" for call in _calls_around(module, use))


def _calls_around(module: FileFacts, node: Node) -> Iterator[cst.Call]:
    """The calls in the same statement that take a node as an argument."""
    child = node
    for above in module.tree.ancestors(node):
        if isinstance(above, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
            return
        if isinstance(above, cst.Call) and isinstance(child, cst.Arg):
            yield above
        child = above


def _is_returned(module: FileFacts, use: Node) -> bool:
    """Whether a statement returns a node unchanged, alone or in a tuple."""
    above = module.tree.parent[use]
    while isinstance(above, (cst.Tuple, cst.Element, cst.Dict, cst.DictElement)):
        above = module.tree.parent[above]
    return isinstance(above, cst.Return)


# -- in a class that keeps the best for others ----------------------------------------------------------------


def _is_restored_by_its_class(module: FileFacts, kept: KeptState) -> bool:
    """Whether an early stopper keeps a state in one method and the same model loads it, which changes nothing."""
    tree = module.tree
    home = tree.home(kept.statement)
    if not isinstance(kept.target, cst.Attribute) or not isinstance(tree.home(home), cst.ClassDef):
        return False
    if isinstance(home, cst.FunctionDef) and home.name.value == "__init__":
        return False
    if (
        tree.loops(kept.statement)
        or not (_BEST.search(kept.target.attr.value) or _is_for_the_best(module, kept, home))
        or _is_copied_later(module, kept, home)
    ):
        return False
    return _is_loaded_by_its_user(module, kept.target) or any(
        kept.model in _loaders(module, use) and _is_apart(module, kept, use) for use in _uses(module, kept)
    )


def _is_loaded_by_its_user(module: FileFacts, target: cst.Attribute) -> bool:
    """Whether code that owns an object of the class loads the state: `model.load_state_dict(stopper.weights)`."""
    klass = module.tree.enclosing(target, cst.ClassDef)
    return any(
        module.kinds.class_of(use.value) is klass and bool(_loaders(module, use))
        for use in module.classes.mentions(target.attr.value)
        if not is_name(use.value, "self")
    )


def _is_apart(module: FileFacts, kept: KeptState, use: Node) -> bool:
    """Whether a call that loads a state is in another method than the one that kept it."""
    tree = module.tree
    return tree.home(use) is not tree.home(kept.statement) or not tree.contains(
        tree.block(kept.statement), use
    )
