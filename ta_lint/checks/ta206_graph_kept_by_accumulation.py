"""TA206: a sum or list that outlives the pass accumulates the loss with its graph, so all steps' graphs stay alive."""

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from ta_lint.facts import FileFacts, Kind, Suspicion
from ta_lint.facts.loops.graphs import GivenGraph, Held, operands
from ta_lint.facts.loops.loops import Region
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.names import Binding
from ta_lint.file import is_test
from ta_lint.syntax.edits import ProposedFix, call_method
from ta_lint.syntax.layout import plain
from ta_lint.syntax.tree import LOOPS, Node, argument, attribute_of_self, dotted, is_name

KEYWORDS = (("append", "appendleft", "add", "add_", "*cat*", "*stack", "enumerate", "*range", "+"),)
AROUND = (("*backward", "compute_loss"),)

_WITHOUT_GRADIENT = frozenset({"no_grad", "inference_mode", "set_grad_enabled"})
_EMPTIES = frozenset({"clear", "detach_", "pop", "popleft", "remove", "zero_"})
_MAPPINGS = ("builtins.dict", "collections.Counter", "collections.OrderedDict", "collections.defaultdict")
_NUMBERS = frozenset({"builtins.float", "builtins.int"})
_APPENDS = frozenset({"append", "appendleft"})
_ENTRIES = frozenset({"get", "setdefault"})  # of a dictionary
_JOINS = ("torch.cat", "torch.concat", "torch.concatenate", "torch.hstack", "torch.vstack")


@dataclass(frozen=True)
class RunningSum:
    """`total += loss`, `total = 0.9 * total + loss`, `losses.append(loss)`, `average.add_(loss)`, `losses[step] = loss`.

    `target` takes the values, once in each pass of `region`; `is_list` says that it keeps them one by one, and
    `in_entry` that it is an entry of a container.
    """

    statement: cst.BaseSmallStatement
    target: Node
    values: tuple[Node, ...]
    region: Region
    is_list: bool = False
    in_entry: bool = False

    @property
    def owner(self) -> Node:
        """The variable behind the target: `history` for `history["loss"]`."""
        owner = self.target
        while isinstance(owner, cst.Subscript):
            owner = owner.value
        return owner

    @property
    def taken(self) -> list[Node]:
        """The added values, or the elements of an added tuple, list or dictionary."""
        return [part for value in self.values for part in _elements(value)]


def check(module: FileFacts) -> Iterator[Suspicion]:
    reported: set[Node] = set()
    if _knows_torch(module, module.tree.root):
        for region in dict.fromkeys(_regions(module)):
            for found in _sums(module, region):
                taken = (value for value in found.taken if not _is_number_here(module, value))
                kept = [(value, held) for value in taken if (held := module.graphs.held(value, region))]
                if (
                    kept
                    and _repeats(module, found)
                    and _is_live(module, found)
                    and _lives_on(module, found)
                    and not _is_what_goes_back(module, found)
                ):
                    reported.add(found.statement)
                    yield _kept_by_sum(module, found, kept)
    for statement in module.tree.all(cst.AugAssign, cst.Assign, cst.Expr):
        if statement not in reported and (suspicion := _kept_by_keeper(module, statement)) is not None:
            yield suspicion
    yield from _kept_by_trainers(module)


def _is_what_goes_back(module: FileFacts, found: RunningSum) -> bool:
    """Whether the list itself is given to the function that goes back through its values, in the last pass:
    `agent.update(values)`.
    """
    path = dotted(found.owner)
    return found.is_list and any(
        path is not None and path == dotted(arg.value)
        for one in module.graphs.passes_in(found.region)
        if isinstance(one.call, cst.Call) and one.call is not one.backward
        for arg in one.call.args
    )


def _is_number_here(module: FileFacts, value: Node) -> bool:
    """Whether a condition says that a value is a number: `if isinstance(loss, float):`, `if type(loss) == float:`."""
    return any(
        isinstance(above, cst.If)
        and module.tree.contains(above.body, value)
        and any(
            _asks_for_number(module, test, dotted(value))
            for test in module.tree.within(above.test, cst.Call, cst.Comparison)
        )
        for above in module.tree.ancestors(value)
    )


