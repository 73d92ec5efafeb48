"""TA900: an API that torch has removed raises when it is used."""

from collections.abc import Iterator

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.torch.symbols import keywords

KEYWORDS = (keywords("removed"),)


def check(module: FileFacts) -> Iterator[Suspicion]:
    for use in module.api.uses:
        symbol = use.symbol
        if not symbol.removed or module.targets_before(*symbol.removed):
            continue
        instead = f", in favor of {use.instead}" if use.instead else ""
        yield Suspicion(
            use.node,
            f"`{use.name}` was removed in torch {symbol.removed}{instead}",
            related=tuple((name, "used here") for name in module.api.mentions(use)),
            fix=module.renaming.fix(use),
        )
