"""TA804: a training loop or step wraps a model again and again."""

from collections.abc import Iterator

from ta_lint.events.run import Run
from ta_lint.events.suspicion import Said, Suspicion

KEYWORDS = (("DistributedDataParallel", "FullyShardedDataParallel", "fully_shard"),)

_HARM = {
    "DistributedDataParallel": "which sends all its parameters to all ranks",
    "FullyShardedDataParallel": "which shards what is sharded already",
    "fully_shard": "which raises the second time",
}


def check_run(run: Run) -> Iterator[Said]:
    for one in run.rewrapped:
        what = f"`{one.wrapper}` wraps {one.model}"
        if one.loop is None:
            message = f"{what} again in each call of `{one.step}`, {_HARM[one.wrapper]}: wrap it once"
            yield Suspicion(one.place, message)
        else:
            message = (
                f"{what} again in each pass of the loop, {_HARM[one.wrapper]}: wrap it once, before the loop"
            )
            related = ((one.loop, "this loop wraps it again and again"),)
            yield Suspicion(one.place, message, related=related)