def _asks_for_number(module: FileFacts, test: Node, name: str | None) -> bool:
    asked, kinds = None, None
    if (
        isinstance(test, cst.Call)
        and module.qualified(test.func) == "builtins.isinstance"
        and len(test.args) == 2
    ):
        asked, kinds = test.args[0].value, test.args[1].value
    elif isinstance(test, cst.Comparison) and isinstance(test.comparisons[0].operator, (cst.Equal, cst.Is)):
        made = test.left
        if isinstance(made, cst.Call) and module.qualified(made.func) == "builtins.type" and made.args:
            asked, kinds = made.args[0].value, test.comparisons[0].comparator
    named = module.tree.within(kinds, cst.Name) if kinds is not None else []
    is_asked = asked is not None and name is not None and dotted(asked) == name
    return is_asked and bool(named) and all(module.qualified(one) in _NUMBERS for one in named)


def _knows_torch(module: FileFacts, node: Node) -> bool:
    """Whether the file of a node imports torch: other libraries have their own `backward`."""
    return any(name.partition(".")[0] == "torch" for name in module.names.imported_by(node))


def _kept_by_sum(module: FileFacts, found: RunningSum, kept: list[tuple[Node, Held]]) -> Suspicion:
    is_seen = not _is_number_alone(module, found, [held.part for _, held in kept])
    related: list[tuple[Node, str]] = [(call, "the backward pass starts here") for call in kept[0][1].passes]
    return _suspicion(module, found, kept, related, is_seen)


def _suspicion(
    module: FileFacts,
    found: RunningSum,
    kept: list[tuple[Node, Held]],
    related: list[tuple[Node, str]],
    unsafe: bool,
) -> Suspicion:
    taken = "appended" if found.is_list else "added"
    message = f"`{module.code(found.target)}` keeps the graph of every `{module.code(kept[0][1].part)}` {taken} to it, so memory grows: detach `{module.code(kept[0][1].part)}`"
    edits = tuple(edit for value, _ in kept for edit in call_method(value, ".detach()"))
    is_tensor = all(held.is_tensor for _, held in kept)
    fix = ProposedFix("detach it", edits, unsafe=unsafe) if is_tensor else None
    return Suspicion(found.statement, message, tuple(related), fix, _starts_anew(module, found))


def _starts_anew(module: FileFacts, found: RunningSum) -> bool:
    """Whether each pass over the data starts the target anew, which frees the graphs of the pass before.

    A loop that makes the optimizer too repeats the training.
    """
    owner = found.owner
    if isinstance(owner, cst.Name):
        bindings = [one for one in module.names.bindings(owner) if one.how != "augment"]
        starts = [
            start
            for one in bindings
            if one.node is not found.statement
            for start in (
                _values_of(module, one, owner.value) if isinstance(one.node, cst.Param) else [one.node]
            )
        ]
    elif (name := attribute_of_self(owner)) is not None:
        klass = module.tree.enclosing(found.statement, cst.ClassDef)
        values = module.classes.attribute(klass, name) if klass is not None else []
        starts = [value for value in values if not isinstance(value, cst.AugAssign)]
        starts = [value for value in starts if value is not getattr(found.statement, "value", None)]
    else:
        starts = []
    repeating = module.calls_in_loop.loops_over(starts)
    optimizers = (call for call in module.tree.all(cst.Call) if module.kind(call) is Kind.OPTIMIZER)
    return bool(repeating) and not set(repeating) <= set(module.calls_in_loop.loops_over(optimizers))


def _regions(module: FileFacts) -> Iterator[Region]:
    """The loops, and the functions called in loops, that run a backward pass each time."""
    called = {loop.region for loop in module.training_loops}
    for region in module.graphs.regions:
        if not isinstance(region, cst.FunctionDef) or region in called or _is_called_in_loop(module, region):
            yield region
    yield from module.tree.all(cst.For, cst.While)


def _is_called_in_loop(module: FileFacts, function: cst.FunctionDef) -> bool:
    return any(module.tree.loops(site) for site in module.calls.sites(function))


# -- accumulation -----------------------------------------------------------------------------------------------


def _sums(module: FileFacts, region: Region) -> Iterator[RunningSum]:
    tree = module.tree
    for statement in tree.own(region, cst.AugAssign, cst.Assign, cst.Expr):
        loops = tree.loops(statement)
        once = (
            not loops and tree.home(statement) is region
            if isinstance(region, cst.FunctionDef)
            else loops[:1] == [region]
        )
        if once and (found := _running_sum(module, statement, region)) is not None:
            yield found


