"""TA618: training stops before its configured end: a floor for a ceiling, one batch too few, a leftover `break`."""

import re
from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.core.protocol import Action
from ta_lint.facts import FileFacts, Kind, Suspicion
from ta_lint.facts.loops.loops import Loop
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.layout import plain
from ta_lint.syntax.tree import LOOPS, Node, argument, dotted, evaluated, spreads

KEYWORDS = ("*backward", "step")

_TRIES_OUT = regex(r"debug|dry|smoke|fast_dev|sanity|profil|test|bench|demo", re.IGNORECASE)
_LOADER = regex(r"loader|batches|dl$", re.IGNORECASE)

# A deliberate limit may be larger than this many batches.
_A_FEW = 100


def check(module: FileFacts) -> Iterator[Suspicion]:
    if module.loops.framework:
        return
    for loop in module.tree.all(*LOOPS):
        if not {Action.BACKWARD, Action.STEP} <= module.order.actions(loop):
            continue
        for node, message in (*_floors(module, loop), *_one_less(module, loop), *_cuts(module, loop)):
            yield Suspicion(node, message, ((loop, "the training loop"),))


# -- a floor for a ceiling ------------------------------------------------------------------------------------


def _floors(module: FileFacts, loop: Loop) -> Iterator[tuple[Node, str]]:
    """A number of steps that bounds a loop and is rounded down from the length of a loader's full data."""
    bound = _bound(module, loop)
    for floor in _floor_divisions(module, bound) if bound is not None else ():
        length = floor.left
        if (
            bound is None
            or not isinstance(length, cst.Call)
            or called_name(length) != "len"
            or not length.args
        ):
            continue
        if _is_whole(module, length.args[0].value, floor.right):
            yield (
                bound,
                f"`{module.code(floor)}` rounds down, and the last batch of each epoch is left out: round the number of batches up",
            )


def _bound(module: FileFacts, loop: Loop) -> cst.BaseExpression | None:
    """`steps` in `for _ in range(steps)` and `while step < steps`."""
    if isinstance(loop, cst.For):
        call = loop.iter
        is_range = isinstance(call, cst.Call) and called_name(call) == "range" and len(call.args) == 1
        return call.args[0].value if isinstance(call, cst.Call) and is_range else None
    test = loop.test
    if not isinstance(test, cst.Comparison) or not isinstance(
        test.comparisons[0].operator, (cst.LessThan, cst.LessThanEqual)
    ):
        return None
    return test.comparisons[0].comparator


def _floor_divisions(module: FileFacts, bound: Node) -> list[cst.BinaryOperation]:
    """The divisions behind a number of steps; none if an addition compensates for the floor."""
    origins = [module.kinds.origin(bound)]
    origins += [module.kinds.origin(name) for name in module.tree.within(origins[0], cst.Name)]
    operations = [
        operation
        for origin in dict.fromkeys(origins)
        if isinstance(origin, cst.BaseExpression)
        for operation in module.tree.within(origin, cst.BinaryOperation)
    ]
    if any(isinstance(operation.operator, (cst.Add, cst.Subtract)) for operation in operations):
        return []
    return [operation for operation in operations if isinstance(operation.operator, cst.FloorDivide)]


def _is_whole(module: FileFacts, counted: Node, size: Node) -> bool:
    """Whether a loader of this file yields a whole dataset in batches of this size, with an incomplete last one."""
    for call in module.calls_to("torch.utils.data.DataLoader"):
        dataset, batch = argument(call, "dataset", 0), argument(call, "batch_size", 1)
        drop = argument(call, "drop_last", 8)
        whole = not spreads(call) and (drop is None or module.boolean(drop) is False)
        if not whole or dataset is None or batch is None or dotted(dataset) is None:
            continue
        if dotted(dataset) == dotted(counted) and plain(batch) == plain(size):
            return True
    return False


# -- one batch too few ----------------------------------------------------------------------------------------


def _one_less(module: FileFacts, loop: Loop) -> Iterator[tuple[Node, str]]:
    bound = _bound(module, loop)
    origin = module.kinds.origin(bound) if bound is not None else None
    if not isinstance(origin, cst.BinaryOperation) or not isinstance(origin.operator, cst.Subtract):
        return
    length = origin.left
    if not isinstance(length, cst.Call) or called_name(length) != "len" or module.number(origin.right) != 1:
        return
    if length.args and _is_loader(module, length.args[0].value):
        yield (
            bound or origin,
            f"`{module.code(origin)}` leaves out the last batch of each epoch: count it as well",
        )


def _is_loader(module: FileFacts, node: Node) -> bool:
    kind = module.kind(node)
    return kind is Kind.DATALOADER or (kind is None and _LOADER.search(dotted(node) or "") is not None)


# -- a leftover cut -------------------------------------------------------------------------------------------


def _cuts(module: FileFacts, loop: Loop) -> Iterator[tuple[Node, str]]:
    """`if i > 10: break`, or `islice(loader, 10)`, in a loop over a loader."""
    home = module.tree.home(loop)
    named = home.name.value if isinstance(home, cst.FunctionDef) else ""
    if not isinstance(loop, cst.For) or _TRIES_OUT.search(f"{module.source.path} {named}"):
        return
    if isinstance(home, cst.Module) and not module.tree.loops(loop) and _trains_elsewhere(module, loop):
        return
    calls = {called_name(call): call for call in module.tree.within(loop.iter, cst.Call)}
    if not any(_is_loader(module, n) for n in module.tree.within(loop.iter, cst.Name, cst.Attribute)):
        return
    cut = calls.get("islice")
    few = module.number(cut.args[1].value) if cut is not None and len(cut.args) == 2 else None
    if cut is not None and few is not None and few <= _A_FEW:
        yield cut, f"training sees only {few:.0f} batches of each epoch: remove the limit"
    if "enumerate" not in calls or not isinstance(loop.target, cst.Tuple):
        return
    index = dotted(loop.target.elements[0].value)
    for branch in module.tree.own(loop.body, cst.If):
        if module.tree.block(branch) is not loop.body or branch.orelse is not None:
            continue
        limit = _limit(module, branch, index)
        if limit is not None:
            yield branch.test, f"training leaves each epoch after some {limit} batches: remove this limit"


def _trains_elsewhere(module: FileFacts, tried: cst.For) -> bool:
    """Whether a script that takes a few batches once, outside any epoch, trains in another loop as well: it tries the loop out."""
    return any(
        loop is not tried
        and module.tree.loops(loop)
        and not module.tree.contains(loop, tried)
        and {Action.BACKWARD, Action.STEP} <= module.order.actions(loop)
        for loop in module.tree.all(cst.For)
    )


def _limit(module: FileFacts, branch: cst.If, index: str | None) -> int | None:
    """The literal number of batches after which a branch leaves the loop."""
    test, last = branch.test, branch.body.body[-1]
    if isinstance(last, cst.SimpleStatementLine):
        last = last.body[-1]
    if not isinstance(last, cst.Break) or not isinstance(test, cst.Comparison):
        return None
    target = test.comparisons[0]
    if (
        len(test.comparisons) != 1
        or dotted(test.left) != index
        or not isinstance(target.comparator, cst.Integer)
    ):
        return None
    grows = isinstance(target.operator, (cst.GreaterThan, cst.GreaterThanEqual, cst.Equal))
    limit = int(evaluated(target.comparator))
    return limit if grows and limit <= _A_FEW else None
