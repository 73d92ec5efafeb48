"""TA331: an evaluation loader drops the samples of its last batch."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.torch.splits import is_for_evaluation
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.loaders import LoaderCall
from ta_lint.syntax.edits import ProposedFix, replace_with_atom
from ta_lint.syntax.tree import Node, dotted, is_name, spreads

KEYWORDS = ("DataLoader", "drop_last")


def check(module: FileFacts) -> Iterator[Suspicion]:
    for loader in module.loaders.all:
        dropping = loader.given("drop_last")
        if dropping is None or not is_name(dropping, "True") or not _evaluates(loader, module):
            continue
        if _fills_every_batch(loader, module):
            continue
        message = "`drop_last=True` leaves the last batch out of the evaluation: set it to `False`"
        fix = ProposedFix("keep the last batch", (replace_with_atom(dropping, "False"),))
        yield Suspicion(loader.call, message, fix=fix)


def _evaluates(loader: LoaderCall, module: FileFacts) -> bool:
    """Whether the names of a loader and of its dataset say so, and nothing trains on it or needs batches of one size."""
    statement, dataset = module.tree.parent[loader.call], loader.given("dataset")
    targets = statement.targets if isinstance(statement, cst.Assign) else ()
    names = [name for item in targets if (name := dotted(item.target)) is not None]
    if dataset is None or not any(map(is_for_evaluation, names)) or not is_for_evaluation(dotted(dataset)):
        return False
    if _gives_one_batch(names, module):
        return False
    return not any(
        module.loops.trains(found.loop) or _compares_its_samples(found.loop, module)
        for found in module.loaders.passes_over(loader)
    )


def _fills_every_batch(loader: LoaderCall, module: FileFacts) -> bool:
    """Whether each batch is one sample, also by default, so that none is left over."""
    size = loader.given("batch_size")
    if size is None:
        return loader.given("batch_sampler") is None and not spreads(loader.call)
    return module.number(size) == 1


def _compares_its_samples(loop: cst.For, module: FileFacts) -> bool:
    """Whether the samples of a batch are compared with each other, so the score depends on the batch size."""
    return any(module.qualified(call.func) == "torch.arange" for call in module.tree.within(loop, cst.Call))


def _gives_one_batch(names: list[str], module: FileFacts) -> bool:
    """Whether all that is asked of a loader is its first batch, which is drawn or printed: `next(iter(loader))`."""
    mentions = [node for node in module.tree.all(cst.Name, cst.Attribute) if dotted(node) in names]
    uses = [node for node in mentions if not isinstance(module.tree.parent[node], cst.AssignTarget)]
    return bool(uses) and all(_call_of(_call_of(use, "iter", module), "next", module) for use in uses)


def _call_of(node: Node | None, function: str, module: FileFacts) -> Node | None:
    """The call of a function that a node is the argument of, if it is."""
    arg = module.tree.parent[node] if node is not None else None
    call = module.tree.parent[arg] if isinstance(arg, cst.Arg) else None
    return call if isinstance(call, cst.Call) and called_name(call) == function else None
