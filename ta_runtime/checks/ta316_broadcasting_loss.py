"""TA316: input and target of a loss differ by a dimension of one, and broadcast to all pairs."""

from collections.abc import Iterator, Sequence

from ta_runtime.facts import Refutation, Said, Step, Suspicion, Unobserved

_ELEMENTWISE = ("huber_loss", "l1_loss", "mse_loss", "smooth_l1_loss")


def check_step(step: Step) -> Iterator[Said]:
    for loss in step.losses:
        if loss.function not in _ELEMENTWISE or not loss.training:
            continue
        given, target = tuple(loss.input.shape), tuple(loss.target.shape)
        evidence = {"input": str(given), "target": str(target)}
        if _pairs(given, target) or _pairs(target, given):
            message = (
                f"`{loss.function}` broadcasts to all pairs of samples and targets: give both the same shape"
            )
            yield Suspicion(loss.place, message, evidence)
        elif 1 in (*given[:1], *target[:1]):
            yield Unobserved(loss.place, "the batch is a single sample, whose shape tells nothing")
        else:
            because = f"input {given} and target {target} pair each sample with its own target"
            yield Refutation(loss.place, because, evidence)


def _pairs(longer: Sequence[int], shorter: Sequence[int]) -> bool:
    """Whether `longer` is `shorter` with a one at its end, or for a channel of images, that spreads each over all."""
    batch = shorter[0] if shorter else 1
    if batch == 1 or len(longer) != len(shorter) + 1:
        return False
    if [*shorter, 1] == [*longer]:
        return _fits(longer, shorter)
    return len(longer) >= 4 and [batch, 1, *shorter[1:]] == [*longer]


def _fits(longer: Sequence[int], shorter: Sequence[int]) -> bool:
    """Whether the two broadcast; otherwise torch raises an error that says why."""
    aligned = zip(longer[1:], shorter, strict=True)
    return all(one == other or 1 in (one, other) for one, other in aligned)
