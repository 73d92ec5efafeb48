"""TA409: the input of `kl_div` is not the logarithm of probabilities."""

from collections.abc import Iterator

from ta_lint.events import suspicion as said
from ta_lint.events.run import Run
from ta_lint.events.suspicion import Said
from ta_lint.facts import FileFacts, Suspicion

KEYWORDS = (("kl_div", "KLDivLoss"),)


def check(module: FileFacts) -> Iterator[Suspicion]:
    for call, output in module.loss_inputs("torch.nn.KLDivLoss", "torch.nn.functional.kl_div"):
        if not output.is_logarithm:
            message = (
                f"`kl_div` expects log-probabilities but gets the output of {output.is_of}: use `log_softmax`"
            )
            yield Suspicion(call, message, related=((output.node, "that output is made here"),))


def check_run(run: Run) -> Iterator[Said]:
    """What only running the program shows, such as a distribution that an option selects."""
    for loss in run.scored:
        if loss.function == "kl_div" and not loss.is_logarithm:
            message = (
                f"`kl_div` expects log-probabilities but gets the output of {loss.is_of}: use `log_softmax`"
            )
            yield said.Suspicion(loss.place, message, related=((loss.applied, "that output is made here"),))
