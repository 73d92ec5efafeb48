"""TA900: what torch has removed raises as soon as the code gets there."""

from collections.abc import Iterator

from ta_lint.facts import Module, Suspicion
from ta_lint.facts.api import needs, release

NEEDS = needs("removed")


def check(module: Module) -> Iterator[Suspicion]:
    for use in module.api.uses:
        row = use.row
        if not row.removed or module.targets_before(*release(row.removed)):
            continue
        instead = f", in favor of {use.instead}" if use.instead else ""
        yield Suspicion(
            use.node,
            f"`{use.name}` was removed in torch {row.removed}{instead}",
            fix=module.renaming.fix(use),
        )
