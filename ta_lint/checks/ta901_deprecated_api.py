"""TA901: an API that torch has deprecated still works, but warns."""

from collections.abc import Iterator

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.torch.symbols import keywords

KEYWORDS = (keywords("deprecated"),)


def check(module: FileFacts) -> Iterator[Suspicion]:
    for use in module.api.uses:
        symbol = use.symbol
        if not symbol.deprecated or module.targets_before(*symbol.deprecated):
            continue
        if symbol.removed and not module.targets_before(*symbol.removed):
            continue  # reported as TA900
        if symbol.replacement_since and module.targets_before(*symbol.replacement_since):
            continue  # the code must also run on releases without the replacement
        instead = f", in favor of {use.instead}" if use.instead else ""
        yield Suspicion(
            use.node,
            f"`{use.name}` is deprecated since torch {symbol.deprecated}{instead}",
            related=tuple((name, "used here") for name in module.api.mentions(use)),
            fix=module.renaming.fix(use),
        )
