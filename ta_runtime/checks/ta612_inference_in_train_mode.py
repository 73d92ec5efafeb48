"""TA612: an evaluation under `no_grad` finds its model in training mode."""

from collections.abc import Iterator

from ta_runtime.facts import Inference, Refutation, Run, Said, Sight, Suspicion, Unobserved


def check_run(run: Run) -> Iterator[Said]:
    for inference in run.modes.inferences:
        is_loaded = run.infers and inference.loaded > 0
        if not inference.unrecorded and not is_loaded:
            continue
        if not inference.unsettled:
            numbers = {"passes": inference.unrecorded, "in training mode, with layers that depend on it": 0}
            if not inference.plain:
                because = f"all {inference.unrecorded} passes are in evaluation mode"
                yield Refutation(inference.place, because, numbers)
            elif inference.idle:
                yield Unobserved(inference.place, "its dropout is 0 in this run")
            else:
                because = f"no layer depends on the mode, in {inference.plain} passes in training mode"
                yield Refutation(inference.place, because, numbers, rests_on=Sight.LAYERS)
        elif inference.dropouts + inference.norms and (is_loaded or _evaluates(inference)):
            evidence = {
                "passes in training mode": (inference.noisy or inference.loaded) + 1,
                "dropout layers": inference.dropouts,
                "batch norms": inference.norms,
            }
            yield Suspicion(
                inference.place,
                "the evaluation runs in training mode, with dropout or batch statistics: call `eval()` before",
                evidence,
            )


def _evaluates(inference: Inference) -> bool:
    """Whether losses are computed from the outputs, or the batches come from loaders that no step trained on."""
    if not inference.noisy:
        return False
    unseen = bool(inference.loaders) and not any(loader.trained for loader in inference.loaders)
    return unseen or (inference.measured > 0 and not inference.copied)
