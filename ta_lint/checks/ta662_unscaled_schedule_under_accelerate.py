"""TA662: a schedule prepared by Accelerate steps once per process, but its length is that of one process."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.torch.lengths import length as length_of
from ta_lint.facts.torch.preparing import PrepareCall, Preparer
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.tree import Node, dotted

KEYWORDS = (("prepare", "prepare_scheduler"),)
AROUND = (("Accelerator", "accelerate"), ("lr_scheduler", "*schedule*"))

# Words with which an expression uses the number of processes, or a program steps once for all of them.
_PROCESSES = ("process", "world", "replica", "gpu", "device", "rank")
_ONCE = ("split_batches", "step_scheduler_with_optimizer")
# How a count of steps is compared where a loop ends, and where it goes on.
_ENDS = (cst.GreaterThanEqual, cst.Equal, cst.GreaterThan)
_GOES_ON = (cst.LessThan, cst.LessThanEqual, cst.NotEqual)


def check(module: FileFacts) -> Iterator[Suspicion]:
    reported: set[Node] = set()
    for prepared in module.preparing.all:
        if prepared.preparer is not Preparer.ACCELERATE or _steps_once(module):
            continue
        for made, length in _schedules(prepared, module):
            reason = _of_one_process(length, module) if made not in reported else None
            if reason is not None:
                reported.add(made)
                message = "a prepared schedule steps once per process and ends early: multiply its length by their number"
                related = ((prepared.call, "prepared here"), reason)
                yield Suspicion(made if module.is_here(made) else prepared.call, message, related)


def _steps_once(module: FileFacts) -> bool:
    """Whether the program says anything of batches that are split, or of schedules that step by themselves."""
    return any(
        arg.keyword is not None and arg.keyword.value in _ONCE
        for facts in module.script
        for arg in facts.tree.all(cst.Arg)
    )


def _schedules(prepared: PrepareCall, module: FileFacts) -> Iterator[tuple[cst.Call, cst.BaseExpression]]:
    """The schedules among the prepared objects, each with its length."""
    for given in prepared.given:
        for origin in module.flow.of(given).tensors if given is not None else ():
            node = origin.node
            length = length_of(node, module.names) if isinstance(node, cst.Call) and not origin.path else None
            if isinstance(node, cst.Call) and length is not None:
                yield node, length


def _of_one_process(length: cst.BaseExpression, module: FileFacts) -> tuple[Node, str] | None:
    """What shows that a length counts the steps of one process: the prepared loader, or the end of the loop."""
    parts = module.parts.of(length)
    if any(_minds_processes(part, module) for part in (*parts, *_assigned(length, module))):
        return None
    lengths = [call for part in parts for call in module.tree.within(part, cst.Call) if _is_len(call)]
    if lengths:  # a loader that is not prepared yet has the batches of all processes
        is_of_one = all(_is_prepared(call.args[0].value, module) for call in lengths)
        return (lengths[0], "the batches of one process") if is_of_one else None
    end = _end_of_loop(length, module)
    return (end, "the steps after which the loop ends") if end is not None else None


def _minds_processes(node: Node, module: FileFacts) -> bool:
    names = (name.value.lower() for name in module.tree.within(node, cst.Name))
    return any(word in name for name in names for word in _PROCESSES)


def _assigned(length: Node, module: FileFacts) -> list[Node]:
    """What a setting that a length is, such as `args.max_train_steps`, is set to in the same function."""
    name = dotted(length)
    return [
        assign.value
        for assign in module.tree.own(module.tree.home(length), cst.Assign)
        if name is not None and any(dotted(target.target) == name for target in assign.targets)
    ]


def _is_len(call: cst.Call) -> bool:
    return called_name(call) == "len" and isinstance(call.func, cst.Name) and len(call.args) == 1


def _is_prepared(loader: Node, module: FileFacts) -> bool:
    prepared = module.preparing.of(loader)
    return prepared is not None and prepared.preparer is Preparer.ACCELERATE


def _end_of_loop(length: Node, module: FileFacts) -> cst.If | cst.While | None:
    """What ends a loop that trains by the same number as a length: `if step >= args.max_steps: break`, `while step < args.max_steps`."""
    branches: list[cst.If | cst.While] = module.tree.all(cst.If, cst.While)
    for branch in branches if dotted(length) is not None else ():
        loop: Node | None = branch
        if isinstance(branch, cst.If):
            loops = module.tree.loops(branch)
            loop = loops[-1] if loops and module.tree.own(branch.body, cst.Break, cst.Return) else None
        test = branch.test
        if loop is None or not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
            continue
        compared = test.comparisons[0]
        is_end = isinstance(compared.operator, _GOES_ON if isinstance(branch, cst.While) else _ENDS)
        if is_end and _means_same(compared.comparator, length, module) and module.loops.trains(loop):
            return branch
    return None


def _means_same(one: Node, other: Node, module: FileFacts) -> bool:
    """Whether two expressions are one number: by an equal name in one function, or as they come from one place."""
    if module.tree.home(one) is module.tree.home(other) and dotted(one) == dotted(other):
        return True
    ways = [{(origin.node, origin.path) for origin in module.flow.of(each).origins} for each in (one, other)]
    return len(ways[0]) == 1 and ways[0] == ways[1]
