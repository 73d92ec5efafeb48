"""TA701: a file from outside, downloaded or named by a user, is unpickled: its author can run code here."""

from collections.abc import Iterator

from ta_lint.facts import FileFacts, Suspicion

KEYWORDS = (("load", "weights_only"),)


def check(module: FileFacts) -> Iterator[Suspicion]:
    for read in module.unpickling.calls:
        foreign = module.unpickling.foreign(read)
        if foreign is not None:
            message = f"{foreign.what} is unpickled, which runs any code in it: use `weights_only=True`"
            apart = not module.tree.contains(read.call, foreign.node)
            yield Suspicion(read.call, message, related=((foreign.node, "from here"),) if apart else ())
