"""TA629: a backward pass runs inside `autocast`, which torch advises against."""

from collections.abc import Iterator

from ta_lint.core.protocol import Action
from ta_lint.facts import FileFacts, Suspicion

KEYWORDS = ("*backward", "autocast")


def check(module: FileFacts) -> Iterator[Suspicion]:
    for backward in module.order.events(Action.BACKWARD):
        block = module.autocasts.around(backward.call)
        if block is not None and not module.autocasts.is_off(block):
            message = f"`{module.code(backward.call)}` runs under `{module.code(block)}`, which may change its precision: move it out of the block"
            yield Suspicion(backward.call, message, ((block, "the block begins here"),))
