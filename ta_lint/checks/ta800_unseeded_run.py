"""TA800: a script that trains and seeds nothing cannot be run again."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import Module, Suspicion

NEEDS = (
    r"\bstep\(",
    r"\bbackward\(",
    r"\A(?![\s\S]*(?:[sS]eed|SEED|fork_rng|set_rng_state|eterminis))",
)


def check(module: Module) -> Iterator[Suspicion]:
    entry = module.scripts.entry
    if entry is not None and not module.is_test:
        header = entry.iter if isinstance(entry, cst.For) else entry.test
        yield Suspicion(header, "this script trains without a seed, so no run of it can be repeated")