def _running_sum(
    module: FileFacts, statement: cst.AugAssign | cst.Assign | cst.Expr, region: Region
) -> RunningSum | None:
    """What a statement accumulates, and where; None for any other statement."""
    if isinstance(statement, cst.Expr):
        return _called(statement, region)
    if isinstance(statement, cst.Assign):
        return _assigned(module, statement, region)
    if not isinstance(statement.operator, cst.AddAssign):
        return None
    is_list = isinstance(statement.value, cst.List)
    in_entry = isinstance(statement.target, cst.Subscript)
    return RunningSum(statement, statement.target, (statement.value,), region, is_list, in_entry)


def _assigned(module: FileFacts, statement: cst.Assign, region: Region) -> RunningSum | None:
    target, total = statement.targets[0].target, statement.value
    if len(statement.targets) > 1:
        return None
    if isinstance(total, cst.IfExp):  # loss if total is None else total + loss
        total = total.orelse if _is_first_value(total, target) else total.body
    in_entry = isinstance(target, cst.Subscript)
    values = _added(total, target) or _joined(module, total, target)
    if values:
        is_list = any(isinstance(value, cst.List) for value in values)
        return RunningSum(statement, target, values, region, is_list, in_entry)
    if isinstance(target, cst.Subscript) and _is_counted(module, target, statement):
        return RunningSum(statement, target.value, (total,), region, True, True)
    return None


def _is_first_value(choice: cst.IfExp, target: Node) -> bool:
    """Whether the test is true before the first value: `total is None`."""
    return _asks_if_none(choice.test, dotted(target))


def _asks_if_none(test: Node, name: str | None) -> bool:
    """Whether a test is `total is None`, by the name of the total."""
    return (
        isinstance(test, cst.Comparison)
        and dotted(test.left) == name
        and isinstance(test.comparisons[0].operator, (cst.Is, cst.Equal))
        and is_name(test.comparisons[0].comparator, "None")
    )


def _is_first(module: FileFacts, node: Node, name: str | None) -> bool:
    """Whether a node is in the branch in which a total gets its first value: below `if total is None`."""
    blocks = (above for above in module.tree.ancestors(node) if isinstance(above, cst.If))
    return any(_asks_if_none(block.test, name) and module.tree.contains(block.body, node) for block in blocks)


def _added(total: Node, target: Node) -> tuple[Node, ...]:
    """What is added to the old value of a target: `loss` in `0.9 * total + loss`; empty if the old value is not in it."""
    terms = list(_terms(total))
    old = [term for term in terms if any(_is_old(operand, target) for operand in operands(term))]
    return tuple(term for term in terms if term not in old) if len(old) == 1 else ()


def _terms(total: Node) -> Iterator[Node]:
    if isinstance(total, cst.BinaryOperation) and isinstance(total.operator, cst.Add):
        yield from _terms(total.left)
        yield from _terms(total.right)
    elif (
        isinstance(total, cst.Call)
        and isinstance(total.func, cst.Attribute)
        and total.func.attr.value == "add"
        and total.args
    ):
        yield from _terms(total.func.value)
        yield total.args[0].value
    else:
        yield total


def _is_old(operand: Node, target: Node) -> bool:
    """Whether an operand is the old value of a target: `total`, or `totals.get("loss", 0)` for `totals["loss"]`."""
    if isinstance(operand, cst.Subscript) and isinstance(target, cst.Subscript):
        return plain(operand) == plain(target)
    if isinstance(operand, cst.Call):
        entry = isinstance(operand.func, cst.Attribute) and operand.func.attr.value in _ENTRIES
        return (
            entry
            and isinstance(target, cst.Subscript)
            and isinstance(operand.func, cst.Attribute)
            and dotted(operand.func.value) == dotted(target.value)
        )
    return dotted(target) is not None and dotted(operand) == dotted(target)


def _joined(module: FileFacts, total: Node, target: Node) -> tuple[Node, ...]:
    """What `torch.cat([total, loss.view(1)])` appends to the old value of a target."""
    if not isinstance(total, cst.Call) or not total.args or dotted(target) is None:
        return ()
    parts = _elements(total.args[0].value)
    if dotted(target) not in map(dotted, parts) or module.qualified(total.func) not in _JOINS:
        return ()
    return tuple(part for part in parts if dotted(part) != dotted(target))


