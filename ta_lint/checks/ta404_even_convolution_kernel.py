"""TA404: a convolution pads an even kernel equally on both sides, so its output is shifted and one larger."""

from collections.abc import Iterator

from ta_lint.events.run import Run
from ta_lint.events.suspicion import Said, Suspicion

KEYWORDS = (("Conv1d", "Conv2d", "Conv3d", "LazyConv1d", "LazyConv2d", "LazyConv3d"),)
ALONG = True


def check_run(run: Run) -> Iterator[Said]:
    for layer in run.windows:
        if any(_grows_by_one(*axis) for axis in layer.axes):
            message = f"this `{layer.kind}` pads an even kernel equally, which shifts and enlarges the output: use an odd kernel"
            yield Suspicion(layer.place, message)


def _grows_by_one(kernel: float, stride: float, padding: float, dilation: float) -> bool:
    """Whether padding meant to keep the size, such as `kernel_size // 2` for odd kernels, makes it one larger.

    A padding of `dilation * (kernel_size - 1)` is for causal convolutions, which cut the end off.
    """
    reach = dilation * (kernel - 1)
    return kernel % 2 == 0 and stride == 1 and 2 * padding == reach + 1 and padding < reach
