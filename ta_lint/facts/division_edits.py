"""The edits that divide by the number of batches."""

import libcst as cst

from ta_lint.core.finding import Site
from ta_lint.facts.file_facts import FileFacts
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.edits import ProposedFix, is_atom, replace_with_atom, wrap
from ta_lint.syntax.tree import Node, is_name


def by_batches(module: FileFacts, division: Site) -> ProposedFix | None:
    """`len(loader)` for `len(loader.dataset)`, unless the number of samples has a name."""
    divisors: list[tuple[Node, Node]] = [(one, one.right) for one in module.tree.all(cst.BinaryOperation)]
    divisors += [(one, one.value) for one in module.tree.all(cst.AugAssign)]
    for node, divisor in divisors:
        if module.places.span(node)[:2] != (division.line, division.column):
            continue
        counted = _counted(divisor)
        if (
            isinstance(counted, cst.Attribute)
            and counted.attr.value == "dataset"
            and not is_name(counted.value, "self")
        ):
            loader = module.verbatim(counted.value)
            return ProposedFix("divide by the number of batches", (replace_with_atom(counted, loader),))
    return None


def _counted(divisor: Node) -> Node | None:
    """`x` of `len(x)`."""
    if not isinstance(divisor, cst.Call) or not is_name(divisor.func, "len") or len(divisor.args) != 1:
        return None
    return divisor.args[0].value


def by_accumulated(module: FileFacts, backward: Site) -> ProposedFix | None:
    """Divide the value on which `backward()` is called, if it is a name and no other line computes gradients in its loop."""
    call = module.call_at(backward)
    loss = call.func.value if call is not None and isinstance(call.func, cst.Attribute) else None
    loops = [] if call is None else module.tree.loops(call)
    if not isinstance(loss, cst.Name) or not loops:
        return None
    others = [one for one in module.tree.within(loops[0], cst.Call) if called_name(one) == "backward"]
    count = _accumulated(module, loops[0])
    if count is None or len(others) > 1 or call is None or call.args:
        return None
    code = module.verbatim(count)
    divisor = code if is_atom(count) or module.number(count) else f"({code})"
    return ProposedFix(f"divide the loss by `{module.code(count)}`", wrap(loss, "(", f" / {divisor})"))


def _accumulated(module: FileFacts, loop: Node) -> cst.BaseExpression | None:
    """`k` of `if (i + 1) % k == 0:` in a loop, or of the loop `for _ in range(k):` itself."""
    tests = [module.kinds.origin(one.test) for one in module.tree.within(loop, cst.If)]
    operations = [one for test in tests for one in module.tree.within(test, cst.BinaryOperation)]
    moduli = [one for one in operations if isinstance(one.operator, cst.Modulo)]
    if moduli:
        return moduli[0].right if len(moduli) == 1 else None
    counted = loop.iter if isinstance(loop, cst.For) else None
    is_range = isinstance(counted, cst.Call) and called_name(counted) == "range" and len(counted.args) == 1
    return counted.args[0].value if is_range and isinstance(counted, cst.Call) else None
