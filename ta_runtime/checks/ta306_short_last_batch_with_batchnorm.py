"""TA306: the last batch of an epoch is a single sample, from which batch norm cannot compute statistics."""

from collections.abc import Iterator

from torch import nn

from ta_runtime.facts import Refutation, Said, Step, Suspicion, Unobserved

_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


def check_step(step: Step) -> Iterator[Said]:
    forwards = [forward for forward in step.training_forwards if forward.complete]
    if not forwards:
        return
    norms = sum(
        call.training and isinstance(call.module, _NORMS) for forward in forwards for call in forward.calls
    )
    for loader in {id(batch.loader): batch.loader for batch in step.batches}.values():
        size, samples = loader.batch_size, loader.samples
        if not loader.trained or not size or samples is None:
            continue
        last = samples % size
        numbers = {"samples": samples, "batch size": size, "batch norms": norms}
        if norms and size > 1 and last == 1 and not loader.drop_last:
            message = "the last batch of each epoch gives batch norm a single sample: set `drop_last=True`"
            yield Suspicion(loader.place, message, numbers)
        elif not norms:
            yield Unobserved(loader.place, "no batch norm ran in training mode")
        else:
            short = size if loader.drop_last else last or size
            because = f"the last batch has {short} of {size} samples"
            yield Refutation(loader.place, because, {**numbers, "last batch": short})
