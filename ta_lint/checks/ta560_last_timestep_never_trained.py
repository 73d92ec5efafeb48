"""TA560: the last timestep of a schedule is never drawn, although sampling starts with it."""

import re
from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.edits import ProposedFix, replace
from ta_lint.syntax.tree import Node, argument, dotted

KEYWORDS = ("randint", ("*beta*", "*alpha*", "*sigma*", "*diffusion*", "*noise*", "q_sample"))

_RANDINT = ("torch.randint", "numpy.random.randint")
_TIMESTEPS = regex(
    r"_?(num|n|max|total)?_?(train|diffusion|noise|denoising)?_?time_?steps?|_?(num|n)?_?(diffusion|noise)_steps",
    re.IGNORECASE,
)
_SCHEDULE = regex(r"_?(\w+_)?(betas?|alphas?(_?(cumprod|bar|hat)s?)?)", re.IGNORECASE)
_LAYS_OUT = frozenset("linspace arange range cosine_beta_schedule linear_beta_schedule".split())


def check(module: FileFacts) -> Iterator[Suspicion]:
    for call in module.calls_to(*_RANDINT):
        end = _end(call)
        made = [origin.node for origin in module.flow.of(end).origins] if end is not None else []
        difference = made[0] if len(made) == 1 else None
        length = _one_more(difference) if difference is not None else None
        if end is None or length is None or difference is None:
            continue
        if not _counts_timesteps(module, length) or _has_one_more(module, length):
            continue
        if _is_moved_on(module, call) or _last_is_drawn(module, difference):
            continue
        message = f"`randint` never draws its end, `{module.code(difference)}`, where sampling starts: raise the end by 1"
        fix = None
        if difference is end:
            fix = ProposedFix("draw from all timesteps", (replace(end, module.verbatim(length)),))
        yield Suspicion(call, message, fix=fix)


def _end(call: cst.Call) -> cst.BaseExpression | None:
    """The upper end of a draw, which is excluded."""
    high = argument(call, "high", 1)
    placed = [arg for arg in call.args if arg.keyword is None]
    if high is None or isinstance(high, cst.Tuple):
        return placed[0].value if placed else None
    return high


def _one_more(node: Node) -> cst.BaseExpression | None:
    """`T` of `T - 1`."""
    match node:
        case cst.BinaryOperation(left=left, operator=cst.Subtract(), right=cst.Integer(value="1")):
            return left
    return None


def _counts_timesteps(module: FileFacts, length: Node) -> bool:
    """Whether a number, or the one setting that it is a short name for, counts timesteps."""
    if _is_length_of_schedule(module, length):
        return True
    value = module.flow.of(length)
    return len(value.origins) == 1 and any(_is_length_of_schedule(module, one) for one in value.aliases)


def _is_length_of_schedule(module: FileFacts, length: Node) -> bool:
    """Whether a number counts timesteps: by its name, as a schedule's length, or because a schedule is built from it."""
    if isinstance(length, cst.Call):
        held = length.args[0].value if called_name(length) == "len" and length.args else None
        return held is not None and _SCHEDULE.fullmatch(_last(held)) is not None
    name = _last(length)
    if _TIMESTEPS.fullmatch(name):
        return True
    return bool(name) and any(
        called_name(call) in _LAYS_OUT and _counts_down_or_to(call, name)
        for call in module.tree.all(cst.Call)
    )


def _counts_down_or_to(call: cst.Call, name: str) -> bool:
    """Whether a call lays out so many entries, or counts down from the last one."""
    if called_name(call) != "range":
        return any(_last(arg.value) == name for arg in call.args)
    first = call.args[0].value if call.args else None
    start = _one_more(first) if first is not None and len(call.args) == 3 else None
    return start is not None and _last(start) == name


def _has_one_more(module: FileFacts, length: Node) -> bool:
    """Whether code adds one to the length, as a schedule of one entry more does."""
    name = _last(length)
    made = [origin.node for origin in module.flow.of(length).origins]
    return any(isinstance(one, cst.BinaryOperation) for one in made) or any(
        isinstance(sum_.operator, cst.Add)
        and isinstance(sum_.right, cst.Integer)
        and bool(name)
        and _last(sum_.left) == name
        for sum_ in module.tree.all(cst.BinaryOperation)
    )


def _is_moved_on(module: FileFacts, call: cst.Call) -> bool:
    """Whether one is added to the drawn number, there or later."""
    statement = module.tree.statement(call)
    sums = module.tree.own(module.tree.home(call), cst.BinaryOperation, cst.AugAssign)
    name = _last(statement.targets[0].target) if isinstance(statement, cst.Assign) else ""
    for one in sums:
        if not isinstance(one.operator, (cst.Add, cst.AddAssign)):
            continue
        sides = [one.left, one.right] if isinstance(one, cst.BinaryOperation) else [one.target, one.value]
        if any(module.tree.contains(side, call) for side in sides):
            return True
        if (
            name
            and any(_last(side) == name for side in sides)
            and any(isinstance(s, cst.Integer) for s in sides)
        ):
            return True
    return False


def _last_is_drawn(module: FileFacts, difference: Node) -> bool:
    """Whether the function names the last timestep elsewhere, and so may train it on its own."""
    code = module.code(difference)
    others = module.tree.own(module.tree.home(difference), cst.BinaryOperation)
    return any(one is not difference and module.code(one) == code for one in others)


def _last(node: Node) -> str:
    return (dotted(node) or "").rpartition(".")[2]
