"""TA207: training runs on the CPU although there is a CUDA device."""

from collections.abc import Iterator

from ta_runtime.facts import Forward, Step, Suspicion

WORK = 1 << 28
"""The least multiplications of a forward pass. A CPU core does them in about 20 ms (measured: 14 per nanosecond in
float32); small models, such as policies of a few layers, are often faster there than on a GPU."""


def check_step(step: Step) -> Iterator[Suspicion]:
    if step.machine.accelerator != "cuda":
        return
    for forward in step.training_forwards:
        if not _is_on_cpu(forward):
            continue
        if sum(call.multiplications for call in forward.calls) >= WORK:
            message = "training is slow on the CPU while a CUDA device is idle: move model and batches to it"
            yield Suspicion(forward.model.place, message)


def _is_on_cpu(forward: Forward) -> bool:
    """The batch and the whole model."""
    if any(value.device.type != "cpu" for value in forward.inputs):
        return False
    module = forward.model.module
    return all(
        tensor.device.type == "cpu" for part in (module.parameters(), module.buffers()) for tensor in part
    )
