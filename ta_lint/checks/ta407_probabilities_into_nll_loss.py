"""TA407: what goes into `NLLLoss` are probabilities or raw scores, where it takes log-probabilities."""

from collections.abc import Iterator

from ta_lint.facts import Module, Suspicion
from ta_lint.facts.tree import argument

NEEDS = (
    r"\b(?:nll_loss|NLLLoss)\b",
    r"\b(?:softmax|sigmoid|expit|relu|tanh|linear|Softmax|Softmax2d|Sigmoid|ReLU|Tanh|Linear|Conv[123]d)\b",
)

_NO_LOGARITHMS = frozenset({"softmax", "sigmoid", "relu", "tanh", "linear"})


def check(module: Module) -> Iterator[Suspicion]:
    for call in module.loss_calls("torch.nn.NLLLoss", "torch.nn.functional.nll_loss"):
        scores = argument(call, "input", 0)
        activation = module.activations.of(scores) if scores is not None else None
        if activation is not None and activation.name in _NO_LOGARITHMS:
            message = f"the negative log likelihood takes log-probabilities and is given the output of {activation.is_of}"
            yield Suspicion(call, message, related=((activation.node, "that output is made here"),))
