"""A preflight in the terminal."""

from collections.abc import Iterator
from pathlib import Path

from ta_lint.core.files import display
from ta_lint.core.terminal import harmless
from ta_runtime.preflight import words
from ta_runtime.preflight.briefing import Briefing


def rendered(briefing: Briefing, root: Path) -> str:
    """All there is to show, but the findings."""
    return "".join(f"{harmless(line)}\n" for line in _lines(briefing, root))


def _lines(briefing: Briefing, root: Path) -> Iterator[str]:
    name = Path(briefing.script).name or "the script"
    yield f"{name}: {briefing.until_first_step:.1f} s to its first step; looked at for {briefing.seconds:.1f} s"
    for peeked in briefing.loaders:
        title, what = words.loader(peeked)
        yield ""
        yield f"{title} ({_place(peeked.path, peeked.line, root)})"
        yield f"  {what}"
        yield from (f"  {line}" for line in words.looked_into(peeked))
    for call in briefing.entrances:
        yield ""
        yield f"{words.entrance(call)} ({_place(call.path, call.line, root)})"
        for each in call.inputs:
            yield f"  {each.name}: {words.kind(each)}, {words.content(each)}"
            if each.histogram:
                yield f"    {words.bars(each.histogram)}"
        yield from (f"  as text: {line}" for line in call.decoded)
    for loss in briefing.aims:
        yield ""
        yield f"{words.aim(loss)} ({_place(loss.path, loss.line, root)})"
        yield f"  {words.targets(loss)}"
    if briefing.tried:
        yield ""
        yield "tried on copies"
        yield from (f"  {line}" for line in briefing.tried)
    if briefing.not_tried:
        yield ""
        yield from (f"not looked at: {line}" for line in briefing.not_tried)


def _place(path: str, line: int, root: Path) -> str:
    return f"{display(root / path)}:{line}"
