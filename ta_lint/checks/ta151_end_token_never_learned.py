"""TA151: the end token pads too, and labels are masked wherever padding stands: the model does not learn to stop."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.syntax.tree import Node, argument, is_name

KEYWORDS = (("DataCollatorForLanguageModeling", "*pad*"),)
AROUND = (("eos_token", "eos_token_id"), ("pad_token", "pad_token_id"))

_COLLATOR = "transformers.DataCollatorForLanguageModeling"
_MESSAGE = "the end token pads, and labels are masked wherever it stands: the model does not learn to stop"


def check(module: FileFacts) -> Iterator[Suspicion]:
    found = [
        place
        for place, tokenizer in (*_collators(module), *module.tokenizers.masked)
        if module.tokenizers.pads_with_end(tokenizer)
    ]
    if not found or module.is_test or _puts_ends_back(module):
        return
    related = tuple((node, "the model is trained here") for node in module.languages.trainings)
    for place in found:
        yield Suspicion(place, _MESSAGE, related)


def _collators(module: FileFacts) -> Iterator[tuple[Node, Node]]:
    for call in module.calls_to(_COLLATOR):
        masks, tokenizer = argument(call, "mlm", 1), argument(call, "tokenizer", 0)
        if tokenizer is not None and masks is not None and is_name(module.kinds.origin(masks), "False"):
            yield call, tokenizer


def _puts_ends_back(module: FileFacts) -> bool:
    """Whether code writes end tokens into labels: `labels[rows, ends] = tokenizer.eos_token_id`."""
    return any(
        isinstance(assign.targets[0].target, cst.Subscript)
        and isinstance(assign.value, cst.Attribute)
        and assign.value.attr.value == "eos_token_id"
        for assign in module.tree.all(cst.Assign)
    )