def _is_counted(module: FileFacts, target: cst.Subscript, statement: Node) -> bool:
    """Whether each pass sets another entry: the key counts the passes, as in `losses[step] = loss`."""
    key = target.slice[0].slice if len(target.slice) == 1 else None
    loops = module.tree.loops(statement)
    if not isinstance(key, cst.Index) or not isinstance(key.value, cst.Name) or not loops:
        return False
    bindings = module.names.bindings(key.value)
    if [binding.node for binding in bindings if binding.how == "for"] == [loops[0]]:
        counted = loops[0].iter if isinstance(loops[0], cst.For) else None
        return isinstance(counted, cst.Call) and called_name(counted) in ("enumerate", "range", "trange")
    return any(
        binding.how == "augment" and loops[0] in module.tree.loops(binding.node) for binding in bindings
    )


def _called(statement: cst.Expr, region: Region) -> RunningSum | None:
    """What `losses.append(loss)`, `history.setdefault("loss", []).append(loss)` and `average.add_(loss)` take."""
    call = statement.value
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute) or not call.args:
        return None
    target, name = call.func.value, call.func.attr.value
    if call.args[0].keyword is not None or call.args[0].star:
        return None
    if name == "add_":
        while _is_in_place(target):  # average.mul_(0.9).add_(loss)
            target = target.func.value  # type: ignore[attr-defined]
        in_entry = isinstance(target, cst.Subscript)
        return RunningSum(statement, target, (call.args[0].value,), region, False, in_entry)
    if name not in _APPENDS or len(call.args) > 1:
        return None
    in_entry = isinstance(target, cst.Subscript)
    if isinstance(target, cst.Call) and isinstance(target.func, cst.Attribute):
        in_entry = target.func.attr.value in _ENTRIES
        target = target.func.value if in_entry else target
    return RunningSum(statement, target, (call.args[0].value,), region, True, in_entry)


def _is_in_place(node: Node) -> bool:
    return (
        isinstance(node, cst.Call)
        and isinstance(node.func, cst.Attribute)
        and node.func.attr.value.endswith("_")
        and not node.func.attr.value.startswith("_")
    )


def _elements(value: Node) -> list[Node]:
    if isinstance(value, (cst.Tuple, cst.List)):
        return [element.value for element in value.elements]
    if isinstance(value, cst.Dict):
        return [element.value for element in value.elements if isinstance(element, cst.DictElement)]
    return [value]


def _repeats(module: FileFacts, found: RunningSum) -> bool:
    if isinstance(found.region, cst.FunctionDef):
        return True
    return not module.loops.is_last_pass(found.statement, found.region)


# -- what a function keeps that is called with a loss ---------------------------------------------------------


def _kept_by_keeper(module: FileFacts, statement: cst.AugAssign | cst.Assign | cst.Expr) -> Suspicion | None:
    """The accumulation in a function that a pass calls with its loss: `meter.update(loss)`."""
    function = module.tree.home(statement)
    if not isinstance(function, cst.FunctionDef) or module.tree.loops(statement):
        return None
    found = _running_sum(module, statement, function)
    if found is None:
        return None
    kept: list[tuple[Node, Held]] = []
    sources: list[GivenGraph] = []
    for value in found.taken:
        if (given := module.graphs.given(value, function)) is not None:
            kept.append((value, given[0]))
            sources.append(given[1])
    if not sources or not _is_kept_by(module, found, sources[0]):
        return None
    source = sources[0]
    related: list[tuple[Node, str]] = [
        (source.call, f"`{module.code(source.value)}` comes from here, with its graph")
    ]
    if (returned := _returned(module, source.value)) is not None:
        related.append((returned, "it is returned with its graph here"))
    related += [(call, "the backward pass starts here") for call in source.passes]
    return _suspicion(module, found, kept, related, True)


def _returned(module: FileFacts, value: Node) -> cst.Return | None:
    """Where a function of the project returns the value of a variable."""
    binding = module.names.definition(value) if isinstance(value, cst.Name) else None
    made = value if isinstance(value, cst.Call) else binding.value if binding is not None else None
    function = module.calls.callee(made) if isinstance(made, cst.Call) else None
    returns = module.tree.own(function, cst.Return) if function is not None else []
    return returns[0] if len(returns) == 1 else None


def _is_kept_by(module: FileFacts, found: RunningSum, given: GivenGraph) -> bool:
    """Whether the target of a function outlives the passes that call it."""
    region = given.region
    if not _knows_torch(module, given.call) or _is_in_another_test(module, given.call):
        return False
    if isinstance(region, LOOPS):
        if module.loops.is_last_pass(given.call, region):
            return False
    elif not _is_called_in_loop(module, region):
        return False
    if not found.is_list and _is_off(module, given.call):
        return False
    return _is_live(module, found) and _lives_on(module, found) and not _is_made_anew(module, found, given)


