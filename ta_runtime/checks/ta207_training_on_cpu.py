"""TA207: a CUDA device is there, and the training runs on the CPU."""

from collections.abc import Iterator

from ta_runtime.facts import Step, Suspicion

WORK = 1 << 28
"""The least multiplications of a forward pass. A CPU core does them in about 10 ms (measured: 25 per nanosecond in
float32); small models, such as policies of a few layers, are often faster there than on a GPU."""


def check_step(step: Step) -> Iterator[Suspicion]:
    if step.machine.accelerator != "cuda":
        return
    for forward in step.training_forwards:
        tensors = [*forward.model.module.parameters(), *forward.model.module.buffers()]
        devices = {tensor.device.type for tensor in tensors} | {value.device.type for value in forward.inputs}
        if devices == {"cpu"} and sum(call.multiplications for call in forward.calls) >= WORK:
            message = "the model is trained on the CPU, while a CUDA device is available"
            yield Suspicion(forward.model.place, message)
