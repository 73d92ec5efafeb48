"""TA504: the loss comes from a piecewise constant function such as argmax: its gradient is zero or missing."""

from collections.abc import Iterator

from ta_lint.facts import FileFacts, Suspicion

KEYWORDS = (("*backward", "*scaler"),)


def check(module: FileFacts) -> Iterator[Suspicion]:
    seen = set()
    for loss in module.gradients.losses:
        cut = module.gradients.of(loss.value).cut
        if cut is None or not cut.steps or cut.node in seen:
            continue
        seen.add(cut.node)
        message = (
            f"`{module.code(cut.node)}` gives the loss no gradient, so nothing trains: use a smooth function"
        )
        yield Suspicion(cut.node, message, related=((loss.call, "the backward pass starts here"),))
