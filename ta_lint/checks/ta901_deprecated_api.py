"""TA901: what torch has deprecated works for now, and warns."""

from collections.abc import Iterator

from ta_lint.facts import Module, Suspicion
from ta_lint.facts.torch.api import keywords, release

KEYWORDS = (keywords("deprecated"),)


def check(module: Module) -> Iterator[Suspicion]:
    for use in module.api.uses:
        row = use.row
        if not row.deprecated or module.targets_before(*release(row.deprecated)):
            continue
        if row.removed and not module.targets_before(*release(row.removed)):
            continue  # TA900
        if row.replacement_since and module.targets_before(*release(row.replacement_since)):
            continue  # the code must run where there is nothing else yet
        instead = f", in favor of {use.instead}" if use.instead else ""
        yield Suspicion(
            use.node,
            f"`{use.name}` is deprecated since torch {row.deprecated}{instead}",
            fix=module.renaming.fix(use),
        )
