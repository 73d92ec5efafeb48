"""Which ranks of a distributed run reach a line: tests for the main process, and early exits of the others."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts.values.calls import Calls
from ta_lint.facts.values.kinds import Kinds
from ta_lint.facts.values.names import Names
from ta_lint.syntax.tree import BLOCKS, FUNCTIONS, Node, Tree, argument, dotted, literal_key, literal_text

_CALLERS_DEEP = 2

# The rank among all processes, or among those of its machine. `tp_rank` and the like are ranks in a subgroup, and
# `lora_rank` is no process rank.
_RANK = regex(
    r"_*((local|global|world|process|proc|ddp|dist|distributed|current|cur|my|this)_)*rank|(local_)?process_index",
    re.IGNORECASE,
)
_RANK_FUNCTION = regex(r"_*get_((local|global|world)_)?rank|get_ordinal|get_local_ordinal")
_RANK_VARIABLE = regex(r"(OMPI_COMM_WORLD_|SLURM_)?(LOCAL_|GLOBAL_)?(RANK|PROCID|LOCALID)")

# Names for the one process that logs and saves.
_MAIN = regex(
    r"_*(is_|am_|im_|on_|if_)?((local|global|world)_)*(main|master|primary|chief)_(process|proc|rank|node|worker)|"
    r"_*is_((local|global|world)_)*(main|master|primary|chief|coordinator)|"
    r"_*(is_)?(global_|local_|world_)?(rank_?|process_)?(zero|rank_?0)|_*is_(global_|world_|local_)?(first|zero)_(rank|process)",
    re.IGNORECASE,
)
# Decorators of functions that only that process runs.
_ONLY_MAIN = regex(
    r"(\w*\.)*(on_(local_)?main_process|on_process|(rank_?(zero|0)|main(_process)?|master(_process)?)_only|"
    r"(run|only)_on_(main|master|rank_?(zero|0))(_process)?)"
)
_IS_DISTRIBUTED = regex(
    r"distribut|is_initialized|is_available|world_size|ddp|n_?gpu|num_gpu|multi_?gpu|nprocs|_dist\b|dist_"
)


@dataclass(frozen=True, eq=False)
class Guard:
    """`test`, a condition or decorator, lets only the main process pass (`main`), or all other ranks."""

    test: Node
    main: bool


class Ranks:
    """The conditions on the rank around the lines of a file."""

    def __init__(self, tree: Tree, names: Names, kinds: Kinds, calls: Calls) -> None:
        self._tree = tree
        self._names = names
        self._kinds = kinds
        self._calls = calls

    def guard(self, node: Node) -> Guard | None:
        """The innermost condition in a node's own function that lets only one rank pass, or all but one."""
        return next(self._guards(node), None)

    def guards(self, node: Node) -> list[Guard]:
        """All such conditions, the innermost first."""
        return list(self._guards(node))

    def only_main(self, node: Node) -> bool:
        """Whether only one rank reaches a node: by a guard around it, or around all calls of its function."""
        return self._only_main(node, _CALLERS_DEEP)

    def runs_alone(self, node: Node) -> bool:
        """Whether a condition around a node holds in a run that is not distributed alone: `if local_rank == -1:`."""
        child = node
        for above in self._tree.ancestors(node):
            if isinstance(above, cst.If) and child is above.body and self._says_alone(above.test):
                return True
            if isinstance(above, FUNCTIONS):
                return False
            child = above
        return False

    def _says_alone(self, test: Node) -> bool:
        if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And):
            return self._says_alone(test.left) or self._says_alone(test.right)
        if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1 or not self._is_rank(test.left):
            return False
        [compared] = test.comparisons
        number = self._kinds.number(compared.comparator)
        return isinstance(compared.operator, cst.Equal) and number is not None and number < 0

    def _only_main(self, node: Node, depth: int) -> bool:
        if any(guard.main for guard in self._guards(node)):
            return True
        function = self._tree.home(node)
        if depth == 0 or not isinstance(function, cst.FunctionDef):
            return False
        sites = self._calls.sites(function)
        return bool(sites) and all(self._only_main(site, depth - 1) for site in sites)

    def _guards(self, node: Node) -> Iterator[Guard]:
        child = node
        for above in self._tree.ancestors(node):
            if isinstance(above, (cst.If, cst.IfExp)) and child is not above.test:
                yield from self._of_test(above.test, truth=child is above.body)
            elif isinstance(above, cst.BooleanOperation) and child is above.right:
                yield from self._of_test(above.left, truth=isinstance(above.operator, cst.And))
            elif isinstance(above, BLOCKS):
                yield from self._early_exits(above, child)
            elif isinstance(above, (*FUNCTIONS, cst.ClassDef)):
                if isinstance(above, cst.FunctionDef) and child is above.body:
                    yield from self._decorators(above)
                return
            child = above

    def _early_exits(self, block: Node, child: Node) -> Iterator[Guard]:
        """The guards from `if rank != 0: return` earlier in the statement list."""
        body = block.body if isinstance(block, BLOCKS) else ()
        for earlier in reversed(body[: body.index(child)]):
            if isinstance(earlier, cst.If) and earlier.orelse is None and self._leaves(earlier.body):
                yield from self._of_test(earlier.test, truth=False)

    def _leaves(self, body: Node) -> bool:
        """Whether a block ends by leaving the enclosing block."""
        last = body.body[-1] if isinstance(body, BLOCKS) and body.body else None
        if isinstance(last, cst.SimpleStatementLine):
            last = last.body[-1]
        if isinstance(last, cst.Expr) and isinstance(last.value, cst.Call):
            return self._names.qualified(last.value.func) in ("sys.exit", "os._exit", "builtins.exit")
        return isinstance(last, (cst.Return, cst.Continue, cst.Break))

    def _decorators(self, function: cst.FunctionDef) -> Iterator[Guard]:
        for item in function.decorators:
            decorator = item.decorator.func if isinstance(item.decorator, cst.Call) else item.decorator
            if _ONLY_MAIN.fullmatch(dotted(decorator) or ""):
                yield Guard(item.decorator, main=True)

    def _of_test(self, test: Node, *, truth: bool) -> Iterator[Guard]:
        for main in (True, False):
            if self._implies(test, truth=truth, main=main):
                yield Guard(test, main)

    def _implies(self, test: Node, *, truth: bool, main: bool) -> bool:
        """Whether this outcome of a test means that the process is the main one of a distributed run, or is not."""
        if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
            return self._implies(test.expression, truth=not truth, main=main)
        if isinstance(test, cst.BooleanOperation):
            parts = [test.left, test.right]
            implied = [self._implies(part, truth=truth, main=main) for part in parts]
            if isinstance(test.operator, cst.And) is truth:  # all parts have this outcome
                return any(implied)
            return any(implied) and all(
                yes or self.asks_if_distributed(part) or self._compares_rank(part)
                for yes, part in zip(implied, parts, strict=True)
            )
        says_main = self._says_main(test)
        return says_main is not None and (says_main is truth) is main

    def _says_main(self, test: Node) -> bool | None:
        """True if a test holds only on the main rank, False if only on the others, None for any other test."""
        if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
            return self._compared(test.left, test.comparisons[0])
        if self._is_rank(test):  # in a boolean context: nonzero
            return False
        name = dotted(test.func if isinstance(test, cst.Call) else test)
        if name is not None and _MAIN.fullmatch(name.rpartition(".")[2]):
            return True
        origin = self._kinds.origin(test)
        return self._says_main(origin) if origin is not test and isinstance(origin, cst.Comparison) else None

    def _compared(self, left: Node, compared: cst.ComparisonTarget) -> bool | None:
        if isinstance(left, cst.BinaryOperation) and isinstance(left.operator, cst.Modulo):
            left = left.left  # rank % gpus_per_node == 0: one on each machine
        if not self._is_rank(left):
            return None
        operator, right = compared.operator, compared.comparator
        if isinstance(operator, (cst.In, cst.NotIn)):
            numbers = {self._kinds.number(item) for item in self._kinds.elements(right)}
            return isinstance(operator, cst.In) if 0 in numbers and numbers <= {-1, 0} else None
        number = (
            0 if self._kinds.string(right) == "0" else self._kinds.number(right)
        )  # os.environ contains strings
        if number is None or number < 0:  # -1: nothing is distributed
            return None
        if isinstance(operator, (cst.Equal, cst.NotEqual)):
            return isinstance(operator, cst.Equal)
        first = 0 if isinstance(operator, (cst.LessThanEqual, cst.GreaterThan)) else 1
        if number != first:
            return None
        if isinstance(operator, (cst.LessThan, cst.LessThanEqual)):
            return True
        return False if isinstance(operator, (cst.GreaterThan, cst.GreaterThanEqual)) else None

    def _is_rank(self, node: Node) -> bool:
        """Whether an expression is the rank of this process: `rank`, `dist.get_rank()`, `os.environ["RANK"]`."""
        if isinstance(node, cst.Call):
            if self._names.qualified(node.func) == "builtins.int" and len(node.args) == 1:
                return self._is_rank(node.args[0].value)
            name = (dotted(node.func) or "").rpartition(".")[2]
            if _RANK_FUNCTION.fullmatch(name):
                return not node.args  # with a group it is the rank within the group
            asks = self._names.qualified(node.func) in ("os.environ.get", "os.getenv")
            return asks and _is_rank_variable(literal_text(argument(node, "key", 0)))
        if isinstance(node, cst.Subscript):
            return self._names.qualified(node.value) == "os.environ" and _is_rank_variable(literal_key(node))
        name = (dotted(node) or "").rpartition(".")[2]
        return _RANK.fullmatch(name) is not None

    def asks_if_distributed(self, test: Node) -> bool:
        """Whether a condition tests if this run has several ranks at all."""
        names = self._tree.within(test, cst.Name)
        return any(_IS_DISTRIBUTED.search(name.value.lower()) for name in names)

    def _compares_rank(self, test: Node) -> bool:
        """`rank == -1`, which tests the same: a negative rank means that the run is not distributed."""
        return isinstance(test, cst.Comparison) and self._is_rank(test.left)


def _is_rank_variable(name: str | None) -> bool:
    """Whether an environment variable holds the rank."""
    return name is not None and _RANK_VARIABLE.fullmatch(name) is not None
