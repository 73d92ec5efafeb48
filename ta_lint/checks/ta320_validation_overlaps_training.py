"""TA320: a model is evaluated on its training data."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.events import suspicion as said
from ta_lint.events.run import Run
from ta_lint.events.suspicion import Said
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.torch.splits import is_for_evaluation, is_for_training
from ta_lint.syntax.tree import Node, argument, dotted, spreads

KEYWORDS = (("DataLoader", "eval_dataset"),)

_SUBSET = "torch.utils.data.Subset"


def check_run(run: Run) -> Iterator[Said]:
    for one in run.leaks:
        message = f"this evaluates on `{one.code}`, which is also the training data: use held-out data"
        yield said.Suspicion(one.evaluated, message, related=((one.trained, "the loader that trains"),))
    for each in run.refolded:
        message = (
            "each fold goes on with this model, which has trained on its test rows: build it in each fold"
        )
        yield said.Suspicion(
            each.model, message, related=((each.folds, "the rows are split into folds here"),)
        )


def check(module: FileFacts) -> Iterator[Suspicion]:
    yield from _loaders(module)
    yield from _trainers(module)
    yield from _ranges(module)


def _loaders(module: FileFacts) -> Iterator[Suspicion]:
    """A loader for evaluation over the dataset of one that trains."""
    plain = [loader for loader in module.loaders.all if not loader.spreads and not loader.has_sampler]
    trained = [loader for loader in plain if is_for_training(_name(loader.call, module))]
    for loader in plain:
        if not is_for_evaluation(_name(loader.call, module)):
            continue
        for other in trained:
            dataset, shared = loader.given("dataset"), other.given("dataset")
            if dataset is not None and shared is not None and _is_same(dataset, shared, module):
                message = f"this evaluates on `{module.code(dataset)}`, which is also the training data: use held-out data"
                yield Suspicion(loader.call, message, ((other.call, "the loader that trains"),))
                break


def _trainers(module: FileFacts) -> Iterator[Suspicion]:
    """`Trainer(train_dataset=data, eval_dataset=data)`."""
    for call in module.tree.all(cst.Call):
        train, evaluated = argument(call, "train_dataset"), argument(call, "eval_dataset")
        if train is not None and evaluated is not None and _is_same(train, evaluated, module):
            yield Suspicion(
                call,
                f"this evaluates on `{module.code(evaluated)}`, which is also the training data: use held-out data",
            )


def _ranges(module: FileFacts) -> Iterator[Suspicion]:
    """Subsets of one dataset for training and evaluation, with ranges that overlap."""
    subsets = [call for call in module.calls_to(_SUBSET) if len(call.args) == 2 and not spreads(call)]
    trained = [call for call in subsets if is_for_training(_name(call, module))]
    for subset in subsets:
        if not is_for_evaluation(_name(subset, module)):
            continue
        for other in trained:
            shared = _shared(subset, other, module)
            if shared and _is_same(subset.args[0].value, other.args[0].value, module):
                message = f"{shared} of these samples are trained on"
                yield Suspicion(subset, message, ((other, "the subset that is trained on"),))
                break


def _shared(one: cst.Call, other: cst.Call, module: FileFacts) -> int:
    """How many indices two subsets have in common, as far as both are literal ranges."""
    first, second = (_range(subset.args[1].value, module) for subset in (one, other))
    if first is None or second is None:
        return 0
    return len(range(max(first.start, second.start), min(first.stop, second.stop)))


def _range(value: Node, module: FileFacts) -> range | None:
    """The literal range that an expression is."""
    made = module.kinds.origin(value)
    if not isinstance(made, cst.Call) or module.qualified(made.func) != "builtins.range":
        return None
    bounds = [module.number(arg.value) for arg in made.args]
    if len(bounds) not in (1, 2) or None in bounds:
        return None
    return range(*(int(bound) for bound in bounds if bound is not None))


def _name(call: cst.Call, module: FileFacts) -> str | None:
    statement = module.tree.parent[call]
    is_named = isinstance(statement, cst.Assign) and len(statement.targets) == 1
    return dotted(statement.targets[0].target) if isinstance(statement, cst.Assign) and is_named else None


def _is_same(one: Node, other: Node, module: FileFacts) -> bool:
    """Whether two expressions are one variable with one value.

    A variable that says it is training data is scored on purpose.
    """
    name = dotted(one)
    if name is None or name != dotted(other) or is_for_training(name):
        return False
    return module.tree.home(one) is module.tree.home(other) and _is_assigned_once(one, other, module)


def _is_assigned_once(one: Node, other: Node, module: FileFacts) -> bool:
    """Whether both refer to one value that does not come from random numbers."""
    origin = module.kinds.origin(one)
    if origin is not module.kinds.origin(other) and dotted(origin) != dotted(one):
        return False
    if isinstance(one, cst.Name) and isinstance(other, cst.Name):
        bound = module.names.definition(one)
        if bound is not module.names.definition(other) or (bound is None and module.names.bindings(one)):
            return False
    calls = module.tree.within(origin, cst.Call)
    return not any((module.qualified(call.func) or "").startswith("torch.rand") for call in calls)
