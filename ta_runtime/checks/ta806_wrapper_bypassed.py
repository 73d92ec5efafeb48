"""TA806: a training step runs the model inside `DistributedDataParallel`, so nothing reduces its gradients."""

from collections.abc import Iterator

from torch import nn

from ta_runtime.facts import Forward, Refutation, Said, Step, Suspicion, Wrapper

LOOKED_INTO = 8
"""Forward passes of a step: of more, the wrapper may have run in one that was not looked into."""


def check_step(step: Step) -> Iterator[Said]:
    if len(step.forwards) >= LOOKED_INTO:
        return
    for wrapper in step.wrappers:
        inner = wrapper.module.get_submodule("module")
        through = [forward for forward in step.training_forwards if _ran(wrapper.module, forward)]
        past = [
            forward for forward in step.training_forwards if forward not in through and _ran(inner, forward)
        ]
        if not past or not _trained(inner, step):
            continue
        by_hand = wrapper.reduced / max(sum(tensor.numel() for tensor in inner.parameters()), 1)
        for forward in past:
            if through:
                because = f"{len(through)} forward passes of the step go through the wrapper"
                numbers = {"forward passes through the wrapper": len(through)}
                yield Refutation(forward.place, because, numbers)
            elif by_hand >= 0.5:
                share = min(by_hand, 1.0)
                because = f"the code reduces {share:.0%} of the gradients itself"
                yield Refutation(forward.place, because, {"share of the elements reduced by hand": share})
            else:
                yield _suspicion(forward, wrapper, len(past))


def _suspicion(forward: Forward, wrapper: Wrapper, count: int) -> Suspicion:
    return Suspicion(
        forward.place,
        "gradients are not reduced, so ranks drift apart: call the `DistributedDataParallel` model",
        {"forward passes past the wrapper": count, "through it": 0},
        related=((wrapper.place, "the model is wrapped here"),),
        cause="diverged replicas",
    )


def _ran(module: object, forward: Forward) -> bool:
    return any(call.module is module for call in forward.calls)


def _trained(model: nn.Module, step: Step) -> bool:
    """Whether an optimizer used gradients of a model in this step."""
    own = {id(tensor) for tensor in model.parameters()}
    return any(
        bool(present) and id(tensor) in own
        for gradients in step.gradients
        for tensor, present in zip(gradients.tensors, gradients.present, strict=True)
    )
