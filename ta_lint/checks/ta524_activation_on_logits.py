"""TA524: ReLU directly before a softmax: no class can score below 0."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.outputs import Output
from ta_lint.syntax.tree import argument, spreads

KEYWORDS = (("cross_entropy", "CrossEntropyLoss", "Categorical", "log_softmax", "*criterion*", "*loss*"),)
AROUND = (("relu", "ReLU"),)

_CHOICES = ("torch.distributions.Categorical", "torch.distributions.categorical.Categorical")
_LOGARITHMS = ("torch.log_softmax", "torch.nn.functional.log_softmax")


def check(module: FileFacts) -> Iterator[Suspicion]:
    for call, output in _logits(module):
        if output.name == "relu":
            message = "the last `relu` clips the scores at 0 and stops their gradients: leave it out"
            yield Suspicion(call, message, ((output.node, "`relu` is applied here"),))


def _logits(module: FileFacts) -> Iterator[tuple[cst.Call, Output]]:
    """The calls that apply softmax to scores, with the activation that certainly made these."""
    yield from module.loss_inputs("torch.nn.CrossEntropyLoss", "torch.nn.functional.cross_entropy")
    for call in module.calls_to(*_CHOICES, *_LOGARITHMS):
        is_choice = module.qualified(call.func) in _CHOICES
        given = argument(call, "logits", 1) if is_choice else argument(call, "input", 0)
        output = module.outputs.of(given) if given is not None and not spreads(call) else None
        if output is not None:
            yield call, output
