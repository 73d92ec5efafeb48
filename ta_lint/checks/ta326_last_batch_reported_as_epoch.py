"""TA326: the loss of the last batch is reported, or used for decisions, as that of the epoch."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from operator import itemgetter

import libcst as cst

from ta_lint.facts import FileFacts, Kind, Suspicion
from ta_lint.facts.torch.losses import unwrapped
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.discounting import summands
from ta_lint.syntax.layout import plain
from ta_lint.syntax.tree import Node, dotted, is_name

KEYWORDS = ("for",)
AROUND = (("*loss*", "*entropy*", "*Loss*"),)

_LOGS = frozenset("print info debug log write add_scalar append set_description set_postfix".split())
_COUNTS = frozenset({"range", "trange"})


def check(module: FileFacts) -> Iterator[Suspicion]:
    if module.loops.framework:
        return
    all_uses = _Uses(module)
    for loop in module.tree.all(cst.For):
        told_after = list(_told_after(loop, all_uses, module))
        if not told_after or not _is_repeated(loop, module):  # who calls the function takes longer to find
            continue
        for assigned, value, uses in told_after:
            decisions = [use for use, told in uses if told == "decides"]
            if not _is_loss(assigned, value, loop, module):
                continue
            if not _goes_over_batches(loop, value, module) or _adds_up_itself(assigned.value, loop, module):
                continue
            if not decisions and _is_collected(assigned.value, loop, module):
                continue
            for use in (decisions or [use for use, _ in uses])[:1]:
                name = assigned.value
                done = "decides about" if decisions else "is reported for"
                message = f"`{name}` is the loss of the last batch alone, but {done} the whole epoch: average over the batches"
                related = ((assigned, "each batch replaces the one before"),)
                yield Suspicion(use, message, related, is_note=not decisions)


def _goes_over_batches(loop: cst.For, value: Node, module: FileFacts) -> bool:
    """Whether a loop iterates over a loader of several batches, or over its data piece by piece: it trains, or computes a loss
    under `no_grad`.
    """
    loaders = module.loaders.behind(loop.iter)
    if loaders:
        sizes = [loader.given("batch_size") for loader in loaders]
        return not any(size is not None and _is_length(size, module) for size in sizes)
    counts = any(called_name(call) in _COUNTS for call in module.tree.within(loop.iter, cst.Call))
    if counts:
        return False
    return module.loops.trains_each_pass(loop) or module.recording.records(value) is False


def _is_length(size: Node, module: FileFacts) -> bool:
    origin = module.kinds.origin(size)
    return isinstance(origin, cst.Call) and called_name(origin) == "len"


def _is_repeated(loop: cst.For, module: FileFacts) -> bool:
    """Whether a loop is one epoch of several: inside another loop, or in a function that a loop calls."""
    if module.tree.loops(loop):
        return True
    home = module.tree.home(loop)
    sites = module.calls.sites(home) if isinstance(home, cst.FunctionDef) else []
    return any(module.tree.loops(site) for site in sites)


# -- the loss of a batch --------------------------------------------------------------------------------------


def _assigned(loop: cst.For, module: FileFacts) -> Iterator[tuple[cst.Name, Node]]:
    """The variables that each pass of a loop assigns, with the first value of each."""
    seen: set[str] = set()
    for statement in module.tree.own(loop, cst.Assign):
        target = statement.targets[0].target
        targets = [part.value for part in target.elements] if isinstance(target, cst.Tuple) else [target]
        for one in targets:
            if isinstance(one, cst.Name) and one.value not in seen:
                seen.add(one.value)
                if module.tree.loops(statement)[:1] == [loop]:
                    yield one, statement.value


def _is_loss(target: cst.Name, value: Node, loop: cst.For, module: FileFacts) -> bool:
    """Whether a variable goes back, alone or as a term of what does, or is a mean over the batch and maybe other terms."""
    is_unpacked = isinstance(
        module.tree.parent[target], cst.Element
    )  # one of several that a function returns
    region = module.tree.home(loop) if is_unpacked else loop.body
    goes_back = any(
        is_name(term, target.value)
        for loss in module.gradients.losses
        if module.tree.contains(region, loss.call)
        for term in module.gradients.terms(loss)
    )
    return goes_back or any(module.losses.means(term) for _, term in summands(value))


def _adds_up_itself(name: str, loop: cst.For, module: FileFacts) -> bool:
    """Whether a loop computes a variable from its own value before: `loss += criterion(y, t)`."""
    for statement in module.tree.within(loop.body, cst.AugAssign, cst.Assign):
        targets = (
            [statement.target] if isinstance(statement, cst.AugAssign) else [statement.targets[0].target]
        )
        names = [one.value for one in module.tree.within(statement.value, cst.Name)]
        if is_name(targets[0], name) and (isinstance(statement, cst.AugAssign) or name in names):
            return True
    return False


def _is_collected(name: str, loop: cst.For, module: FileFacts) -> bool:
    """Whether a loop adds a variable up, or passes it to a call that may: any that does not log it or read its number."""
    for mention in module.tree.within(loop.body, cst.Name):
        if mention.value != name:
            continue
        statement = module.tree.statement(mention)
        if isinstance(statement, cst.AugAssign):
            return True
        if isinstance(statement, cst.Assign) and is_name(statement.targets[0].target, name):
            if module.tree.contains(statement.value, mention):
                return True
            continue
        if _is_handed_on(mention, statement, module):
            return True
    return False


def _is_handed_on(mention: cst.Name, statement: Node, module: FileFacts) -> bool:
    for above in module.tree.ancestors(mention):
        if above is statement:
            break
        is_call = isinstance(above, cst.Call) and not module.tree.contains(above.func, mention)
        if is_call and isinstance(above, cst.Call) and called_name(above) not in _LOGS - {"append"}:
            return unwrapped(above, module.names) is above and called_name(above) not in (
                "isnan",
                "isfinite",
                "isinf",
            )
    return False


# -- its uses after the loop ----------------------------------------------------------------------------------


_Reached = tuple[int, cst.Name, list[Node]]
"""The place of a node that may bind a name, a use of the name, and all nodes that may bind it there."""

_place = itemgetter(0)


class _Uses:
    """The uses of names, by the bindings that may reach them; each function is looked through once."""

    def __init__(self, module: FileFacts) -> None:
        self._module = module
        self._named: dict[Node, dict[str, list[cst.Name]]] = {}  # by the function, or the class or module
        self._reached: dict[tuple[Node, str], list[_Reached]] = {}

    def after(self, loop: cst.For, name: str) -> list[cst.Name]:
        """The uses after a loop that may have the value of its last pass, or else one from before it."""
        tree = self._module.tree
        reached = self._of(tree.home(loop), name)
        number, last = tree.interval(loop)
        first = tree.order(loop)
        begin = bisect_left(reached, first, key=_place)
        end = bisect_right(reached, first + last - number, key=_place)
        found = {
            id(use): use
            for _, use, bindings in reached[begin:end]
            if tree.before(loop, use)
            and not tree.contains(loop, use)
            and all(tree.contains(loop, one) or tree.before(one, loop) for one in bindings)
        }
        return sorted(found.values(), key=tree.order)

    def _of(self, home: Node, name: str) -> list[_Reached]:
        """The uses of a name in a function, each with the nodes that may bind it there, in the order of these nodes."""
        if (home, name) not in self._reached:
            reached: list[_Reached] = []
            for use in self._all(home).get(name, ()):
                bindings = [binding.node for binding in self._module.names.reaching(use)]
                reached += [(self._module.tree.order(node), use, bindings) for node in bindings]
            self._reached[home, name] = sorted(reached, key=_place)
        return self._reached[home, name]

    def _all(self, home: Node) -> dict[str, list[cst.Name]]:
        if home not in self._named:
            named = self._named[home] = {}
            for name in self._module.tree.own(home, cst.Name):
                named.setdefault(name.value, []).append(name)
        return self._named[home]


def _told_after(
    loop: cst.For, uses: _Uses, module: FileFacts
) -> Iterator[tuple[cst.Name, Node, list[tuple[cst.Name, str]]]]:
    """The variables that each pass of a loop assigns, with the first value of each, and the uses after the loop that tell it."""
    for target, value in _assigned(loop, module):
        told = ((name, _told(name, module)) for name in uses.after(loop, target.value))
        if found := [(name, what) for name, what in told if what]:
            yield target, value, found


def _told(use: cst.Name, module: FileFacts) -> str | None:
    """What a use does with the number: `reports`, `decides`, or None for anything else."""
    statement = module.tree.statement(use)
    if "last" in plain(statement).lower() and not isinstance(statement, cst.If):
        return None
    number = _number(use, module)
    above = module.tree.parent[number]
    if isinstance(above, (cst.Comparison, cst.ComparisonTarget)):
        whole = above if isinstance(above, cst.Comparison) else module.tree.parent[above]
        return "decides" if isinstance(whole, cst.Comparison) and _orders(whole) else None
    if isinstance(above, (cst.Element, cst.DictElement)) and isinstance(statement, cst.Return):
        above = module.tree.parent[module.tree.parent[above]]  # one of several values
    if isinstance(above, cst.Return) or _is_added_up(number, above):
        return "reports"
    for around in module.tree.ancestors(use):
        if around is statement:
            break
        if isinstance(around, cst.Call) and not module.tree.contains(around.func, use):
            if _steps_schedule(around, module):
                return "decides"
            if called_name(around) in _LOGS:
                return "reports"
            if unwrapped(around, module.names) is around and called_name(around) not in (
                "format",
                "round",
                "str",
            ):
                return None
    return None


def _number(use: cst.Name, module: FileFacts) -> Node:
    """The whole expression with the number of a use: `loss.item()`."""
    number: Node = use
    for above in module.tree.ancestors(use):
        is_number = isinstance(above, cst.Call) and unwrapped(above, module.names) is use
        if is_number or (isinstance(above, cst.Attribute) and above.attr.value == "data"):
            number = above
        elif not isinstance(above, (cst.Attribute, cst.Arg)):
            break
    return number


def _is_added_up(number: Node, above: Node) -> bool:
    """Whether a number is added to a sum: `total += loss.item()`, behind the loop that it should be in."""
    return (
        isinstance(above, cst.AugAssign)
        and isinstance(above.operator, cst.AddAssign)
        and above.value is number
    )


def _orders(comparison: cst.Comparison) -> bool:
    return isinstance(
        comparison.comparisons[0].operator,
        (cst.LessThan, cst.LessThanEqual, cst.GreaterThan, cst.GreaterThanEqual),
    )


def _steps_schedule(call: cst.Call, module: FileFacts) -> bool:
    func = call.func
    if not isinstance(func, cst.Attribute) or func.attr.value != "step":
        return False
    return module.kind(func.value) is Kind.SCHEDULER or "sched" in (dotted(func.value) or "").lower()
