"""TA663: the results of `prepare` or `setup` are dropped or unpacked in another order, and training ignores them."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.torch.preparing import PrepareCall, Preparer
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.edits import ProposedFix, replace
from ta_lint.syntax.tree import Node, dotted

KEYWORDS = (("*prepare*", "*setup*", "initialize"),)
AROUND = (("Accelerator", "accelerate", "Fabric", "lightning", "lightning_fabric", "deepspeed"),)


def check(module: FileFacts) -> Iterator[Suspicion]:
    for prepared in module.preparing.all:
        found = _dropped(prepared, module) or _taken_otherwise(prepared, module)
        if found is not None:
            yield found
        else:
            yield from _used_bare(prepared, module)


def _dropped(prepared: PrepareCall, module: FileFacts) -> Suspicion | None:
    """The call as a statement."""
    code = module.code(prepared.call.func)
    if not isinstance(module.tree.parent[prepared.call], cst.Expr) or _is_trainer(prepared, module):
        return None
    message = f"training goes on unprepared, as the result of `{code}(...)` is dropped: assign it"
    return Suspicion(prepared.call, message, fix=_fix(prepared, module))


def _is_trainer(prepared: PrepareCall, module: FileFacts) -> bool:
    """Whether all that is given is trainers, which Accelerate returns as they are: they prepare their objects themselves."""
    origins = [one for given in prepared.given if given is not None for one in module.flow.of(given).origins]
    return bool(origins) and all(
        isinstance(one.node, cst.Call) and (called_name(one.node) or "").endswith("Trainer")
        for one in origins
    )


def _fix(prepared: PrepareCall, module: FileFacts) -> ProposedFix | None:
    names = [dotted(given) for given in prepared.given if given is not None]
    if prepared.preparer is Preparer.DEEPSPEED or None in names or len(set(names)) < len(names):
        return None
    targets = ", ".join(map(str, names))
    code = f"{targets} = {module.verbatim(prepared.call)}"
    return ProposedFix(f"assign them to `{targets}`", (replace(prepared.call, code),))


def _taken_otherwise(prepared: PrepareCall, module: FileFacts) -> Suspicion | None:
    """Other names than there are objects, or the same ones in another order."""
    targets = module.preparing.targets(prepared)
    if targets is None or None in targets:
        return None
    code = module.code(prepared.call.func)
    if len(targets) != len(prepared.given):
        message = (
            f"`{code}` returns {len(prepared.given)} objects for {len(targets)} names: give each its own name"
        )
        return Suspicion(prepared.call, message)
    names = [dotted(target) for target in targets if target is not None]
    given = [dotted(value) if value is not None else None for value in prepared.given]
    if names == given or None in given or len(set(given)) < len(given) or set(names) != set(given):
        return None
    return Suspicion(
        prepared.call,
        f"names are swapped, as `{code}(...)` returns objects in the order given: use that order",
    )


def _used_bare(prepared: PrepareCall, module: FileFacts) -> Iterator[Suspicion]:
    """Objects that have another name since, and whose old name trains."""
    for given in module.preparing.left_behind(prepared):
        origins = {(origin.node, origin.path) for origin in module.flow.of(given).origins}
        for use, user in _training_uses(module):
            is_same = {(origin.node, origin.path) for origin in module.flow.of(user).origins} == origins
            if is_same and _may_come_after(use, prepared, module):
                name = module.code(prepared.call.func)
                message = f"`{module.code(user)}` is not prepared: use what `{name}` returned for it"
                yield Suspicion(use, message, ((prepared.call, "wrapped here, under another name"),))
                break


def _may_come_after(use: Node, prepared: PrepareCall, module: FileFacts) -> bool:
    is_elsewhere = module.tree.home(use) is not module.tree.home(prepared.call)
    return is_elsewhere or module.tree.before(prepared.call, use)


def _training_uses(module: FileFacts) -> Iterator[tuple[Node, cst.BaseExpression]]:
    """Where a model, a loader or an optimizer of this file trains, each with the expression for it."""
    losses = module.gradients.losses
    trained = {node for loss in losses for node in (loss.call, *module.gradients.path(loss))}
    for call in module.tree.all(cst.Call):
        if called_name(call) == "step" and (step := module.loops.step(call)) is not None:
            yield call, step.optimizer
        elif call in trained and module.recording.records(call) is not False:
            yield call, module.calls_in_loop.called(call)
    for loop in module.tree.all(cst.For):
        if module.loops.trains_each_pass(loop):
            yield loop.iter, _iterated(loop.iter)


def _iterated(iterable: cst.BaseExpression) -> cst.BaseExpression:
    """The loader of `enumerate(loader)` and `tqdm(enumerate(loader))`."""
    while isinstance(iterable, cst.Call) and iterable.args and called_name(iterable) in ("enumerate", "tqdm"):
        iterable = iterable.args[0].value
    return iterable
