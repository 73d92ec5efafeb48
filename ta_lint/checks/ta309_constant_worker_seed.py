"""TA309: `worker_init_fn` gives every worker of a loader the same seed, so all draw the same random numbers."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.syntax.tree import FUNCTIONS, Node, argument

KEYWORDS = ("*seed*",)
AROUND = ("worker_init_fn",)

_DEPTH = 5

Function = cst.FunctionDef | cst.Lambda

# Functions that seed a generator with their first argument.
_SEEDS = frozenset(
    "accelerate.utils.set_seed lightning.fabric.utilities.seed.seed_everything lightning.pytorch.seed_everything "
    "lightning.seed_everything numpy.random.seed random.seed torch.cuda.manual_seed torch.cuda.manual_seed_all "
    "torch.manual_seed torch.random.manual_seed transformers.set_seed transformers.trainer_utils.set_seed".split()
)


def check(module: FileFacts) -> Iterator[Suspicion]:
    seen: set[Function] = set()
    others = module.names.beside("worker_init_fn")
    roots = [module.tree.root, *(others or ())]
    for call in (call for root in roots for call in module.tree.within(root, cst.Call)):
        given = argument(call, "worker_init_fn")
        function = _function(given, module) if given is not None else None
        if given is None or function is None or function in seen or _has_one_worker(call, module):
            continue
        seen.add(function)
        bound = _bound(given, module)
        seeds = [(found, _seed(found, module)) for found in module.tree.own(function, cst.Call)]
        values = [(found, value) for found, value in seeds if value is not None]
        if values and all(_is_alike(value, function, bound, module, _DEPTH) for _, value in values):
            message = f"every worker is seeded with `{module.code(values[0][1])}` and draws the same numbers: add the worker id"
            yield Suspicion(values[0][0], message, related=((call, "the loader whose workers run this"),))


def _bound(given: Node, module: FileFacts) -> frozenset[str]:
    """The parameters that `functools.partial` binds by keyword, the same for each worker."""
    origin = module.kinds.origin(given)
    args = origin.args if isinstance(origin, cst.Call) else ()
    return frozenset(arg.keyword.value for arg in args if arg.keyword is not None)


def _function(given: Node, module: FileFacts) -> Function | None:
    """The function of the project that is passed to the loader, directly or through `functools.partial`."""
    origin = module.kinds.origin(given)
    if isinstance(origin, cst.Call) and module.qualified(origin.func) == "functools.partial" and origin.args:
        origin = module.kinds.origin(origin.args[0].value)
    if isinstance(origin, cst.Lambda):
        return origin
    return module.calls.function(origin)


def _has_one_worker(call: cst.Call, module: FileFacts) -> bool:
    workers = argument(call, "num_workers")
    return workers is not None and module.number(workers) in (0, 1)


def _seed(call: cst.Call, module: FileFacts) -> Node | None:
    """The seed that a call sets, also through a function of this file that passes it on."""
    if module.qualified(call.func) in _SEEDS:
        return call.args[0].value if call.args and not call.args[0].star else None
    callee = module.calls.callee(call)
    if callee is None or len(call.args) != 1 or call.args[0].star:
        return None
    inner = [
        found.args[0].value
        for found in module.tree.own(callee, cst.Call)
        if module.qualified(found.func) in _SEEDS and found.args
    ]
    params = {param.name.value for param in callee.params.params}
    handed_on = [value for value in inner if isinstance(value, cst.Name) and value.value in params]
    return call.args[0].value if inner and len(handed_on) == len(inner) else None


def _is_alike(value: Node, function: Function, bound: frozenset[str], module: FileFacts, depth: int) -> bool:
    """Whether an expression has the same value in each worker: it contains neither calls nor the worker's id."""
    value = module.kinds.origin(value)
    if depth == 0 or module.tree.within(value, cst.Call, cst.Subscript):
        return False
    if isinstance(value, cst.Param):
        return module.tree.enclosing(value, *FUNCTIONS) is not function or value.name.value in bound
    names = [value] if isinstance(value, cst.Name) else module.tree.within(value, cst.Name)
    for name in names:
        own = [
            b for b in module.names.bindings(name) if module.tree.enclosing(b.node, *FUNCTIONS) is function
        ]
        if own and (name is value or not _is_alike(name, function, bound, module, depth - 1)):
            return False
    return True