def _is_in_another_test(module: FileFacts, call: cst.Call) -> bool:
    """Whether a call is in a file of tests that is not this one: a test is short, so what it keeps says nothing about a training."""
    return not module.is_here(call) and is_test(module.parsed(call).source.path)


def _is_made_anew(module: FileFacts, found: RunningSum, given: GivenGraph) -> bool:
    """Whether a pass makes the object that accumulates, or resets it."""
    if not isinstance(found.owner, cst.Attribute):
        return False
    called = _called_in(module, given.region)
    klass = module.tree.enclosing(found.statement, cst.ClassDef)
    values = module.classes.attribute(klass, found.owner.attr.value) if klass is not None else []
    own = (found.statement, getattr(found.statement, "value", None))
    others = [value for value in values if value not in own]
    if any(
        module.tree.home(value) in called and not _is_first(module, value, dotted(found.owner))
        for value in others
    ):
        return True
    if any(_empties(module, function, found.owner) for function in called):
        return True
    receiver = given.call.func.value if isinstance(given.call.func, cst.Attribute) else None
    if receiver is None or is_name(receiver, "self"):
        return klass is None
    made = module.kinds.construction(receiver)
    return made is None or module.tree.contains(given.region, made) or module.tree.home(made) in called


def _called_in(module: FileFacts, region: Region) -> set[Node]:
    """The functions of the project that a region calls, and those that they call."""
    found: set[Node] = set()
    pending: list[Node] = [region]
    while pending:
        functions = [module.calls.callee(call) for call in module.tree.own(pending.pop(), cst.Call)]
        new = [function for function in functions if function is not None and function not in found]
        found.update(new)
        pending += new
    return found


# -- what the step of a framework's trainer keeps ---------------------------------------------------------------


def _kept_by_trainers(module: FileFacts) -> Iterator[Suspicion]:
    """Entries of a dictionary that `compute_loss` stores for later, and that hold the graph of the loss that it returns."""
    for function in module.calls.functions("compute_loss"):
        klass = module.tree.enclosing(function, cst.ClassDef)
        if klass is None or module.classes.method(klass, "compute_loss") is not function:
            continue
        yield from _kept_beside_loss(module, function)
        for assign in module.tree.own(function, cst.Assign):
            stored = _stored_with_loss(module, function, assign)
            if stored is not None:
                yield from _entries_with_graph(module, assign, *stored)


def _kept_beside_loss(module: FileFacts, function: cst.FunctionDef) -> Iterator[Suspicion]:
    """Values that a trainer adds to its own attribute and that are part of the loss it returns."""
    returned = (found.value for found in module.tree.own(function, cst.Return))
    losses = [loss for value in returned if value is not None for loss in _losses(value)]
    for statement in module.tree.own(function, cst.AugAssign, cst.Assign, cst.Expr):
        found = _running_sum(module, statement, function)
        if found is None or not isinstance(found.owner, cst.Attribute) or module.tree.loops(statement):
            continue
        kept = [
            (value, held)
            for value in found.taken
            for loss in losses
            if (held := module.graphs.part_of(value, loss, function)) is not None
        ]
        if kept and _is_live(module, found) and _lives_on(module, found):
            related: list[tuple[Node, str]] = [(function, "the trainer goes back through what this returns")]
            yield _suspicion(module, found, kept, related, True)


def _losses(returned: Node) -> list[Node]:
    """The loss in `loss`, `(loss, outputs)` and `(loss, outputs) if both else loss`."""
    if isinstance(returned, cst.IfExp):
        return [*_losses(returned.body), *_losses(returned.orelse)]
    return [returned.elements[0].value if isinstance(returned, cst.Tuple) else returned]


