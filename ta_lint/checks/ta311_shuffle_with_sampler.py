"""TA311: `shuffle=True` together with a sampler, which decides the order itself: `DataLoader` raises."""

from collections.abc import Iterator

from ta_lint.facts import FileFacts, Kind, Suspicion
from ta_lint.facts.values.loaders import LoaderCall
from ta_lint.syntax.edits import ProposedFix, remove_argument
from ta_lint.syntax.tree import Node

KEYWORDS = ("DataLoader", ("sampler", "batch_sampler"))


def check(module: FileFacts) -> Iterator[Suspicion]:
    for loader in module.loaders.all:
        shuffle = loader.given("shuffle")
        if shuffle is None or module.boolean(shuffle) is not True:
            continue
        for parameter in ("sampler", "batch_sampler"):
            given = loader.given(parameter)
            if given is not None and _may_be_sampler(given, module):
                message = f"`shuffle=True` with `{parameter}` raises: leave out `shuffle`, as the sampler sets the order"
                yield Suspicion(loader.call, message, fix=_fix(loader, shuffle))


def _may_be_sampler(given: Node, module: FileFacts) -> bool:
    """Whether an argument is a sampler on at least one path, on which the loader then raises."""
    return any(module.kind(value) is Kind.SAMPLER for value in module.loaders.alternatives(given))


def _fix(loader: LoaderCall, shuffle: Node) -> ProposedFix | None:
    arg = next((arg for arg in loader.call.args if arg.value is shuffle and arg.keyword is not None), None)
    return (
        ProposedFix("leave the order to the sampler", (remove_argument(loader.call, arg),)) if arg else None
    )
