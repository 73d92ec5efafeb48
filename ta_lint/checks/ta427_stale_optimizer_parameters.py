"""TA427: a model gets or unfreezes parameters after its optimizer was built, which never sees them."""

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.parameters import OptimizerCall
from ta_lint.syntax.tree import Node, argument, dotted

KEYWORDS = (("parameters", "named_parameters"),)
AROUND = (("step", "*train*"),)

# Functions that replace the parameters of a model, or add new ones and freeze the old.
_REMAKES = regex(
    r"copy\.deepcopy|peft\.(\w+\.)*get_peft_model|torch\.distributed\.fsdp\.(\w+\.)*(FullyShardedDataParallel|fully_shard)|"
    r"torch\.distributed\._composable\.(\w+\.)*fully_shard"
)


@dataclass(frozen=True)
class _Change:
    """A change of a model at `node`, described for the message."""

    node: Node
    what: str


def check(module: FileFacts) -> Iterator[Suspicion]:
    for optimizer in module.parameters.optimizers:
        variable = _variable(optimizer, module)
        if variable is None or not optimizer.sources or _is_amended(optimizer, variable, module):
            continue
        for change in _changes(optimizer, module):
            trained = _trained(optimizer, variable, change, module)
            if trained is not None:
                related = (
                    (optimizer.call, "the optimizer is built here"),
                    (trained, "training goes on here, with the old parameters"),
                )
                message = (
                    f"{change.what} that `{variable}` does not hold, so they never train: "
                    f"build `{variable}` after this"
                )
                yield Suspicion(change.node, message, related)


def _variable(optimizer: OptimizerCall, module: FileFacts) -> str | None:
    """The variable that an optimizer is assigned to."""
    statement = module.tree.parent[optimizer.call]
    if not isinstance(statement, cst.Assign) or len(statement.targets) != 1:
        return None
    return dotted(statement.targets[0].target)


def _is_amended(optimizer: OptimizerCall, variable: str, module: FileFacts) -> bool:
    """Whether the function builds it again, or adds parameters later."""
    home = module.tree.home(optimizer.call)
    return any(
        called_name(call) == "add_param_group"
        or (call is not optimizer.call and module.parameters.builds_optimizer(call))
        or (isinstance(call.func, cst.Attribute) and call.func.attr.value == "prepare")
        for call in module.tree.later(home, optimizer.call, cst.Call)
    ) or any(
        dotted(target.target) == variable and not module.tree.contains(target, optimizer.call)
        for target in module.tree.later(home, optimizer.call, cst.AssignTarget)
    )


def _changes(optimizer: OptimizerCall, module: FileFacts) -> Iterator[_Change]:
    """The later statements that change the parameters of a model on every path from the construction."""
    tree = module.tree
    home, block = tree.home(optimizer.call), tree.block(optimizer.call)
    for source in module.parameters.whole(optimizer):
        path = module.kinds.path(source.model)
        if path is None:
            continue
        for node in tree.own(home, cst.Assign, cst.Call):
            if tree.before(optimizer.call, node) and tree.contains(block, node):
                what = _replaced(node, path, module) if isinstance(node, cst.Assign) else None
                what = what or (_called(node, path, module) if isinstance(node, cst.Call) else None)
                if what is not None:
                    yield _Change(node, what)
        if source.trainable:
            yield from _unfrozen(optimizer, path, module)


def _replaced(statement: cst.Assign, path: str, module: FileFacts) -> str | None:
    """`model.fc = nn.Linear(...)`, `model = Net()`."""
    target: Node = statement.targets[0].target
    while isinstance(target, cst.Subscript):
        target = target.value
    name = module.kinds.path(target)
    if (
        name is None
        or len(statement.targets) != 1
        or not isinstance(statement.value, cst.Call)
        or not _is_part(name, path)
    ):
        return None
    called = module.qualified(statement.value.func)
    if called is not None and _REMAKES.fullmatch(called):
        given = module.kinds.path(statement.value.args[0].value) if statement.value.args else None
        return f"`{called.rpartition('.')[2]}` gives `{name}` other parameters" if given == name else None
    if _mentions(statement.value, path, module):
        return None  # the new value may contain the old one
    new = module.parameters.is_trainable(statement.value)
    return f"`{module.code(statement.targets[0].target)}` gets new parameters" if new else None


def _called(call: cst.Call, path: str, module: FileFacts) -> str | None:
    if isinstance(module.tree.parent[call], cst.Assign):
        return None
    called = module.qualified(call.func)
    if called is not None and called.endswith(".fully_shard") and _REMAKES.fullmatch(called):
        given = module.kinds.path(call.args[0].value) if call.args else None
        return f"`fully_shard` gives `{path}` other parameters" if given == path else None
    if not isinstance(call.func, cst.Attribute) or module.kinds.path(call.func.value) != path:
        return None
    if call.func.attr.value == "resize_token_embeddings":
        return f"`{path}` gets new embeddings"
    assign = argument(call, "assign", 2) if call.func.attr.value == "load_state_dict" else None
    if assign is not None and module.boolean(assign):
        return f"`{path}` gets loaded tensors as parameters"
    return None


def _unfrozen(optimizer: OptimizerCall, path: str, module: FileFacts) -> Iterator[_Change]:
    """The places that unfreeze parameters after the optimizer took only those that required a gradient."""
    tree = module.tree
    home, block = tree.home(optimizer.call), tree.block(optimizer.call)
    switches = [
        (module.kinds.path(s.model) or "", s) for s in module.parameters.switches if tree.home(s.node) is home
    ]
    before = [(name, s) for name, s in switches if tree.before(s.node, optimizer.call)]
    for name, switch in switches:
        if (
            switch.on
            and _is_part(name, path)
            and tree.before(optimizer.call, switch.node)
            and tree.contains(block, switch.node)
            and any(not s.on and (_is_part(n, name) or _is_part(name, n)) for n, s in before)
            and not any(s.on and _is_part(name, n) for n, s in before)
        ):
            yield _Change(switch.node, f"this unfreezes parameters of `{name}`")


def _is_part(name: str, whole: str) -> bool:
    return name == whole or name.startswith(f"{whole}.")


def _mentions(value: Node, path: str, module: FileFacts) -> bool:
    return any(dotted(node) == path for node in module.tree.within(value, cst.Name, cst.Attribute))


def _trained(optimizer: OptimizerCall, variable: str, change: _Change, module: FileFacts) -> Node | None:
    """A step of the optimizer, or a call that gets it, that certainly comes after a change."""
    tree = module.tree
    home = tree.home(optimizer.call)
    steps = [step.call for step in module.loops.steps if dotted(step.optimizer) == variable]
    uses = [step for step in steps if tree.home(step) is home]
    if isinstance(home, cst.Module):  # functions that use the global variable
        functions = [f for step in steps if isinstance(f := tree.home(step), cst.FunctionDef)]
        uses += [site for f in functions for site in module.calls.sites(f) if tree.home(site) is home]
    uses += [
        call
        for call in tree.own(home, cst.Call)
        if "train" in (called_name(call) or "") and any(dotted(arg.value) == variable for arg in call.args)
    ]
    around = tree.loops(change.node)
    for use in uses:
        later = tree.before(change.node, use) or any(tree.contains(loop, use) for loop in around)
        if later and not tree.contains(change.node, use):
            return use
    return None
