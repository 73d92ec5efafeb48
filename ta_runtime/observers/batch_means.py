"""Sees numbers that are read once for each batch of a pass and averaged over batches, in the first passes that evaluate."""

import ast
import math
from functools import cache
from typing import TYPE_CHECKING

from torch import Tensor

from ta_lint.events.batch_mean import BatchMean
from ta_runtime.observers.observer import Observer
from ta_runtime.probes import sources
from ta_runtime.probes.patching import Call, End
from ta_runtime.probes.places import Place, here

if TYPE_CHECKING:
    from ta_runtime.facts import Loader, Run
    from ta_runtime.observers.context import Context

_RULE = "TA332"
_PASSES = 16
"""Passes of a loader that are looked at."""
_MOST = 4096  # numbers of a pass
_MEANS = frozenset({"mean", "fmean", "average"})


class BatchMeans(Observer):
    """Watches what is read while a loader is iterated whose last batch is shorter than the others."""

    def __init__(self, session: "Context") -> None:
        super().__init__(session)
        self._wanted = _RULE in session.settings.rules
        self._means: dict[Place, BatchMean] = {}
        self._looked: dict[int, int] = {}  # passes of each loader, by the id of its facts
        self._loader: Loader | None = None
        self._began = 0
        self._sizes: list[int] = []
        self._read: dict[Place, list[float]] = {}

    def handed_out(self, loader: "Loader", tensors: list[Tensor]) -> None:
        if not self._wanted or not tensors or not tensors[0].dim():
            return
        if loader is not self._loader:
            if not _is_uneven(loader) or self._looked.get(id(loader), 0) >= _PASSES:
                return
            self._begin(loader)
        elif self.session.step_count != self._began:
            self._stop()  # it trains
            self._looked[id(loader)] = _PASSES
            return
        self._sizes.append(len(tensors[0]))

    def pass_ended(self, loader: "Loader") -> None:
        if loader is not self._loader:
            return
        self._looked[id(loader)] = self._looked.get(id(loader), 0) + 1
        if self.session.step_count == self._began:
            for place, values in self._read.items():
                self._judge(place, values)
        self._stop()

    def report(self, run: "Run") -> None:
        run.batch_means = list(self._means.values())

    def _begin(self, loader: "Loader") -> None:
        self._stop()
        self._loader, self._began = loader, self.session.step_count
        self._listen("read", self._reads)

    def _stop(self) -> None:
        self.undo()
        self._loader, self._sizes, self._read = None, [], {}

    def _reads(self, call: Call) -> End | None:
        value = call.args[0]
        is_mean = type(value) is Tensor and value.numel() == 1 and value.is_floating_point()
        return self._was_read if is_mean else None

    def _was_read(self, call: Call) -> None:
        if not call.raised and type(call.result) is float and len(self._read) < _MOST:
            values = self._read.setdefault(here(), [])
            if len(values) < len(self._sizes):
                values.append(call.result)

    def _judge(self, place: Place, values: list[float]) -> None:
        sizes = self._sizes
        if len(values) != len(sizes) or len(sizes) < 2 or not all(map(math.isfinite, values)):
            return
        added = averaged_at(place)
        if added is None:
            return
        found = self._means.setdefault(added, BatchMean(added))
        found.passes += 1
        found.batches = len(values)
        found.shortest, found.longest = min(sizes), max(sizes)
        found.mean = sum(values) / len(values)
        found.exact = sum(value * size for value, size in zip(values, sizes, strict=True)) / sum(sizes)
        if found.exact:
            found.error = max(found.error, abs(found.mean / found.exact - 1))


def _is_uneven(loader: "Loader") -> bool:
    samples, size = loader.samples, loader.batch_size
    return bool(samples and size and size > 1 and not loader.drop_last and samples > size and samples % size)


@cache
def averaged_at(place: Place) -> Place | None:
    """Where what a line reads is added to a total, as it is, that its function divides by the number of batches."""
    tree = sources.syntax(place.path)
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and node.lineno <= place.line <= (node.end_lineno or node.lineno)
    ]
    functions = [node for node in around if isinstance(node, ast.FunctionDef)]
    scope: ast.AST = functions[-1] if functions else tree
    statement = around[-1] if around else None
    if isinstance(statement, ast.Assign) and _is_read(statement.value):
        name = ast.unparse(statement.targets[0])
        later = (node for node in ast.walk(scope) if isinstance(node, ast.stmt))
        statement = next((node for node in later if _total(node, name)), None)
        total = _total(statement, name) if statement is not None else None
    else:
        total = _total(statement, None) if statement is not None else None
    if statement is None or total is None or not any(_averages(node, total) for node in ast.walk(scope)):
        return None
    return sources.of_node(place.path, statement)


def _total(statement: ast.stmt, name: str | None) -> str | None:
    """The total that a statement adds a number to: what is read there, or the variable of a name."""
    match statement:
        case ast.AugAssign(op=ast.Add(), target=target, value=value):
            pass
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=target, attr="append"), args=[value])):
            pass
        case _:
            return None
    is_it = _is_read(value) if name is None else ast.unparse(value) == name
    return ast.unparse(target) if is_it else None


def _is_read(value: ast.expr) -> bool:
    """Whether it is `x.item()` or `float(x)` alone."""
    match value:
        case (
            ast.Call(func=ast.Attribute(attr="item"), args=[]) | ast.Call(func=ast.Name(id="float"), args=[_])
        ):
            return True
    return False


def _averages(node: ast.AST, total: str) -> bool:
    """Whether it is the mean of a total over batches: `total / len(loader)`, `sum(total) / len(total)` or `mean(total)`."""
    match node:
        case (
            ast.BinOp(op=ast.Div(), left=left, right=right)
            | ast.AugAssign(op=ast.Div(), target=left, value=right)
        ):
            return ast.unparse(left) in (total, f"sum({total})") and _counts_batches(right)
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=[given, *_]):
            return name in _MEANS and ast.unparse(given) == total
    return False


def _counts_batches(divisor: ast.expr) -> bool:
    match divisor:
        case ast.Call(func=ast.Name(id="len"), args=[counted]):
            return not ast.unparse(counted).endswith(("dataset", "data_set"))
        case ast.Name(id=name):
            return "batches" in name
    return False
