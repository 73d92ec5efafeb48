"""TA502: the loss of a backward pass is cut off from the model, so no parameter gets a gradient.

The source says which expression cuts it off. A run sees only that a model put out something with a graph, and the loss has none.
"""

from collections.abc import Iterator

from ta_lint.checks.runs import losses
from ta_lint.events.graph import Lost
from ta_lint.events.run import Run
from ta_lint.events.suspicion import Said, Suspicion

KEYWORDS = (
    tuple(
        "detach detach_ item numpy tolist data tensor as_tensor from_numpy Variable *Tensor float int grad".split()
    ),
)
AROUND = losses.AROUND


def check_progress(run: Run) -> Iterator[Said]:
    for backward in run.backwards:
        for end in backward.lost(Lost.DETACHED):
            message = f"`{end.code}` cuts the loss off from the model, so nothing trains: remove it"
            yield Suspicion(end.place, message, related=losses.start(backward))
        for end in backward.lost(Lost.FIRST_ORDER):
            message = f"the loss is a gradient without a graph, so nothing trains: give `{end.code}` `create_graph=True`"
            yield Suspicion(end.place, message, related=losses.start(backward))
        if backward.cut and not backward.ends:
            message = "the loss has no graph, though the model's output has one: remove the `detach` or `item` in between"
            yield losses.graphless(backward, message, {"losses without a graph": backward.cut})
        elif not backward.cut:
            yield from losses.trained(backward)
    for reach in run.reaches:
        if reach.cut:
            message = "this model gets no gradient from the loss: remove the `detach` or `item` between them"
            yield from losses.starved(run, reach, message)
