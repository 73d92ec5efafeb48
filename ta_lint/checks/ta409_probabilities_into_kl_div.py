"""TA409: the input of `kl_div` is not the logarithm of probabilities."""

from collections.abc import Iterator

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.activations import NO_LOGARITHMS

KEYWORDS = (("kl_div", "KLDivLoss"),)


def check(module: FileFacts) -> Iterator[Suspicion]:
    for call, _, activation in module.loss_inputs("torch.nn.KLDivLoss", "torch.nn.functional.kl_div"):
        if activation.name in NO_LOGARITHMS:
            message = (
                f"the input of `kl_div` has to be log-probabilities and is the output of {activation.is_of}"
            )
            yield Suspicion(call, message, related=((activation.node, "that output is made here"),))
