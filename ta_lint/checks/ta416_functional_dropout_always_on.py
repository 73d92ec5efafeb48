"""TA416: `F.dropout(x)` in a module drops values in evaluation too: `training` is true unless it is given."""

import re
from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import Module, Suspicion
from ta_lint.facts.edits import Fix, add_argument
from ta_lint.facts.patterns import SOME_ARGUMENTS
from ta_lint.facts.tree import argument, spreads

# A call whose arguments do not mention the mode.
NEEDS = (
    r"\bModule\b",
    rf"(?<!self\.)(?<!def )\b(?:alpha_|feature_alpha_)?dropout[123]?d?\((?!{SOME_ARGUMENTS}train)",
)

_DROPOUT = re.compile(r"torch\.nn\.functional\.(dropout[123]?d?)")
_ALPHA = re.compile(r"torch\.nn\.functional\.((feature_)?alpha_dropout)")


def check(module: Module) -> Iterator[Suspicion]:
    if module.is_test:
        return
    for call in module.tree.all(cst.Call):
        called = module.qualified(call.func) or ""
        if (function := _DROPOUT.fullmatch(called) or _ALPHA.fullmatch(called)) is None or spreads(call):
            continue
        if argument(call, "training", 2) is None and module.modes.always_on(call):
            when = "also in evaluation" if _DROPOUT.fullmatch(called) else "nothing, not even in training"
            edit = add_argument(call, "training=self.training")
            fix = Fix("drop in training alone", (edit,)) if edit is not None else None
            yield Suspicion(call, f"`{function[1]}` without `training` drops {when}", fix=fix)
