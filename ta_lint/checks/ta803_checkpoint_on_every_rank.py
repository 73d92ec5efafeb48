"""TA803: every rank of a distributed run writes the same file."""

import re
from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.torch.wrappers import ParallelWrapper
from ta_lint.syntax.layout import plain
from ta_lint.syntax.tree import Node, argument, dotted, spreads

KEYWORDS = ("save",)
AROUND = (("init_process_group", "DistributedDataParallel"),)

# Parts that make a path differ between ranks, and targets that ranks do not share as a file.
_OWN = regex(r"rank|process_index|gpu|device|tmp|temp|BytesIO|uuid|getpid|hostname", re.IGNORECASE)

_PARTS = 40  # of a path; a path with more parts counts as a rank's own

# A condition with one of these may hold on one rank only.
_ASKS = regex(
    r"rank|master|main_?proc|is_main|primary|chief|leader|coordinator|gpu|node|device|(?<!multi)process",
    re.IGNORECASE,
)
_CALLERS_DEEP = 3

# Here all ranks save together, or the workers are not ranks.
_TOGETHER = regex(
    r"save_on_each_node|StateDictType|get_model_state_dict|torch\.distributed\.checkpoint|init_rpc|deepspeed|"
    r"ZeroRedundancyOptimizer|sharded_state_dict"
)


def check(module: FileFacts) -> Iterator[Suspicion]:
    if module.source.notebook is not None or _TOGETHER.search(module.source.text):
        return  # a notebook kernel is a single process
    for call in module.calls_to("torch.save"):
        target = argument(call, "f", 1)
        starts = _starts(call, module) if target is not None else None
        if target is None or starts is None or spreads(call) or _is_own(target, module):
            continue
        if _runs(call, module) and not _may_be_one_rank(call, module):
            message = f"every rank writes `{module.code(target)}`, which may corrupt it: write on rank 0"
            yield Suspicion(call, message, related=((starts, "the run has several ranks"),))


def _starts(save: cst.Call, module: FileFacts) -> cst.Call | None:
    """The call that shows that several ranks run the file that saves, or those that call its function; None if they also shard
    the model, or save together.
    """
    roots = [module.tree.root, *(root for root in module.loaders.users(save) if root is not module.tree.root)]
    wrapped = [found for root in roots for found in module.wrappers.made_in(root)]
    if any(found.wrapper is not ParallelWrapper.REPLICATED for found in wrapped):
        return None
    if any(_TOGETHER.search(module.parsed(root).source.text) for root in roots[1:]):
        return None
    begun = [call for root in roots for call in _begins(root, module)]
    return next(iter([*begun, *(found.call for found in wrapped)]), None)


def _begins(root: cst.Module, module: FileFacts) -> list[cst.Call]:
    """The calls of a file that make its process one of several ranks."""
    calls = module.tree.within(root, cst.Call)
    return [call for call in calls if module.qualified(call.func) == "torch.distributed.init_process_group"]


def _is_own(target: cst.BaseExpression, module: FileFacts) -> bool:
    """Whether a path may differ between ranks, or is no path, judged by its visible parts."""
    pending: list[Node] = [target]
    for _ in range(_PARTS):
        if not pending:
            return False
        part = module.kinds.origin(pending.pop())
        if isinstance(part, cst.Param):
            given = module.calls.given(part)
            if given is None:
                return _OWN.search(part.name.value) is not None
            pending += given
        elif _OWN.search(plain(part)):
            return True
        else:
            pending += [name for name in module.tree.within(part, cst.Name) if name is not part]
    return True


def _runs(call: cst.Call, module: FileFacts) -> bool:
    """Whether running the file, or a script that imports it, reaches a call; other callers of a function may test the rank."""
    return module.scripts.reaches(call)


def _may_be_one_rank(node: Node, module: FileFacts, depth: int = _CALLERS_DEEP) -> bool:
    """Whether a condition around a node, or around each call of its function, may let only one rank pass."""
    tree = module.tree
    if module.ranks.guard(node) is not None:
        return True
    for above in tree.ancestors(node):
        if isinstance(above, (cst.FunctionDef, cst.ClassDef)):
            break
        if isinstance(above, (cst.If, cst.IfExp)) and _asks_for_rank(above.test, module):
            return True
    function = tree.home(node)
    sites = module.calls_in_loop.sites(function) if depth and isinstance(function, cst.FunctionDef) else []
    ranked = [site for site in sites if _has_ranks(tree.root_of(site), module)]
    return bool(sites) and all(_may_be_one_rank(site, module, depth - 1) for site in ranked or sites)


def _has_ranks(root: cst.Module, module: FileFacts) -> bool:
    """Whether a file itself makes its process one of several ranks; another script may call the same function."""
    return bool(_begins(root, module) or module.wrappers.made_in(root))


def _asks_for_rank(test: Node, module: FileFacts) -> bool:
    """Whether a condition, or a value assigned to a variable or attribute in it, refers to the rank."""
    asked = {dotted(part) for part in module.tree.within(test, cst.Name, cst.Attribute)}
    values = [
        statement.value
        for target in module.tree.within(module.tree.root_of(test), cst.AssignTarget)
        if dotted(target.target) in asked and isinstance(statement := module.tree.parent[target], cst.Assign)
    ]
    return any(_ASKS.search(plain(part)) for part in (test, *values))
