"""TA153: labels are shifted before they are passed to a model that shifts them itself."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.syntax.tree import argument

KEYWORDS = (("labels", "**"),)
AROUND = (("*ForCausalLM", "*LMHeadModel"),)


def check(module: FileFacts) -> Iterator[Suspicion]:
    for call in module.tree.all(cst.Call):
        if not module.languages.takes_labels(call) or argument(call, "shift_labels") is not None:
            continue
        if not module.languages.is_causal(call.func):
            continue
        inputs = module.languages.given(call, "input_ids", 0)
        labels = module.languages.given(call, "labels")
        if inputs is not None and labels is not None and module.languages.lag(labels, inputs) == 1:
            message = "`labels` are shifted already, and the model shifts them again: pass them unshifted"
            yield Suspicion(call, message)
