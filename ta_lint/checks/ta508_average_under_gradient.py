"""TA508: a moving average of parameters is computed while autograd records, and so keeps their graph."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.words import words
from ta_lint.syntax.edits import ProposedFix, insert_after
from ta_lint.syntax.layout import plain
from ta_lint.syntax.tree import Node, dotted

# A file that averages parameters says so by one of these, as a part of a name.
_AVERAGED = "ema avg average shadow target tau decay momentum moving teacher".split()
KEYWORDS = (
    ("parameters", "named_parameters"),
    ("lerp_", "add_", "+"),
    tuple(f"*{word}*" for word in _AVERAGED),
)

_PARAMETERS = frozenset({"parameters", "named_parameters"})
_BREAKS = frozenset("data detach item numpy tolist clone_detached shape size numel dtype device grad".split())
_MIXES = frozenset({"add_", "lerp_"})


def check(module: FileFacts) -> Iterator[Suspicion]:
    loops = [loop for loop in module.tree.all(cst.For) if _parameters(module, loop)]
    made = list(_made_anew(module))
    if not (loops or made) or not _speaks_of_averages(module):
        return
    for anew in made:
        yield _suspicion(module, *anew)
    for loop in loops:
        sources = _parameters(module, loop)
        for statement in module.tree.own(loop.body, cst.Assign, cst.Expr):
            if module.tree.loops(statement)[:1] != [loop] or module.recording.records(statement) is not True:
                continue
            live = _taken_in(module, statement, sources)
            if live is not None:
                yield _suspicion(module, statement, loop, live)


def _suspicion(
    module: FileFacts, statement: cst.Assign | cst.Expr, loop: cst.For | cst.CompFor, live: Node
) -> Suspicion:
    message = f"every update by `{module.code(live)}` grows the graph that the average keeps: use `no_grad()`"
    fix = ProposedFix("detach the parameter", (insert_after(live, ".detach()"),))
    return Suspicion(
        statement,
        message,
        fix=fix if isinstance(statement, cst.Assign) else None,
        related=((loop, "the loop over the parameters"),),
    )


def _made_anew(module: FileFacts) -> Iterator[tuple[cst.Assign, cst.CompFor, Node]]:
    """Lists of averages that a comprehension rebuilds from themselves and the parameters.

    `shadow = [d * s + (1 - d) * p for s, p in zip(shadow, model.parameters())]`
    """
    for listed in module.tree.all(cst.ListComp):
        assign, loop = module.tree.parent[listed], listed.for_in
        if not isinstance(assign, cst.Assign) or not isinstance(listed.elt, cst.BinaryOperation):
            continue
        averages = _zipped_with(loop, dotted(assign.targets[0].target))
        sources = _parameters(module, loop)
        is_sum = isinstance(listed.elt.operator, cst.Add)
        mixes = is_sum and averages & {name.value for name in module.tree.within(listed.elt, cst.Name)}
        if not mixes or not sources or module.recording.records(assign) is not True:
            continue
        if (live := _live(module, listed.elt, sources - averages)) is not None:
            yield assign, loop, live


def _zipped_with(loop: cst.CompFor, target: str | None) -> set[str]:
    """The loop variables that are elements of the list which is rebuilt."""
    iterable = loop.iter
    elements = loop.target.elements if isinstance(loop.target, cst.Tuple) else ()
    if target is None or not isinstance(iterable, cst.Call) or called_name(iterable) != "zip":
        return set()
    pairs = zip(elements, iterable.args, strict=False)
    return {
        element.value.value
        for element, arg in pairs
        if isinstance(element.value, cst.Name) and dotted(arg.value) == target
    }


def _speaks_of_averages(module: FileFacts) -> bool:
    said = [word.lower() for word in words(module.tree)]
    return any(part in word for part in _AVERAGED for word in said)


def _parameters(module: FileFacts, loop: cst.For | cst.CompFor) -> set[str]:
    """The loop variables that are parameters of a model: those of `parameters()`, alone or in a `zip`."""
    iterable = loop.iter
    if isinstance(iterable, cst.Call) and called_name(iterable) == "zip":
        names: set[str] = set()
        elements = loop.target.elements if isinstance(loop.target, cst.Tuple) else ()
        if len(elements) == len(iterable.args):
            for element, arg in zip(elements, iterable.args, strict=True):
                names |= _of_one(module, arg.value, element.value)
        return names
    return _of_one(module, iterable, loop.target)


def _of_one(module: FileFacts, iterable: Node, target: Node) -> set[str]:
    name = called_name(iterable) if isinstance(iterable, cst.Call) else None
    if name not in _PARAMETERS:
        return set()
    found = [found.value for found in module.tree.within(target, cst.Name)]
    return set(found[-1:]) if name == "named_parameters" else set(found)


def _taken_in(module: FileFacts, statement: cst.Assign | cst.Expr, sources: set[str]) -> Node | None:
    """The undetached parameter that a statement mixes into a stored value or another parameter."""
    if isinstance(statement, cst.Assign):
        target = statement.targets[0].target
        value: Node = statement.value
        is_average = (
            isinstance(target, cst.Subscript)
            and isinstance(value, cst.BinaryOperation)
            and isinstance(value.operator, cst.Add)
            and any(plain(part) == plain(target) for part in module.tree.within(value, cst.Subscript))
        )
        return _live(module, value, sources) if is_average else None
    call = statement.value
    if (
        not isinstance(call, cst.Call)
        or called_name(call) not in _MIXES
        or not isinstance(call.func, cst.Attribute)
    ):
        return None
    averaged = call.func.value
    if (
        isinstance(averaged, cst.Call)
        and called_name(averaged) == "mul_"
        and isinstance(averaged.func, cst.Attribute)
    ):
        averaged = averaged.func.value
    elif called_name(call) != "lerp_":
        return None
    stored = isinstance(averaged, cst.Subscript) or dotted(averaged) in sources
    others = sources - {dotted(averaged) or ""}
    return _live(module, call.args[0].value, others) if stored and call.args else None


def _live(module: FileFacts, value: Node, sources: set[str]) -> Node | None:
    for name in module.tree.within(value, cst.Name):
        if name.value not in sources:
            continue
        attributes = [above for above in module.tree.ancestors(name) if isinstance(above, cst.Attribute)]
        inner = [above for above in attributes if module.tree.contains(value, above)]
        in_key = any(
            isinstance(above, (cst.Index, cst.Comparison)) and module.tree.contains(value, above)
            for above in module.tree.ancestors(name)
        )
        if not in_key and not any(above.attr.value in _BREAKS for above in inner):
            return name
    return None
