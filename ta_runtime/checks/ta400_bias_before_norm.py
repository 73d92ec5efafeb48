"""TA400: a bias directly before a normalisation that subtracts it again."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd
from torch.nn.modules.instancenorm import _InstanceNorm

from ta_runtime.facts import Forward, Layer, Model, Refutation, Said, Step, Suspicion, Unobserved
from ta_runtime.probes.places import Place

OF_STRUCTURE = True


def check_model(model: Model) -> Iterator[Suspicion]:
    """Neighbours in a `Sequential`, also of a model that never ran."""
    cancelled = set()
    for layer in model.layers:
        children = list(layer.module.children()) if type(layer.module) is nn.Sequential else []
        cancelled |= {
            id(first) for first, norm in pairwise(children) if norm.training and _cancels(first, norm)
        }
    if cancelled:
        yield from _suspicions(layer for layer in model.own_layers if id(layer.module) in cancelled)


def check_step(step: Step) -> Iterator[Said]:
    """Calls that follow each other, whatever the code around them looks like."""
    for forward in step.training_forwards:
        if not any(isinstance(call.module, (_BatchNorm, _InstanceNorm)) for call in forward.calls):
            continue
        shares, idle = _normalised(forward)
        ran = [layer for layer in forward.model.own_layers if id(layer.module) in shares]
        yield from _suspicions(layer for layer in ran if shares[id(layer.module)] == 1.0)
        for layer in ran:
            share = shares[id(layer.module)]
            if share < 1.0 and id(layer.module) in idle:
                yield Unobserved(layer.place, "the norm after it runs in evaluation mode")
            elif share < 1.0:
                has_bias = "no" if layer.module.bias is None else "yes"
                because = (
                    f"a norm takes off its bias in {share:.0%} of the calls"
                    if has_bias == "yes"
                    else "it has no bias"
                )
                yield Refutation(
                    layer.place, because, {"bias": has_bias, "share of calls that a norm reads": share}
                )


def _normalised(forward: Forward) -> tuple[dict[int, float], set[int]]:
    """Of each layer, the share of its calls whose bias the normalisation that read the output takes off again.

    And the layers whose output a normalisation reads that would do so, but runs in evaluation mode.
    """
    idle: set[int] = set()
    producers: dict[int, nn.Module] = {}
    calls: Counter[int] = Counter()
    cancelled: Counter[int] = Counter()
    for call in forward.calls:
        module = call.module
        if module._modules or not call.inputs or not call.outputs:
            continue
        calls[id(module)] += 1
        given = call.inputs[0]
        producer = producers.get(id(given))
        by_channel = isinstance(producer, _ConvNd) or len(given.shape) == 2
        if producer is not None and by_channel and _cancels(producer, module):
            if call.training:
                cancelled[id(producer)] += 1
            else:
                idle.add(id(producer))
        producers[id(call.outputs[0])] = module
    shares = {
        id(call.module): cancelled[id(call.module)] / calls[id(call.module)]
        for call in forward.calls
        if isinstance(call.module, (nn.Linear, _ConvNd)) and calls[id(call.module)]
    }
    return shares, idle


def _cancels(layer: nn.Module, norm: nn.Module) -> bool:
    """Whether a norm in training subtracts, for each channel that the layer's bias shifts, the mean over all else."""
    if getattr(layer, "bias", None) is None or not getattr(norm, "num_features", 0):
        return False
    if isinstance(layer, _ConvNd):
        return isinstance(norm, (_BatchNorm, _InstanceNorm)) and norm.num_features == layer.out_channels
    return (
        isinstance(layer, nn.Linear)
        and isinstance(norm, _BatchNorm)
        and norm.num_features == layer.out_features
    )


def _suspicions(layers: Iterable[Layer]) -> Iterator[Suspicion]:
    places: dict[Place, list[Layer]] = defaultdict(list)
    for layer in layers:
        places[layer.place].append(layer)
    for place, found in places.items():
        kind = type(found[0].module).__name__
        message = f"the bias of this `{kind}` has no effect, as the normalisation after it subtracts it: set `bias=False`"
        yield Suspicion(place, message, {"layers": len(found), "first": found[0].name})
