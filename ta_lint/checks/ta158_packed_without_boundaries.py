"""TA158: TRL packs texts into rows of one length, in which they attend to each other."""

from collections.abc import Iterator

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.syntax.tree import argument

KEYWORDS = ("packing", "packing_strategy", "wrapped")

_SETTINGS = regex(r"trl\.(\w+\.)*SFTConfig")


def check(module: FileFacts) -> Iterator[Suspicion]:
    for call, _ in module.calls_matching(_SETTINGS):
        packing, strategy = argument(call, "packing"), argument(call, "packing_strategy")
        if packing is None or strategy is None or module.boolean(packing) is not True:
            continue
        if module.string(strategy) == "wrapped":
            message = 'texts packed by `"wrapped"` attend to each other: leave `packing_strategy` at `"bfd"`'
            related = tuple((node, "the model is trained here") for node in module.languages.trainings)
            yield Suspicion(call, message, related)