def _stored_with_loss(
    module: FileFacts, function: cst.FunctionDef, assign: cst.Assign
) -> tuple[int, cst.Call] | None:
    """The place of a value that comes with the loss in `loss, metrics = self.losses(batch)`, and the call that keeps it."""
    target = assign.targets[0].target
    if not isinstance(target, cst.Tuple) or not isinstance(assign.value, cst.Call):
        return None
    names = [dotted(element.value) for element in target.elements]
    returned = [found.value for found in module.tree.own(function, cst.Return) if found.value is not None]
    if not returned or not all(_mentions(module, value, names[0]) for value in returned):
        return None
    for call in module.tree.own(function, cst.Call):
        keeper = module.calls.callee(call) if call is not assign.value else None
        for param, value in module.calls.arguments(call, keeper).items() if keeper is not None else ():
            name = dotted(value)
            if name in names[1:] and keeper is not None and _keeps_entries(module, keeper, param):
                return names.index(name), call
    return None


def _mentions(module: FileFacts, node: Node, name: str | None) -> bool:
    return any(found.value == name for found in module.tree.within(node, cst.Name))


def _keeps_entries(module: FileFacts, function: cst.FunctionDef, param: cst.Param) -> bool:
    """Whether a method appends each value of a dictionary to something of its object."""
    for loop in module.tree.own(function, cst.For):
        source = loop.iter.func if isinstance(loop.iter, cst.Call) else None
        if not isinstance(source, cst.Attribute) or not is_name(source.value, param.name.value):
            continue
        last = loop.target.elements[-1].value if isinstance(loop.target, cst.Tuple) else loop.target
        for call in module.tree.own(loop, cst.Call):
            if called_name(call) in _APPENDS and call.args and dotted(call.args[0].value) == dotted(last):
                assert isinstance(call.func, cst.Attribute)
                return _mentions(module, call.func.value, "self")
    return False


def _entries_with_graph(
    module: FileFacts, assign: cst.Assign, place: int, keeper: cst.Call
) -> Iterator[Suspicion]:
    """The entries of the dictionary at a place of what a function returns, whose values are parts of the loss beside it."""
    function = module.calls.callee(assign.value) if isinstance(assign.value, cst.Call) else None
    returned = module.calls.returned(assign.value) if isinstance(assign.value, cst.Call) else None
    if function is None or not isinstance(returned, cst.Tuple) or place >= len(returned.elements):
        return
    loss, metrics = returned.elements[0].value, dotted(returned.elements[place].value)
    for statement in module.tree.own(function, cst.Assign):
        target = statement.targets[0].target
        entries = target.value if isinstance(target, cst.Subscript) else target
        if metrics is None or dotted(entries) != metrics or _is_off(module, statement):
            continue
        for value in _elements(statement.value):
            if (held := module.graphs.part_of(value, loss, function)) is not None:
                part = module.code(held.part)
                message = f"`{module.code(target)}` keeps the graph of every `{part}` that is stored, so memory grows: detach it"
                fix = ProposedFix("detach it", tuple(call_method(value, ".detach()")), unsafe=True)
                yield Suspicion(statement, message, ((keeper, "stored here, for each step"),), fix)
                break


# -- whether it keeps what it takes ---------------------------------------------------------------------------


def _is_live(module: FileFacts, found: RunningSum) -> bool:
    """Whether a graph is recorded where the sum is computed; a list keeps its elements in any case."""
    return found.is_list or not _is_off(module, found.statement)


def _is_off(module: FileFacts, node: Node) -> bool:
    """Whether a node is under `no_grad` or the like, in a function that is decorated by it, or that is only called there."""
    if module.recording.records(node) is False:
        return True
    home = module.tree.home(node)
    decorators = [item.decorator for item in home.decorators] if isinstance(home, cst.FunctionDef) else []
    contexts = [
        item.item
        for block in module.tree.ancestors(node)
        if isinstance(block, cst.With)
        for item in block.items
    ]
    return any(
        isinstance(one, cst.Call) and called_name(one) in _WITHOUT_GRADIENT for one in contexts
    ) or any(
        (dotted(one.func if isinstance(one, cst.Call) else one) or "").rpartition(".")[2] in _WITHOUT_GRADIENT
        for one in decorators
    )


def _lives_on(module: FileFacts, found: RunningSum) -> bool:
    """Whether the target starts outside the pass as a number, tensor, list or dictionary, and is never emptied."""
    owner = found.owner
    if isinstance(owner, cst.Name):
        starts = _starts_of_variable(module, owner, found)
    elif isinstance(owner, cst.Attribute) and dotted(owner.value) == "self":
        starts = _starts_of_attribute(module, owner.attr.value, found)
    elif isinstance(owner, cst.Call):  # stats.entry("loss"), a method that returns an entry of the object
        starts = [
            start
            for origin in module.flow.of(owner).origins
            for start in _starts_of_entry(module, origin.node)
        ]
        if any(module.tree.contains(found.region, start) for start in starts):
            return False
    else:
        return False
    return (
        bool(starts)
        and all(_is_start(module, start, found) for start in starts)
        and not _is_emptied(module, found)
    )


