"""TA428: a generator of parameters is consumed a second time, when it is already empty."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.events import suspicion as said
from ta_lint.events.run import Run
from ta_lint.events.suspicion import Said
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.syntax.edits import ProposedFix, wrap
from ta_lint.syntax.tree import Node, argument, dotted, is_name

KEYWORDS = (("parameters", "named_parameters"),)

Variable = cst.Name | cst.Attribute

# Calls that consume an argument completely.
_CONSUMERS = regex(
    r"builtins\.(list|tuple|set|frozenset|sorted|sum|dict)|torch\.nn\.utils\.(clip_grad\.)?clip_grad_\w+|"
    r"torch\.nn\.utils\.(convert_parameters\.)?parameters_to_vector"
)
_LAZY = ("builtins.filter", "builtins.map", "itertools.chain")


def check(module: FileFacts) -> Iterator[Suspicion]:
    for statement in module.tree.all(cst.Assign):
        target = statement.targets[0].target
        if (
            len(statement.targets) != 1
            or not isinstance(target, (cst.Name, cst.Attribute))
            or not _is_one_shot(statement.value, module)
        ):
            continue
        uses = [use for use in _mentions(statement, target, module) if _is_consumed(use, module)]
        pair = _two_in_a_row(statement, uses, module)
        if pair is None:
            continue
        first, second = pair
        when = "after the first pass of the loop" if first is second else "by now"
        message = f"the generator `{module.code(target)}` is used up {when}: make a list of it"
        related: tuple[tuple[Node, str], ...] = ((statement, "the generator is made here"),)
        if first is not second:
            related += ((first, "and consumed here"),)
        fix = ProposedFix("keep the parameters in a list", wrap(statement.value, "list(", ")"))
        yield Suspicion(second, message, related=related, fix=fix)


def check_run(run: Run) -> Iterator[Said]:
    """Where a function gives the generator, or passes it on."""
    for use in run.used_up:
        related = ((use.first, "it is consumed here"),)
        yield said.Suspicion(
            use.place, "this generator of parameters is used up by now: make a list of it", related=related
        )


def _is_one_shot(value: Node, module: FileFacts) -> bool:
    """`model.parameters()`, and lazy iterators over it."""
    if isinstance(value, cst.GeneratorExp) or (
        isinstance(value, cst.Call) and module.qualified(value.func) in _LAZY
    ):
        return any(
            module.parameters.generated_by(call) is not None for call in module.tree.within(value, cst.Call)
        )
    return module.parameters.generated_by(value) is not None


def _mentions(statement: cst.Assign, target: Variable, module: FileFacts) -> list[Variable]:
    """The uses of a variable that certainly refer to this assignment."""
    if isinstance(target, cst.Name):
        mentions = module.names.mentions(target)
        return [name for name in mentions if (d := module.names.definition(name)) and d.node is statement]
    klass = module.tree.enclosing(statement, cst.ClassDef)
    if (
        klass is None
        or not is_name(target.value, "self")
        or len(module.classes.attribute(klass, target.attr.value)) != 1
    ):
        return []
    return [
        other
        for other in module.tree.within(klass, cst.Attribute)
        if other is not target and dotted(other) == dotted(target)
    ]


def _is_consumed(use: Variable, module: FileFacts) -> bool:
    """Whether this use exhausts the generator."""
    above = module.tree.parent[use]
    if isinstance(above, cst.For) and above.iter is use:
        return not module.tree.own(above.body, cst.Break, cst.Return, cst.Yield)
    if isinstance(above, cst.CompFor) and above.iter is use:
        holder = module.tree.parent[above]
        return not isinstance(holder, cst.GeneratorExp) or _goes_to_consumer(holder, module)
    return _goes_to_consumer(use, module)


def _goes_to_consumer(node: Node, module: FileFacts) -> bool:
    arg = module.tree.parent[node]
    call = module.tree.parent[arg]
    if not isinstance(arg, cst.Arg) or arg.star or not isinstance(call, cst.Call):
        return False
    if module.parameters.builds_optimizer(call):
        return argument(call, "params", 0) is node
    called = module.qualified(call.func)
    return called is not None and _CONSUMERS.fullmatch(called) is not None


def _two_in_a_row(
    statement: cst.Assign, uses: list[Variable], module: FileFacts
) -> tuple[Variable, Variable] | None:
    """Two uses in succession, or one use that a loop repeats."""
    for index, use in enumerate(uses):
        for other in uses[:index]:
            if module.tree.home(other) is not module.tree.home(use) or _is_passed(other, use, module):
                return other, use
        for loop in module.tree.loops(use):
            beside = module.tree.home(use) is module.tree.home(statement)
            if (
                beside
                and not module.tree.contains(loop, statement)
                and not module.loops.is_last_pass(use, loop)
            ):
                return use, use
    return None


def _is_passed(first: Node, second: Node, module: FileFacts) -> bool:
    """Whether every path to the second node passes the first."""
    block = module.tree.block(first)
    while isinstance(holder := module.tree.parent.get(block), cst.With):
        block = module.tree.block(holder)
    return module.tree.contains(block, second)
