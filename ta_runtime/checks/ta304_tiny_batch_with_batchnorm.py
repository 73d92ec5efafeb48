"""TA304: a batch norm in training mode takes its statistics from a handful of values."""

from collections.abc import Iterator

import torch.distributed as dist
from torch import nn

from ta_runtime.facts import LayerCall, Refutation, Said, Step, Suspicion
from ta_runtime.probes.places import Place

VALUES = 8
"""Of each channel, over batch and positions. The batch size below which Wu and He (Group Normalization, 2018) measured a
loss of accuracy, and torch-audit's; the standard error of a variance from 8 normal values is 53 % of it."""
STEPS = 2
"""Audited steps in a row, so that the short last batch of an epoch is not meant."""
_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)


def check_step(step: Step) -> Iterator[Said]:
    fullest: dict[Place, LayerCall] = {}
    for forward in step.training_forwards:
        calls = [call for call in forward.calls if call.training and isinstance(call.module, _NORMS)]
        if not calls:
            continue
        fewest = min(calls, key=_values)
        known = fullest.get(forward.place)
        if known is None or _values(known) < _values(fewest):
            fullest[forward.place] = fewest
    for place, call in fullest.items():
        values = _values(call)
        if step.history.streak(("TA304", place), values < VALUES) >= STEPS or (values == 1 and call.raised):
            message = "batch norm is noisy, with too few values per channel: use larger batches or group norm"
            yield Suspicion(place, message, {"values per channel": int(values), "layer": call.layer.name})
        elif VALUES <= values < float("inf"):
            because = f"batch norm gets {int(values)} values per channel"
            yield Refutation(place, because, {"values per channel": int(values), "layer": call.layer.name})


def check_data(step: Step) -> Iterator[Suspicion]:
    """Few samples with many positions each: their values are alike, so the statistics are noisier than their number says.

    Wu and He measured a loss of accuracy with them: 2 images for each batch norm, of a ResNet-50 on ImageNet.
    """
    for forward in step.training_forwards:
        for call in forward.calls:
            samples = call.inputs[0].shape[0] if call.inputs and len(call.inputs[0].shape) > 2 else VALUES
            if call.training and isinstance(call.module, _NORMS) and samples < VALUES <= _values(call):
                message = "batch norm takes its statistics from few samples: use larger batches or group norm"
                yield Suspicion(
                    forward.place, message, {"samples": samples, "layer": call.layer.name}, is_note=True
                )
                break


def _values(call: LayerCall) -> float:
    """Values of one channel in the statistics of a call, of all ranks where they are synchronised."""
    if not call.inputs or len(call.inputs[0].shape) < 2:
        return float("inf")
    given = call.inputs[0]
    values = given.numel // max(given.shape[1], 1)
    if isinstance(call.module, nn.SyncBatchNorm) and dist.is_available() and dist.is_initialized():
        values *= dist.get_world_size(call.module.process_group)
    return values
