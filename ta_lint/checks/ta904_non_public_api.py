"""TA904: a private path of torch may go in any release, and a public one leads to the same thing."""

from collections.abc import Iterator

from ta_lint.facts import Module, Suspicion
from ta_lint.facts.torch.api import keywords, release

KEYWORDS = (keywords("private"),)


def check(module: Module) -> Iterator[Suspicion]:
    for use in module.api.uses:
        row = use.row
        if not row.private or module.targets_before(*release(row.replacement_since)):
            continue
        if module.fallbacks.knows_before(release(row.replacement_since)):
            continue
        yield Suspicion(
            use.node,
            f"`{use.name}` is private; {use.instead} is the public name, since torch {row.replacement_since}",
            fix=module.renaming.fix(use),
        )
