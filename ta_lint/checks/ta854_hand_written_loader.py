"""TA854: a training loop slices its batches out of an array itself."""

import re
from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.loops.loops import Loop, TrainingLoop
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.layout import plain
from ta_lint.syntax.tree import Node, dotted

KEYWORDS = ("*backward", "step", ("range", "trange"))

# Experience just gathered by a policy is not a data set, nor is a text read in windows that carry a state.
_REINFORCES = regex(
    r"\b(gym|gymnasium|envs?|rollouts?|advantages?|replay\w*|policy|actor|critic|trajector\w+)\b"
)
_SEQUENCE = regex(r"bptt|seq|window|chunk|context|block|repackage|detach_hidden|time_?steps", re.IGNORECASE)

_COUNTS = frozenset({"range", "trange"})
_BATCH = regex(r"batch|bs\b|_bs|bsz", re.IGNORECASE)


def check(module: FileFacts) -> Iterator[Suspicion]:
    if _REINFORCES.search(module.source.text):
        return
    for training in module.training_loops:
        found = next(_slices(module, training), None)
        if found is not None:
            message = f"`{module.code(found)}` slices batches by hand: a `DataLoader` would shuffle, collate and prefetch"
            yield Suspicion(found, message)


def _slices(module: FileFacts, training: TrainingLoop) -> Iterator[cst.Subscript]:
    """The subscripts in a training loop that slice rows at positions computed by a counting loop."""
    for loop in training.loops:
        if not isinstance(loop, cst.For) or not _counts_batches(module, loop):
            continue
        moving = _moving(module, loop)
        for subscript in module.tree.own(loop.body, cst.Subscript):
            first = subscript.slice[0].slice
            if (
                isinstance(first, cst.Slice)
                and _runs_along(module, first, moving)
                and not _is_of_a_batch(module, subscript.value, loop)
                and not _SEQUENCE.search(plain(subscript))
            ):
                yield subscript


def _counts_batches(module: FileFacts, loop: cst.For) -> bool:
    """`range(0, n, batch_size)`, or `range(n // batch_size)` and other expressions that mention batches."""
    calls = [call for call in module.tree.within(loop.iter, cst.Call) if called_name(call) in _COUNTS]
    return any(len(call.args) == 3 or _BATCH.search(plain(call)) for call in calls)


def _moving(module: FileFacts, loop: cst.For) -> set[str]:
    """The loop's variable, and names computed from it in the loop: `start = i * batch_size`."""
    moving = {name.value for name in module.tree.within(loop.target, cst.Name)}
    for statement in module.tree.own(loop.body, cst.Assign):
        names = {name.value for name in module.tree.within(statement.value, cst.Name)}
        arithmetic = isinstance(statement.value, (cst.BinaryOperation, cst.Call))
        target = statement.targets[0].target
        if arithmetic and names & moving and isinstance(target, cst.Name):
            moving.add(target.value)
    return moving


def _runs_along(module: FileFacts, part: cst.Slice, moving: set[str]) -> bool:
    """Whether both ends of a slice move with the loop."""
    ends = [part.lower, part.upper]
    return all(
        end is not None and {name.value for name in module.tree.within(end, cst.Name)} & moving
        for end in ends
    )


def _is_of_a_batch(module: FileFacts, sliced: Node, loop: Loop) -> bool:
    """Whether the sliced value is itself a batch of an outer loop, cut into micro-batches."""
    name = (dotted(sliced) or "").partition(".")[0]
    around = [outer for outer in module.loaders.loops_around(loop) if isinstance(outer, cst.For)]
    return any(
        name == inner.value for outer in around for inner in module.tree.within(outer.target, cst.Name)
    )
