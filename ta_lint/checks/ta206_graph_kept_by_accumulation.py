"""TA206: a sum or list that outlives the pass accumulates the loss with its graph, so all steps' graphs stay alive."""

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.loops.loops import Region
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.edits import ProposedFix, call_method
from ta_lint.syntax.tree import Node, argument, dotted, is_name

KEYWORDS = (("append", "+"),)
AROUND = ("*backward",)

_WITHOUT_GRADIENT = frozenset({"no_grad", "inference_mode", "set_grad_enabled"})
_EMPTIES = frozenset({"clear", "detach_", "pop", "popleft", "remove", "zero_"})
_MAPPINGS = ("builtins.dict", "collections.Counter", "collections.OrderedDict", "collections.defaultdict")


@dataclass(frozen=True)
class RunningSum:
    """`target += value`, `target = target + value` or `target.append(value)` in a statement that runs once per pass."""

    statement: cst.BaseSmallStatement
    target: Node
    value: Node
    region: Region

    @property
    def owner(self) -> Node:
        """The variable behind the target: `history` for `history["loss"]`."""
        owner = self.target
        while isinstance(owner, cst.Subscript):
            owner = owner.value
        return owner

    @property
    def is_list(self) -> bool:
        return isinstance(self.statement, cst.Expr) or isinstance(self.value, cst.List)

    @property
    def taken(self) -> list[Node]:
        """The added value, or the elements of an added tuple or list."""
        if isinstance(self.value, (cst.Tuple, cst.List)):
            return [element.value for element in self.value.elements]
        return [self.value]


def check(module: FileFacts) -> Iterator[Suspicion]:
    if module.is_test or not any(name.partition(".")[0] == "torch" for name in module.names.imported):
        return  # tests are short, and other libraries have their own `backward`
    regions = dict.fromkeys(_regions(module))
    for region in regions:
        for found in _accumulations(module, region):
            kept = [(value, part) for value in found.taken if (part := module.graphs.held(value, region))]
            if kept and _repeats(module, found) and _is_live(module, found) and _lives_on(module, found):
                taken = "appended" if found.is_list else "added"
                target, loss = module.code(found.target), module.code(kept[0][1])
                message = f"`{target}` keeps the graph of every `{loss}` {taken} to it"
                edits = [edit for value, _ in kept for edit in call_method(value, ".detach()")]
                passes = module.graphs.passes(kept[0][1], region)
                related = tuple((call, "the backward pass starts here") for call in passes)
                is_seen = not _is_number_alone(module, found, [part for _, part in kept])
                fix = ProposedFix("detach it", tuple(edits), unsafe=is_seen)
                yield Suspicion(found.statement, message, fix=fix, related=related)


def _regions(module: FileFacts) -> Iterator[Region]:
    """The loops, and the functions called in loops, that run a backward pass each time."""
    called = {loop.region for loop in module.training_loops}
    for backward in module.graphs.backwards:
        if not isinstance(backward.region, cst.FunctionDef) or backward.region in called:
            yield backward.region
    yield from module.tree.all(cst.For, cst.While)


# -- what accumulates -----------------------------------------------------------------------------------------


def _accumulations(module: FileFacts, region: Region) -> Iterator[RunningSum]:
    tree = module.tree
    for statement in tree.own(region, cst.AugAssign, cst.Assign, cst.Expr):
        loops = tree.loops(statement)
        once = (
            not loops and tree.home(statement) is region
            if isinstance(region, cst.FunctionDef)
            else loops[:1] == [region]
        )
        if once and (parts := _parts(statement)) is not None:
            yield RunningSum(statement, *parts, region)


def _parts(statement: cst.AugAssign | cst.Assign | cst.Expr) -> tuple[Node, Node] | None:
    """The target and value of an accumulating statement."""
    if isinstance(statement, cst.AugAssign):
        return (statement.target, statement.value) if isinstance(statement.operator, cst.AddAssign) else None
    if isinstance(statement, cst.Expr):
        return _appended(statement.value)
    total = statement.value
    if (
        len(statement.targets) == 1
        and isinstance(total, cst.BinaryOperation)
        and isinstance(total.operator, cst.Add)
    ):
        target = statement.targets[0].target
        for old, new in ((total.left, total.right), (total.right, total.left)):
            if dotted(target) is not None and dotted(old) == dotted(target):
                return target, new
    return None


