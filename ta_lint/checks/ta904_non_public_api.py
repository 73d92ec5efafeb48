"""TA904: a private path of torch may disappear in any release, although a public one leads to the same object."""

from collections.abc import Iterator

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.torch.symbols import keywords

KEYWORDS = (keywords("private"),)


def check(module: FileFacts) -> Iterator[Suspicion]:
    for use in module.api.uses:
        since = use.symbol.replacement_since
        if not use.symbol.private or since is None or module.targets_before(*since):
            continue
        if module.fallbacks.knows_before(since):
            continue
        yield Suspicion(
            use.node,
            f"`{use.name}` is private; {use.instead} is the public name, since torch {since}",
            related=tuple((name, "used here") for name in module.api.mentions(use)),
            fix=module.renaming.fix(use),
            is_note=use.symbol.quiet,
        )
