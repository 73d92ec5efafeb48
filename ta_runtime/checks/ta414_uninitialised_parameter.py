"""TA414: a parameter enters training with uninitialised memory."""

import linecache
import re
from collections.abc import Iterator

from ta_runtime.facts import Content, Refutation, Run, Said, Suspicion


def check_progress(run: Run) -> Iterator[Said]:
    for content in run.contents:
        if content.changed is None:
            continue
        numbers = {"elements": content.elements, "written before the first step": content.changed}
        if content.written or content.changed:
            because = f"{content.elements} elements were written before the first step"
            yield Refutation(content.place, because, numbers)
        elif content.filled or not _may_be_zeroed(content):
            message = (
                f"`self.{content.name}` starts from whatever was in memory: initialise it, as with `nn.init`"
            )
            yield Suspicion(content.place, message, numbers)


def _may_be_zeroed(content: Content) -> bool:
    """Whether its file writes to a `.data`: torch does not count that, and zeros over zeros change nothing."""
    text = "".join(linecache.getlines(content.place.path))
    return re.search(rf"\b{content.name}\.data\b|\.data\.\w+_\(", text) is not None
