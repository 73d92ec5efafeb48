"""TA312: the loss is averaged over padding because the criterion does not ignore it."""

from collections.abc import Iterator

from ta_runtime.facts import Loss, Refutation, Said, Step, Suspicion

SHARE = 0.05
"""The least share of padding among the targets: with less of it the mean hardly moves."""


def check_step(step: Step) -> Iterator[Said]:
    for loss in step.losses:
        padding = loss.padding
        if padding is None or padding.padded is None or not loss.training:
            continue
        share = padding.padded / padding.targets
        evidence = {"padding": padding.token, "share of the targets": round(share, 3)}
        if _leaves_out(loss, padding.token):
            because = f"the loss ignores {padding.token}, which pads {share:.0%} of the targets"
            yield Refutation(loss.place, because, evidence)
        elif not padding.padded:
            because = f"none of {padding.targets} targets is padding"
            yield Refutation(loss.place, because, evidence, of_data=True)
        elif share >= SHARE and loss.options["reduction"] == "mean" and loss.options["weight"] is None:
            message = f"the mean loss counts padding labels too: set `ignore_index` to {padding.token}"
            yield Suspicion(loss.place, message, evidence)


def _leaves_out(loss: Loss, token: int) -> bool:
    return bool(loss.options["ignore_index"] == token)
