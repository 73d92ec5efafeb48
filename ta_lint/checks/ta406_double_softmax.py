"""TA406: softmax or sigmoid output goes into `CrossEntropyLoss`, which applies softmax itself."""

from collections.abc import Iterator

from ta_lint.facts import Module, Suspicion
from ta_lint.facts.tree import argument

NEEDS = (
    r"\b(?:cross_entropy|CrossEntropyLoss)\b",
    r"\b(?:softmax|sigmoid|expit|Softmax|Softmax2d|Sigmoid)\b",
)


def check(module: Module) -> Iterator[Suspicion]:
    for call in module.loss_calls("torch.nn.CrossEntropyLoss", "torch.nn.functional.cross_entropy"):
        scores = argument(call, "input", 0)
        activation = module.activations.of(scores) if scores is not None else None
        if activation is not None and activation.name in ("softmax", "sigmoid"):
            message = f"cross entropy applies softmax to its input, which is already the output of `{activation.name}`"
            applied = f"`{activation.name}` is applied here"
            yield Suspicion(call, message, related=((activation.node, applied),))
