"""TA543: discounted returns are summed from the first reward on, so they contain past rewards."""

import re
from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.discounting import bare
from ta_lint.syntax.edits import ProposedFix, wrap
from ta_lint.syntax.tree import Node, dotted

KEYWORDS = (("insert", "append", "appendleft"), ("*reward*", "*return*"))
AROUND = (("*gamma*", "*discount*", "0.9"),)

_REWARD = regex(r"reward|rews?$", re.IGNORECASE)
_RETURNS = regex(r"returns?|rtgs?|rewards_?to_?go|gts?|targets?|discount", re.IGNORECASE)
_TURNS = frozenset("reversed reverse flip flipud fliplr appendleft".split())


def check(module: FileFacts) -> Iterator[Suspicion]:
    for one in module.discounting.sums:
        variable = module.discounting.adds_up(one)
        loops = module.tree.loops(one.total)
        loop = loops[0] if loops else None
        if variable is None or not isinstance(loop, cst.For) or not module.discounting.adds_up_from_zero(one):
            continue
        taken = {name.value for name in module.tree.within(loop.target, cst.Name)}
        reward = [bare(term) for term in one.now]
        if len(reward) != 1 or not isinstance(reward[0], cst.Name) or reward[0].value not in taken:
            continue
        put = _put(module, loop, dotted(variable))
        if put is None or not _are_rewards(module, loop, reward[0]) or _turns(module, loop, put):
            continue
        message = f"`{module.code(one.total)}` sums past rewards, but a return sums those to come: use `reversed(rewards)`"
        yield Suspicion(loop.iter, message, related=((one.total, "the sum"),), fix=_fix(loop, put))


def _put(module: FileFacts, loop: cst.For, path: str | None) -> cst.Call | None:
    """The call that puts the sum into a list of returns."""
    for call in module.tree.within(loop.body, cst.Call):
        if called_name(call) in ("insert", "append") and call.args and dotted(call.args[-1].value) == path:
            return call
    return None


def _are_rewards(module: FileFacts, loop: cst.For, reward: cst.Name) -> bool:
    """Whether the loop iterates over rewards, by their name or that of its loop variable."""
    names = module.tree.within(loop.iter, cst.Name)
    return any(_REWARD.search(name.value) for name in (reward, *names))


def _turns(module: FileFacts, loop: cst.For, put: cst.Call) -> bool:
    """Whether nearby code reverses an order, or uses the sums only for a scale."""
    home = module.tree.home(loop)
    for name in module.tree.within(home, cst.Name):
        if name.value in _TURNS:
            return True
    if any(_steps_back(part) for part in module.tree.within(home, cst.Slice)):
        return True
    collected = put.func.value if isinstance(put.func, cst.Attribute) else None
    if collected is None or _RETURNS.search((dotted(collected) or "").rpartition(".")[2]) is None:
        return True
    return any(
        isinstance(origin.node, (cst.Call, cst.Param)) and _is_foreign(module, origin.node)
        for origin in module.flow.of(loop.iter).origins
    )


def _is_foreign(module: FileFacts, node: Node) -> bool:
    """Whether the iterable comes from a function of unknown order."""
    if isinstance(node, cst.Param):
        return False
    return (
        called_name(node) not in ("zip", "enumerate", "list", "tqdm") if isinstance(node, cst.Call) else True
    )


def _steps_back(part: cst.Slice) -> bool:
    return isinstance(part.step, cst.UnaryOperation)


def _fix(loop: cst.For, put: cst.Call) -> ProposedFix | None:
    if called_name(put) != "insert" or isinstance(loop.iter, cst.Call):
        return None
    return ProposedFix("go from the last reward to the first", wrap(loop.iter, "reversed(", ")"))
