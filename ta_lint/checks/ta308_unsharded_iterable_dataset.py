"""TA308: an `IterableDataset` that does not check its worker yields each sample once per worker."""

import re
from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Kind, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.loaders import LoaderCall
from ta_lint.syntax.tree import Node

KEYWORDS = (
    "num_workers",
    "DataLoader",
)
AROUND = (
    "IterableDataset",
    "__iter__",
)

_ITERABLE = "torch.utils.data.IterableDataset"

# Words in a class that splits its samples among workers, or generates them.
_DIVIDES_OR_DRAWS = regex(
    r"worker|shard|rank|world|split|islice|partition|rand|shuffle|choice|sampl|node|DataPipe", re.IGNORECASE
)

# Sources that yield all their items to every reader.
_WHOLE = frozenset(
    "builtins.open builtins.range csv.DictReader csv.reader glob.glob glob.iglob gzip.open io.open json.load "
    "json.loads numpy.arange numpy.load os.listdir os.scandir os.walk pandas.read_csv".split()
)
_GOES_THROUGH = frozenset(
    "builtins.enumerate builtins.filter builtins.iter builtins.list builtins.map builtins.reversed builtins.sorted "
    "builtins.tuple builtins.zip tqdm.auto.tqdm tqdm.tqdm".split()
)
_GOES_THROUGH_METHODS = frozenset("items iterrows itertuples keys readlines splitlines values".split())
_DEPTH = 6


def check(module: FileFacts) -> Iterator[Suspicion]:
    for loader in module.loaders.all:
        klass = module.loaders.dataset_class(loader)
        if klass is None or loader.spreads or loader.given("worker_init_fn") is not None:
            continue
        if not module.classes.derives(klass, _ITERABLE) or not _has_workers(loader, module):
            continue
        iterates = module.classes.method(klass, "__iter__") or module.classes.methods(klass).get("__iter__")
        if iterates is None or _may_divide(klass, iterates, module):
            continue
        source = next((node for node in _sources(iterates, module) if _is_whole(node, module, _DEPTH)), None)
        if source is not None:
            name = klass.name.value
            message = f"every worker yields all samples of `{name}`, so each comes again: split by `get_worker_info`"
            yield Suspicion(loader.call, message, related=((source, "every worker starts here"),))


def _has_workers(loader: LoaderCall, module: FileFacts) -> bool:
    workers = loader.given("num_workers")
    number = module.number(workers) if workers is not None else None
    return number is not None and number > 1


def _may_divide(klass: cst.ClassDef, iterates: cst.FunctionDef, module: FileFacts) -> bool:
    """Whether a class may split its samples among workers, generate them, or never end."""
    regions: list[Node] = [
        klass,
        iterates,
        *(base for base in module.classes.bases(klass) if isinstance(base, Node)),
    ]
    mentioned = (name.value for region in regions for name in module.tree.within(region, cst.Name))
    return bool(module.tree.within(iterates, cst.While)) or any(
        _DIVIDES_OR_DRAWS.search(name) for name in mentioned if name != "IterableDataset"
    )


def _sources(iterates: cst.FunctionDef, module: FileFacts) -> Iterator[Node]:
    """The iterables that `__iter__` loops over, or returns as its iterator."""
    for loop in module.tree.own(iterates, cst.For):
        if module.tree.own(loop, cst.Yield) and _uses_items(loop, module):
            yield loop.iter
    for leave in module.tree.own(iterates, cst.Return):
        if leave.value is not None:
            yield leave.value
    for given in module.tree.own(iterates, cst.From):
        yield given.item


def _uses_items(loop: cst.For, module: FileFacts) -> bool:
    """Whether the samples depend on the loop's items: `for _ in range(n)` only counts them."""
    names = {name.value for name in module.tree.within(loop.target, cst.Name)}
    return any(name.value in names for name in module.tree.within(loop.body, cst.Name))


def _is_whole(node: Node, module: FileFacts, depth: int) -> bool:
    """Whether a source yields the same items in each worker: a file, a range, a list."""
    values = module.loaders.alternatives(node) if depth else []
    return bool(values) and all(_is_whole_value(value, module, depth - 1) for value in values)


def _is_whole_value(value: Node, module: FileFacts, depth: int) -> bool:
    if isinstance(value, (cst.List, cst.Tuple, cst.ListComp)) or module.kind(value) is Kind.TENSOR:
        return True
    if not isinstance(value, cst.Call):
        return False
    called = module.qualified(value.func)
    if called in _WHOLE:
        return True
    if called in _GOES_THROUGH:
        return any(_is_whole(arg.value, module, depth) for arg in value.args)
    receiver = value.func.value if isinstance(value.func, cst.Attribute) else None
    return (
        receiver is not None
        and called_name(value) in _GOES_THROUGH_METHODS
        and _is_whole(receiver, module, depth)
    )
