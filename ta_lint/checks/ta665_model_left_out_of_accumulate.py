"""TA665: a block trains prepared models that `accumulate` does not name, or that it gets as a list."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.protocol import Action
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.accumulating import is_alone
from ta_lint.facts.torch.preparing import Preparer
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.value import Path
from ta_lint.syntax.edits import ProposedFix, add_argument, replace
from ta_lint.syntax.tree import FUNCTIONS, Node, argument

KEYWORDS = ("accumulate",)
AROUND = ("*prepare*", "*backward")

_Object = frozenset[tuple[Node, Path]]


def check(module: FileFacts) -> Iterator[Suspicion]:
    for block in module.tree.all(cst.With):
        calls = [call for item in block.items if (call := _accumulating(item.item, module)) is not None]
        if any(is_alone(call, module) for call in calls):
            continue
        named = _named(block, module) if calls else None
        if (as_list := next((arg for call in calls for arg in _lists(call, module)), None)) is not None:
            yield _of_list(as_list, module)
            continue
        if named is None or _refuses(module):
            continue
        stepped = _stepped(block, module)
        left_out = [model for model in _trained(block, module) if _object(model, module) & stepped - named]
        names = {module.code(model): model for model in left_out}
        for name, model in names.items():
            call = calls[0]
            message = f"`{name}` reduces its gradients in each micro-batch: pass it to `accumulate` too"
            yield Suspicion(call, message, ((model, "it runs here"),), _fix(call, name, len(names)))


def _refuses(module: FileFacts) -> bool:
    """Whether the program raises where several processes accumulate, as scripts do that cannot name a second model."""
    for raised in module.tree.all(cst.Raise):
        guard = module.tree.enclosing(raised, cst.If)
        if guard is not None and module.tree.contains(guard.body, raised):
            words = [name.value for name in module.tree.within(guard.test, cst.Name)]
            if "num_processes" in words and any("accumulat" in word for word in words):
                return True
    return False


def _fix(call: cst.Call, name: str, count: int) -> ProposedFix | None:
    edit = add_argument(call, name) if count == 1 and name.replace(".", "_").isidentifier() else None
    return ProposedFix(f"name `{name}` too", (edit,)) if edit is not None else None


def _lists(call: cst.Call, module: FileFacts) -> Iterator[cst.Arg]:
    """The arguments that are a list of models, and no model."""
    for arg in call.args:
        origins = module.flow.of(arg.value).origins
        if not arg.star and all(isinstance(o.node, (cst.List, cst.Tuple)) and not o.path for o in origins):
            yield arg


def _of_list(arg: cst.Arg, module: FileFacts) -> Suspicion:
    name = module.code(arg.value)
    message = f"`{name}` is a list, which `accumulate` ignores, so gradients are reduced each time: unpack it"
    fix = ProposedFix(f"give it `*{name}`", (replace(arg.value, f"*{module.verbatim(arg.value)}"),))
    return Suspicion(arg, message, fix=fix)


def _accumulating(node: Node, module: FileFacts) -> cst.Call | None:
    """`accelerator.accumulate(...)`, if this is one."""
    if not isinstance(node, cst.Call) or called_name(node) != "accumulate":
        return None
    is_method = isinstance(node.func, cst.Attribute)
    if not is_method or module.preparing.preparer(node.func.value) is not Preparer.ACCELERATE:  # type: ignore[attr-defined]
        return None
    return node


def _named(block: cst.With, module: FileFacts) -> _Object | None:
    """The models that this block and those around it name; None if some are not shown."""
    blocks = [block]
    for above in module.tree.ancestors(block):
        if isinstance(above, FUNCTIONS):
            break
        blocks += [above] if isinstance(above, cst.With) else []
    calls = [_accumulating(item.item, module) for one in blocks for item in one.items]
    args = [arg for call in calls if call is not None for arg in call.args]
    if any(arg.star for arg in args):
        return None
    return frozenset(one for arg in args for one in _object(arg.value, module))


def _object(model: Node, module: FileFacts) -> _Object:
    """The objects, as they were before `prepare`, that an expression may stand for."""
    return frozenset(one for _, given in module.preparing.bare(model) for one in _origins(given, module))


def _origins(node: Node, module: FileFacts) -> Iterator[tuple[Node, Path]]:
    yield from ((origin.node, origin.path) for origin in module.flow.of(node).origins)


def _stepped(block: cst.With, module: FileFacts) -> _Object:
    """The models whose parameters the prepared optimizers hold that a block steps."""
    steps = [step for step in module.order.events(Action.STEP) if module.tree.contains(block.body, step.call)]
    made = [node for step in steps for node, _ in _object(step.subject, module)]
    held = [argument(call, "params", 0) for call in made if isinstance(call, cst.Call)]
    return frozenset(
        one
        for params in held
        if params is not None
        for model in _models_in(params, module)
        for one in (*_object(model, module), *_origins(model, module))
    )


def _models_in(params: Node, module: FileFacts) -> Iterator[Node]:
    """The models of all `model.parameters()` that go into the parameters of an optimizer, on some way at least."""
    for part in module.parts.of(params):
        for call in module.tree.within(part, cst.Call):
            model = module.parameters.generated_by(call)
            if model is not None:
                yield model


def _trained(block: cst.With, module: FileFacts) -> Iterator[cst.BaseExpression]:
    """The expressions that may be a model running in a block with gradients: called, or passed to a known function."""
    for call in module.tree.within(block.body, cst.Call):
        if module.recording.records(call) is False:
            continue
        yield module.calls_in_loop.called(call)
        if module.calls.callee(call) is not None:
            yield from (arg.value for arg in call.args)
