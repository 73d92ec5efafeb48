"""TA328: every rank of a distributed run draws its own split."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.tree import Node, argument, spreads

KEYWORDS = (("random_split", "Subset"),)
AROUND = (("init_process_group", "DistributedDataParallel", "Accelerator"),)

_RANKS = (
    "torch.distributed.init_process_group",
    "torch.nn.parallel.DistributedDataParallel",
    "accelerate.Accelerator",
)
_TORCH = ("torch.manual_seed", "torch.random.manual_seed")
_OTHERS = ("random.seed", "numpy.random.seed")
_GENERATORS = ("numpy.random.default_rng", "numpy.random.RandomState")
_SHARES = frozenset("broadcast broadcast_object_list scatter_object_list broadcast_object".split())
_DEPTH = 2  # functions that a seed is passed through
_OF_A_RANK = regex(r"(^|_)rank|process_index|worker_id")


def check(module: FileFacts) -> Iterator[Suspicion]:
    if module.loops.framework is not None:
        return
    splits = [call for call in module.calls_to("torch.utils.data.random_split") if not spreads(call)]
    splits += _permutations(module)
    if not splits or not _has_ranks(module) or _is_shared(module):
        return
    seeds = [call for each in module.script for call in each.tree.all(cst.Call) if _seeds_all(call, each)]
    for split in splits:
        given = _generator(split)
        if module.ranks.only_main(split):
            continue
        reason = _own_generator(given, module) if given is not None else _own_seed(seeds, module)
        if reason is not None:
            message = f"each rank draws a different split, {reason}: pass a generator with the same seed"
            yield Suspicion(split, message)


def _permutations(module: FileFacts) -> list[cst.Call]:
    """The calls that draw the order of samples of which several `Subset`s take a part each: `order[:count]`, `order[count:]`."""
    drawn: list[cst.Call] = []
    for subset in module.calls_to("torch.utils.data.Subset"):
        indices = argument(subset, "indices", 1)
        part = None if indices is None else _listed(indices)
        made = _listed(module.kinds.origin(part.value)) if isinstance(part, cst.Subscript) else None
        if isinstance(made, cst.Call) and _is_permutation(made, module):
            drawn.append(made)
    return [one for one in dict.fromkeys(drawn) if drawn.count(one) > 1 and not spreads(one)]


def _listed(indices: Node) -> Node:
    """What `indices.tolist()` makes a list of."""
    func = indices.func if isinstance(indices, cst.Call) else None
    return func.value if isinstance(func, cst.Attribute) and func.attr.value == "tolist" else indices


def _is_permutation(call: cst.Call, module: FileFacts) -> bool:
    """Whether it is `torch.randperm(count)`, or `rng.permutation(count)` of a generator."""
    called = module.qualified(call.func)
    return called == "torch.randperm" or (called is None and called_name(call) == "permutation")


def _generator(split: cst.Call) -> Node | None:
    """The generator that a split is given, or whose method it is."""
    func = split.func
    if isinstance(func, cst.Attribute) and func.attr.value == "permutation":
        return func.value
    return argument(split, "generator", 2)


def _has_ranks(module: FileFacts) -> bool:
    return any(each.calls_to(*_RANKS) for each in module.script)


def _is_shared(module: FileFacts) -> bool:
    """Whether anything of the program hands objects from one rank to the others."""
    return any(called_name(call) in _SHARES for each in module.script for call in each.tree.all(cst.Call))


def _seeds(call: cst.Call) -> bool:
    """Whether a call seeds a generator, by its name: `torch.manual_seed`, `seed_everything`, `self.set_seed`."""
    name = (called_name(call) or "").lower()
    return "seed" in name and not name.endswith(("worker", "worker_init_fn")) and name != "initial_seed"


def _seeds_all(call: cst.Call, module: FileFacts) -> bool:
    """Whether a call seeds torch's own generator, or may: not one of another generator."""
    called = module.qualified(call.func)
    is_other = called in _OTHERS or (called_name(call) == "manual_seed" and called not in _TORCH)
    return _seeds(call) and not is_other and not _is_seeding_inside(call, module)


def _is_seeding_inside(call: cst.Call, module: FileFacts) -> bool:
    """Whether a call runs a function of the project, and the calls that seed in it are seen by themselves."""
    function = module.calls.callee(call)
    return function is not None and any(map(_seeds, module.tree.within(function, cst.Call)))


def _own_seed(seeds: list[cst.Call], module: FileFacts) -> str | None:
    """Why ranks draw differently from the global generator; None where one seed may be common to all."""
    if not seeds:
        return "as nothing seeds it"
    return "as the seed has the rank in it" if all(_has_rank_in(call, module) for call in seeds) else None


def _own_generator(given: Node, module: FileFacts) -> str | None:
    """Why ranks draw differently from a generator of their own."""
    made = module.kinds.origin(given)
    seeds = [
        call
        for call in module.tree.within(made, cst.Call)
        if _seeds(call) or module.qualified(call.func) in _GENERATORS
    ]
    return "as the seed has the rank in it" if seeds and all(_has_rank_in(c, module) for c in seeds) else None


def _has_rank_in(call: cst.Call, module: FileFacts) -> bool:
    """Whether the first argument of a call is computed from the rank."""
    return bool(call.args) and _has_rank(call.args[0].value, module)


def _has_rank(value: Node, module: FileFacts, depth: int = _DEPTH) -> bool:
    """Whether a value is computed from the rank, here or in all calls that give it to this function."""
    names = [name for part in module.parts.of(value) for name in module.tree.within(part, cst.Name)]
    if any(_OF_A_RANK.search(name.value.lower()) is not None for name in names):
        return True
    given = [module.calls.given(one) for one in map(module.kinds.origin, names) if isinstance(one, cst.Param)]
    return depth > 0 and any(
        values and all(_has_rank(one, module, depth - 1) for one in values) for values in given
    )