def _starts_of_entry(module: FileFacts, node: Node) -> list[Node]:
    """A value that is put into a dictionary, or the arguments of all known calls for it.

    `None` adds nothing up, and a method without callers puts nothing in.
    """
    given = None
    if isinstance(node, cst.Param):
        function = module.tree.parent[module.tree.parent[node]]
        if isinstance(function, cst.FunctionDef) and not module.calls.sites(function):
            return []
        given = module.calls.given(node)
    return [module.kinds.origin(value) for value in given or [node] if not is_name(value, "None")]


def _starts_of_variable(module: FileFacts, owner: cst.Name, found: RunningSum) -> list[Node]:
    """The value of a variable before the passes, in a list; empty if a pass sets it, or it is uncertain."""
    tree = module.tree
    bindings = [
        binding
        for binding in module.names.bindings(owner)
        if binding.how != "augment"
        and binding.node is not found.statement
        and not _is_first(module, binding.node, owner.value)
    ]
    if any(tree.contains(found.region, binding.node) for binding in bindings):
        return []
    before = [binding for binding in bindings if tree.before(binding.node, found.region)]
    return _values_of(module, before[-1], owner.value) if before else []


def _values_of(module: FileFacts, binding: Binding, name: str) -> list[Node]:
    """The values that a binding may give a variable; empty if they are uncertain."""
    if isinstance(binding.node, cst.Param):
        given = module.calls.given(binding.node) or []
        return [module.kinds.origin(value) for value in given]
    if binding.value is None:
        return []
    if binding.how == "unpack":
        return _unpacked(binding.node, name)
    return [binding.value] if binding.how == "assign" else []


def _unpacked(statement: Node, name: str) -> list[Node]:
    """The value that one of the names gets in `total, count = 0, 0`, or one of the attributes of `self`."""
    if not isinstance(statement, cst.Assign) or not isinstance(statement.value, cst.Tuple):
        return []
    targets = [item.target for item in statement.targets if isinstance(item.target, cst.Tuple)]
    values = statement.value.elements
    return [
        value.value
        for target in targets
        if len(target.elements) == len(values)
        for element, value in zip(target.elements, values, strict=True)
        if dotted(element.value) == name
    ]


def _starts_of_attribute(module: FileFacts, name: str, found: RunningSum) -> list[Node]:
    """All values that the class assigns to an attribute; empty if a pass assigns it, itself or in a method it calls."""
    tree = module.tree
    klass = tree.enclosing(found.statement, cst.ClassDef)
    values = module.classes.attribute(klass, name) if klass is not None else []
    own = (found.statement, getattr(found.statement, "value", None))
    starts = [
        value
        for value in values
        if value not in own
        and not isinstance(value, cst.AugAssign)
        and not _is_first(module, value, f"self.{name}")
    ]
    called = {called_name(call) for call in tree.own(found.region, cst.Call)}
    homes = [tree.home(start) for start in starts]
    in_pass = any(isinstance(home, cst.FunctionDef) and home.name.value in called for home in homes)
    if in_pass or any(tree.contains(found.region, start) for start in starts):
        return []
    return [one for start in starts for one in _unpacked(start, f"self.{name}") or [start]]


def _is_start(module: FileFacts, start: Node, found: RunningSum) -> bool:
    """Whether a value is a plain start of an accumulation, with the usual `+=` and `append`."""
    call = start if isinstance(start, cst.Call) else None
    called = (module.qualified(call.func) or "") if call is not None else ""
    if found.in_entry:
        return (
            isinstance(start, (cst.Dict, cst.DictComp, cst.List))
            or called in _MAPPINGS
            or called.startswith("torch.")
        )
    if found.is_list:
        unbounded = call is not None and called == "collections.deque" and argument(call, "maxlen", 1) is None
        return isinstance(start, cst.List) or called == "builtins.list" or unbounded
    if call is not None and isinstance(call.func, cst.Attribute) and isinstance(call.func.value, cst.Call):
        return _is_start(module, call.func.value, found)  # torch.zeros(1).to(device)
    if is_name(start, "None"):
        return isinstance(found.statement, cst.Assign) and _has_first(module, found)
    return module.number(start) is not None or called.startswith("torch.") or called == "builtins.float"


