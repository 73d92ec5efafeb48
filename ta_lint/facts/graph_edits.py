"""The edits that keep graphs from growing: what is added to a total or a list is detached."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.finding import Site
from ta_lint.core.lazy import regex
from ta_lint.facts.file_facts import FileFacts
from ta_lint.syntax.edits import ProposedFix, call_method, insert_line_after, replace, unwrap, wrap
from ta_lint.syntax.span import Span
from ta_lint.syntax.tree import Node, dotted, is_name

_READS_ALL = ("builtins.eval", "builtins.exec", "builtins.locals", "builtins.vars")
_READS = ("builtins.bool", "builtins.float", "builtins.int", "builtins.len")
_REDUCES = ("builtins.sum", "torch.mean", "torch.stack", "torch.sum")
_METHODS = frozenset({"cpu", "detach", "mean", "sum"})
_MOVES = frozenset({"cpu", "cuda", "double", "float", "to"})
_CUTS = frozenset({"data", "detach", "item"})
_RECURRENT = regex(r"torch\.nn\.(RNN|LSTM|GRU)(Cell)?")


def detach_added(module: FileFacts, site: Site) -> ProposedFix | None:
    """Detach what a statement adds to a total or list. Safe if others only read numbers from that."""
    places = module.places.span
    statement = next(
        (
            one
            for one in module.tree.all(cst.AugAssign, cst.Assign, cst.Expr)
            if places(one)[0] <= site.line <= places(one)[2]
        ),
        None,
    )
    target, added = _added(statement) if statement is not None else (None, [])
    if statement is None or target is None or not added or any(isinstance(one, cst.Dict) for one in added):
        return None
    edits = tuple(edit for one in added for edit in call_method(one, ".detach()"))
    return ProposedFix("detach it", edits, unsafe=not _is_number_alone(module, statement, target, added))


def _added(statement: cst.AugAssign | cst.Assign | cst.Expr) -> tuple[Node | None, list[Node]]:
    """The total or list of a statement, and what it adds to that."""
    if isinstance(statement, cst.AugAssign):
        added = statement.value
        if isinstance(added, cst.List):
            return statement.target, [one.value for one in added.elements]
        return statement.target, [added]
    if isinstance(statement, cst.Expr):
        call = statement.value
        if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
            return None, []
        given = [arg.value for arg in call.args if arg.keyword is None and not arg.star]  # no `alpha=0.1`
        if not given:
            return None, []
        value = given[-1]
        return call.func.value, [] if isinstance(value, cst.Tuple) else [value]
    target, total = statement.targets[0].target, statement.value
    if isinstance(target, cst.Subscript) and dotted(total) is not None:  # losses[step] = loss
        return target.value, [total]
    terms = list(_terms(total.orelse if isinstance(total, cst.IfExp) else total))
    names = [{dotted(part) for part in _leaves(term)} for term in terms]
    return target, [term for term, inside in zip(terms, names, strict=True) if dotted(target) not in inside]


def _terms(total: Node) -> Iterator[Node]:
    if isinstance(total, cst.BinaryOperation) and isinstance(total.operator, cst.Add):
        yield from _terms(total.left)
        yield from _terms(total.right)
    else:
        yield total


def _leaves(term: Node) -> Iterator[Node]:
    if isinstance(term, cst.BinaryOperation):
        yield from _leaves(term.left)
        yield from _leaves(term.right)
    else:
        yield term


def _is_number_alone(module: FileFacts, statement: Node, target: Node, added: list[Node]) -> bool:
    """Whether a total in a function certainly holds losses whose values are only read as numbers.

    Code that prints the total, converts it to an array or passes it on would see a difference after detaching.
    """
    tree, home = module.tree, module.tree.home(statement)
    losses = {dotted(start) for _, start in module.graphs.starts}
    if not isinstance(target, cst.Name) or any(dotted(one) not in losses for one in added):
        return False
    if not isinstance(home, cst.FunctionDef) or tree.within(home, cst.Global, cst.Nonlocal):
        return False
    if any(module.qualified(call.func) in _READS_ALL for call in tree.within(home, cst.Call)):
        return False
    return all(_is_read_as_number(one, target.value, module) for one in module.names.mentions(target))


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


def detach_state(module: FileFacts, site: Site) -> ProposedFix | None:
    """`detach()` after the backward pass, of a state that is certainly a tensor or a tuple of tensors."""
    tree, call = module.tree, module.call_at(site)
    statement = None if call is None else tree.parent[call]
    made = None if call is None else module.kinds.construction(call.func)
    kind = None if made is None else _RECURRENT.fullmatch(module.qualified(made.func) or "")
    if call is None or kind is None or not isinstance(statement, cst.Assign):
        return None
    given = {one.value.value for one in call.args if isinstance(one.value, cst.Name)}
    targets = [name.value for item in statement.targets for name in tree.within(item.target, cst.Name)]
    carried = [name for name in targets if name in given]
    backwards = [
        one
        for one in module.loops.backwards(tree.block(call))
        if tree.block(one) is tree.block(call) and tree.before(call, one)
    ]
    if len(carried) != 1 or not backwards:
        return None
    of_all = (
        f"tuple(state.detach() for state in {carried[0]})" if kind[1] == "LSTM" else f"{carried[0]}.detach()"
    )
    line = insert_line_after(tree, backwards[-1], f"{carried[0]} = {of_all}")
    return ProposedFix("detach the state", (line,))


def detach_before(module: FileFacts, site: Site) -> ProposedFix | None:
    """Detach what a call converts to an array: `x.detach().cpu().numpy()`, before it moves."""
    call = _node_at(module, site, cst.Call)
    if not isinstance(call, cst.Call):
        return None
    if call.args:
        return ProposedFix("detach it first", call_method(call.args[0].value, ".detach()"))
    method, moved = call.func, call.func
    while isinstance(moved, cst.Attribute):
        method = moved
        below = moved.value
        callee = below.func if isinstance(below, cst.Call) else None
        moved = callee if isinstance(callee, cst.Attribute) and callee.attr.value in _MOVES else below
    if not isinstance(method, cst.Attribute):
        return None
    return ProposedFix("detach it first", (replace(method.attr, f"detach().{method.attr.value}"),))


def _is_at(span: Span, site: Site) -> bool:
    return (span[0], span[1], span[2], span[3]) == (site.line, site.column, site.end_line, site.end_column)


def keep_gradient(module: FileFacts, site: Site) -> ProposedFix | None:
    """`x` instead of `x.detach()`, `x.item()` and `x.data`."""
    cut = _node_at(module, site, cst.Call, cst.Attribute)
    method = cut.func if isinstance(cut, cst.Call) and not cut.args else cut
    if cut is None or not isinstance(method, cst.Attribute) or method.attr.value not in _CUTS:
        return None
    return ProposedFix("keep the gradient", unwrap(cut, method.value))


def detach_term(module: FileFacts, site: Site) -> ProposedFix | None:
    """`x.detach()` instead of an operand `x`."""
    term = _node_at(
        module,
        site,
        cst.Name,
        cst.Attribute,
        cst.Call,
        cst.Subscript,
        cst.BinaryOperation,
        cst.UnaryOperation,
    )
    return None if term is None else ProposedFix("detach it", call_method(term, ".detach()"))


def negate(module: FileFacts, site: Site) -> ProposedFix | None:
    """A minus before what is assigned: a sum of `p * log_p`."""
    node = _node_at(module, site, cst.BinaryOperation)
    while node is not None and isinstance(above := module.tree.parent[node], (cst.Attribute, cst.Call)):
        node = above
    if not isinstance(node, cst.Call) or not isinstance(module.tree.parent[node], cst.Assign):
        return None
    return ProposedFix("put the minus before it", wrap(node, "-", ""))


def _node_at(module: FileFacts, site: Site, *kinds: type[Node]) -> Node | None:
    places = module.places.span
    return next((one for one in module.tree.all(*kinds) if _is_at(places(one), site)), None)


def detach_parameter(module: FileFacts, site: Site) -> ProposedFix | None:
    """Detach the parameter that a loop gives, in a sum that it is in."""
    total = _node_at(module, site, cst.BinaryOperation)
    loops = [] if total is None else module.tree.loops(total)
    for name in () if total is None else module.tree.within(total, cst.Name):
        if any(isinstance(one, cst.For) and module.kinds.takes_parameters(one, name.value) for one in loops):
            return ProposedFix("detach the parameter", call_method(name, ".detach()"))
    return None
