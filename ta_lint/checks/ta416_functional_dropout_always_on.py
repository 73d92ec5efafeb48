"""TA416: `F.dropout(x)` in a module also drops values in evaluation: `training` defaults to True."""

import re
from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.events import suspicion as said
from ta_lint.events.run import Run
from ta_lint.events.suspicion import Said
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.syntax.edits import ProposedFix, add_argument
from ta_lint.syntax.tree import argument

KEYWORDS = (("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"),)

_PRENET = regex("pre_?net", re.IGNORECASE)
_DROPOUT = regex(r"torch\.nn\.functional\.(dropout[123]?d?|(?P<alpha>(?:feature_)?alpha_dropout))")


def check(module: FileFacts) -> Iterator[Suspicion]:
    for call, function in module.calls_matching(_DROPOUT):
        probability = argument(call, "p", 1)
        if probability is not None and module.dropping.is_off(probability):
            continue
        if argument(call, "training", 2) is not None or not module.dropping.is_always_on(call):
            continue
        if _is_of_prenet(call, module):
            continue
        in_module = module.modes.always_on(call)
        if in_module or probability is None or module.dropping.drops(probability):
            when = "nothing, not even in training" if function["alpha"] else "also in evaluation"
            edit = add_argument(call, "training=self.training") if in_module else None
            fix = ProposedFix("drop in training alone", (edit,)) if edit is not None else None
            yield Suspicion(
                call,
                f"`{function[1]}` without `training` drops {when}: pass `training=self.training`",
                fix=fix,
            )


def check_run(run: Run) -> Iterator[Said]:
    """Where a dry run evaluates the module."""
    for call in run.always_dropped:
        if not any(map(_PRENET.search, call.within)):
            message = f"`{call.function}` without `training` drops also in evaluation: pass `training=self.training`"
            yield said.Suspicion(call.place, message)


def _is_of_prenet(call: cst.Call, module: FileFacts) -> bool:
    """Whether a call is in the pre-net of Tacotron 2, which also drops values when it speaks (Shen et al. 2018, 2.2)."""
    klass = module.tree.enclosing(call, cst.ClassDef)
    return klass is not None and _PRENET.search(klass.name.value) is not None
