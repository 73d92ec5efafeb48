"""TA502: the loss of a backward pass is detached from the model, so no parameter gets a gradient."""

from collections.abc import Iterator

from ta_lint.facts import FileFacts, Suspicion

KEYWORDS = (
    tuple(
        "detach detach_ item numpy tolist data tensor as_tensor from_numpy Variable *Tensor float int".split()
    ),
)
AROUND = (("*backward", "*scaler"),)


def check(module: FileFacts) -> Iterator[Suspicion]:
    seen = set()
    for loss in module.gradients.losses:
        cut = module.gradients.of(loss.value).cut
        if cut is None or cut.steps or cut.node in seen:
            continue
        seen.add(cut.node)
        message = f"`{module.code(cut.node)}` cuts the loss off from the model, so nothing trains: remove it"
        yield Suspicion(cut.node, message, related=((loss.call, "the backward pass starts here"),))