def _has_first(module: FileFacts, found: RunningSum) -> bool:
    """Whether a total that starts as `None` gets its first value at the test for `None`."""
    name, home = dotted(found.owner), module.tree.home(found.statement)
    return isinstance(getattr(found.statement, "value", None), cst.IfExp) or any(
        _asks_if_none(block.test, name) for block in module.tree.own(home, cst.If)
    )


def _is_emptied(module: FileFacts, found: RunningSum) -> bool:
    """Whether the pass empties, replaces or detaches the target or a part of it; another sum into it goes on with it."""
    tree, name = module.tree, dotted(found.owner)
    if name is None:
        return False
    for target in tree.own(found.region, cst.AssignTarget, cst.Del):
        mentioned = {dotted(part) for part in tree.within(target, cst.Name, cst.Attribute)}
        statement = tree.statement(target)
        if name in mentioned and statement is not found.statement and not _is_first(module, target, name):
            goes_on = isinstance(statement, (cst.Assign, cst.AugAssign)) and _running_sum(
                module, statement, found.region
            )
            if not goes_on:
                return True
    return _empties(module, found.region, found.owner)


def _empties(module: FileFacts, region: Node, owner: Node) -> bool:
    """Whether a region calls a method that empties or detaches a variable or a part of it."""
    return any(
        called_name(call) in _EMPTIES
        and isinstance(call.func, cst.Attribute)
        and any(
            dotted(part) == dotted(owner)
            for part in module.tree.within(call.func.value, cst.Name, cst.Attribute)
        )
        for call in module.tree.own(region, cst.Call)
    )


# -- who sees the graph ---------------------------------------------------------------------------------------

_READS_ALL = ("builtins.eval", "builtins.exec", "builtins.locals", "builtins.vars")
_READS = ("builtins.bool", "builtins.float", "builtins.int", "builtins.len")
_REDUCES = ("builtins.sum", "torch.mean", "torch.stack", "torch.sum")
_METHODS = frozenset({"cpu", "detach", "mean", "sum"})


def _is_number_alone(module: FileFacts, found: RunningSum, parts: list[Node]) -> bool:
    """Whether the total certainly holds tensors whose values are only read as numbers.

    Code that prints the total, converts it to an array or passes it on would see a difference after detaching.
    """
    tree, home = module.tree, module.tree.home(found.statement)
    losses = {dotted(start) for _, start in module.graphs.starts}
    if not isinstance(found.owner, cst.Name) or any(dotted(part) not in losses for part in parts):
        return False
    if not isinstance(home, cst.FunctionDef) or tree.within(home, cst.Global, cst.Nonlocal):
        return False
    if any(module.qualified(call.func) in _READS_ALL for call in tree.within(home, cst.Call)):
        return False
    name = found.owner.value
    return all(_is_read_as_number(mention, name, module) for mention in module.names.mentions(found.owner))


def _is_read_as_number(node: Node, name: str, module: FileFacts) -> bool:
    """Whether a mention of a total or list of losses only binds it, adds to it or reads a number from it."""
    above = module.tree.parent[node]
    call = module.tree.parent[above] if isinstance(above, (cst.Arg, cst.Attribute)) else None
    if isinstance(above, (cst.AssignTarget, cst.Element)):
        return module.tree.enclosing(node, cst.AssignTarget) is not None
    if isinstance(above, cst.AugAssign):
        return node is above.target
    if isinstance(above, cst.Assign):  # total = total + loss
        return all(is_name(target.target, name) for target in above.targets)
    if isinstance(above, cst.FormattedStringExpression):
        return above.format_spec is not None
    if isinstance(above, cst.Arg) and isinstance(call, cst.Call):
        called = module.qualified(call.func)
        return called in _READS or (called in _REDUCES and _is_read_as_number(call, name, module))
    if isinstance(above, cst.Attribute) and isinstance(call, cst.Call):
        if above.attr.value == "append":
            return isinstance(module.tree.parent[call], cst.Expr)
        method = above.attr.value
        return method == "item" or (method in _METHODS and _is_read_as_number(call, name, module))
    if isinstance(above, cst.Subscript) and above.value is not node:
        return False
    goes_on = isinstance(above, (cst.BinaryOperation, cst.UnaryOperation, cst.Subscript))
    return goes_on and _is_read_as_number(above, name, module)
