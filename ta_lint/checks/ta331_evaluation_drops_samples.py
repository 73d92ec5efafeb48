"""TA331: an evaluation loader drops the samples of its last batch."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.torch.splits import is_for_evaluation
from ta_lint.facts.values.loaders import LoaderCall
from ta_lint.syntax.edits import ProposedFix, replace_with_atom
from ta_lint.syntax.tree import dotted, is_name

KEYWORDS = ("DataLoader", "drop_last")


def check(module: FileFacts) -> Iterator[Suspicion]:
    if module.is_test:
        return
    for loader in module.loaders.all:
        dropping = loader.given("drop_last")
        if dropping is None or not is_name(dropping, "True") or not _evaluates(loader, module):
            continue
        message = "`drop_last=True` leaves the last batch out of the evaluation: set it to `False`"
        fix = ProposedFix("keep the last batch", (replace_with_atom(dropping, "False"),))
        yield Suspicion(loader.call, message, fix=fix)


def _evaluates(loader: LoaderCall, module: FileFacts) -> bool:
    """Whether the names of a loader and of its dataset say so, and nothing trains on it or needs batches of one size."""
    statement, dataset = module.tree.parent[loader.call], loader.given("dataset")
    names = [dotted(item.target) for item in statement.targets] if isinstance(statement, cst.Assign) else []
    if dataset is None or not any(map(is_for_evaluation, names)) or not is_for_evaluation(dotted(dataset)):
        return False
    return not any(
        module.loops.trains(found.loop) or _compares_its_samples(found.loop, module)
        for found in module.loaders.passes_over(loader)
    )


def _compares_its_samples(loop: cst.For, module: FileFacts) -> bool:
    """Whether the samples of a batch are compared with each other, so the score depends on the batch size."""
    return any(module.qualified(call.func) == "torch.arange" for call in module.tree.within(loop, cst.Call))
