"""Traces what this process does, into the folder of a run."""

from collections.abc import Iterator
from contextlib import contextmanager

from ta_lint.core.errors import UsageError
from ta_runtime.storage import Place
from ta_runtime.trace.trace import TraceWriter
from ta_runtime.trace.tracer import Tracer


@contextmanager
def collecting(
    folder: str | Place,
    *,
    level: str = "digests",
    every: int = 1,
    warm_up: int = 0,
    last: int | None = None,
) -> Iterator[TraceWriter]:
    """Trace what happens inside, for `ta-runtime infer` and `ta-runtime check`; build the model inside as well.

    Each rank of a distributed run writes its own files. What was traced before an exception is there.

    Args:
        folder: a path, or a URL that fsspec knows, such as `s3://bucket/traces/1`, where there is no run yet.
        level: `modules`: the loop, and the calls of modules; `digests`: the content of parameters, gradients and outputs as
            well; `ops`: every call of a function of torch as well.
        every: trace each n-th step so closely, and of those between the loop and collectives alone.
        warm_up: steps before the first that is traced so closely.
        last: keep the last so many steps, or a few more, and remove what is older; None: keep all.

    Raises:
        UsageError: an argument is wrong, or the folder cannot be written to, or holds a run already.
    """
    if last is not None and last < 1:
        raise UsageError(f"last: {last} must be at least 1")
    about = {"level": level, "every": every, "warm_up": warm_up, "last": last}
    writer = TraceWriter(folder, about=about, last=last)
    tracer = Tracer(writer.see, level=level, every=every, warm_up=warm_up, on_step_over=writer.step_over)
    tracer.start()
    try:
        yield writer
    finally:
        try:
            tracer.stop()
        finally:
            writer.close()
