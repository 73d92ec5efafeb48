"""TA800: a script trains without setting a seed, so its run cannot be reproduced."""

from collections.abc import Iterator

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.loops.scripts import header

KEYWORDS = ("*backward", "step")

_SEEDS = regex(r"[sS]eed|SEED|fork_rng|set_rng_state|eterminis")


def check(module: FileFacts) -> Iterator[Suspicion]:
    entry = module.scripts.entry
    if entry is None or _SEEDS.search(module.source.text):
        return
    if module.script and not any(_SEEDS.search(file.source.text) for file in module.script):
        yield Suspicion(
            header(entry),
            "this script trains without a seed and cannot be repeated: call `torch.manual_seed`",
        )