def _appended(call: Node) -> tuple[Node, Node] | None:
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
        return None
    appends = call.func.attr.value == "append" and len(call.args) == 1
    return (call.func.value, call.args[0].value) if appends else None


def _repeats(module: FileFacts, found: RunningSum) -> bool:
    if isinstance(found.region, cst.FunctionDef):
        return True
    return not module.loops.is_last_pass(found.statement, found.region)


# -- whether it keeps what it takes ---------------------------------------------------------------------------


def _is_live(module: FileFacts, found: RunningSum) -> bool:
    """Whether a graph is recorded where the sum is computed; a list keeps its elements in any case."""
    return found.is_list or not any(
        isinstance(item.item, cst.Call) and called_name(item.item) in _WITHOUT_GRADIENT
        for block in module.tree.ancestors(found.statement)
        if isinstance(block, cst.With)
        for item in block.items
    )


def _lives_on(module: FileFacts, found: RunningSum) -> bool:
    """Whether the target starts outside the pass as a number, tensor, list or dictionary, and is never emptied."""
    owner = found.owner
    if isinstance(owner, cst.Name):
        starts = _starts_of_variable(module, owner, found)
    elif isinstance(owner, cst.Attribute) and dotted(owner.value) == "self":
        starts = _starts_of_attribute(module, owner.attr.value, found)
    else:
        return False
    return (
        bool(starts)
        and all(_is_start(module, start, found) for start in starts)
        and not _is_emptied(module, found)
    )


def _starts_of_variable(module: FileFacts, owner: cst.Name, found: RunningSum) -> list[Node]:
    """The value of a variable before the passes, in a list; empty if a pass sets it, or it is uncertain."""
    tree = module.tree
    bindings = [
        b for b in module.names.bindings(owner) if b.how != "augment" and b.node is not found.statement
    ]
    if any(tree.contains(found.region, binding.node) for binding in bindings):
        return []
    before = [binding for binding in bindings if tree.before(binding.node, found.region)]
    if not before or before[-1].value is None:
        return []
    last = before[-1].value
    if before[-1].how == "unpack":
        return _unpacked(before[-1].node, owner.value)
    return [last] if before[-1].how == "assign" else []


def _unpacked(statement: Node, name: str) -> list[Node]:
    """The value that one of the names gets in `total, count = 0, 0`."""
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
    starts = [value for value in values if value not in own and not isinstance(value, cst.AugAssign)]
    called = {called_name(call) for call in tree.own(found.region, cst.Call)}
    homes = [tree.home(start) for start in starts]
    in_pass = any(isinstance(home, cst.FunctionDef) and home.name.value in called for home in homes)
    return [] if in_pass or any(tree.contains(found.region, start) for start in starts) else starts


def _is_start(module: FileFacts, start: Node, found: RunningSum) -> bool:
    """Whether a value is a plain start of an accumulation, with the usual `+=` and `append`."""
    call = start if isinstance(start, cst.Call) else None
    called = (module.qualified(call.func) or "") if call is not None else ""
    if isinstance(found.target, cst.Subscript):
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
    return module.number(start) is not None or called.startswith("torch.") or called == "builtins.float"


def _is_emptied(module: FileFacts, found: RunningSum) -> bool:
    """Whether the pass empties, replaces or detaches the target or a part of it."""
    tree, name = module.tree, dotted(found.owner)
    for target in tree.own(found.region, cst.AssignTarget, cst.Del):
        mentioned = {dotted(part) for part in tree.within(target, cst.Name, cst.Attribute)}
        if name in mentioned and tree.statement(target) is not found.statement:
            return True
    return any(
        called_name(call) in _EMPTIES
        and isinstance(call.func, cst.Attribute)
        and any(dotted(part) == name for part in tree.within(call.func.value, cst.Name, cst.Attribute))
        for call in tree.own(found.region, cst.Call)
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
