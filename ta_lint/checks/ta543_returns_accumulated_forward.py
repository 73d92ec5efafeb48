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

KEYWORDS = (("insert", "append", "appendleft", "range"), ("*reward*", "*return*"))
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
        rewards = _rewards(module, loop, one.now[0]) if len(one.now) == 1 else None
        put = _put(module, loop, dotted(variable))
        if rewards is None or put is None or _turns(module, loop, put[1], rewards):
            continue
        message = f"`{module.code(one.total)}` sums past rewards, but a return sums those to come: use `reversed(rewards)`"
        yield Suspicion(loop.iter, message, related=((one.total, "the sum"),), fix=_fix(loop, put[0]))


def _rewards(module: FileFacts, loop: cst.For, term: Node) -> Node | None:
    """What a loop goes over, by its elements or their numbers, if these are rewards by its name or that of its variable."""
    reward = bare(term)
    name, taken = dotted(reward), _taken(module, loop)
    if name in taken:
        given: Node = loop.iter
    elif _counts_up(module, loop.iter) and taken & {
        _index(one) for one in module.tree.within(term, cst.Subscript)
    }:
        given = reward
    else:
        return None
    names = [name or "", *(one.value for one in module.tree.within(given, cst.Name))]
    return given if any(map(_REWARD.search, names)) else None


def _taken(module: FileFacts, loop: cst.For) -> set[str]:
    return {name.value for name in module.tree.within(loop.target, cst.Name)}


def _index(item: cst.Subscript) -> str | None:
    """`t` of `rewards[t]`."""
    index = item.slice[0].slice if len(item.slice) == 1 else None
    return dotted(index.value) if isinstance(index, cst.Index) else None


def _counts_up(module: FileFacts, numbers: Node) -> bool:
    """Whether a loop goes over `range(n)`."""
    is_range = isinstance(numbers, cst.Call) and module.qualified(numbers.func) == "builtins.range"
    return is_range and isinstance(numbers, cst.Call) and len(numbers.args) == 1


def _put(module: FileFacts, loop: cst.For, path: str | None) -> tuple[Node, Node] | None:
    """What puts the sum into a list of returns, and that list: `returns.append(R)`, `returns[t] = R`."""
    for call in module.tree.within(loop.body, cst.Call):
        is_put = called_name(call) in ("insert", "append") and isinstance(call.func, cst.Attribute)
        if is_put and call.args and dotted(call.args[-1].value) == path:
            return call, call.func.value  # type: ignore[attr-defined]
    for assign in module.tree.within(loop.body, cst.Assign):
        item = assign.targets[0].target
        if (
            isinstance(item, cst.Subscript)
            and _index(item) in _taken(module, loop)
            and dotted(assign.value) == path
        ):
            return assign, item.value
    return None


def _turns(module: FileFacts, loop: cst.For, collected: Node, rewards: Node) -> bool:
    """Whether nearby code reverses an order, or uses the sums only for a scale."""
    home = module.tree.home(loop)
    for name in module.tree.within(home, cst.Name):
        if name.value in _TURNS:
            return True
    if any(_steps_back(part) for part in module.tree.within(home, cst.Slice)):
        return True
    if not any(map(_RETURNS.search, _called(module, home, collected))):
        return True
    return any(
        isinstance(origin.node, (cst.Call, cst.Param)) and _is_foreign(module, origin.node)
        for origin in module.flow.of(rewards).origins
    )


def _called(module: FileFacts, home: Node, collected: Node) -> Iterator[str]:
    """What a list is called: by its own name, or that of the function that gives it."""
    path = dotted(collected) or ""
    yield path.rpartition(".")[2]
    given = (one.value for one in module.tree.own(home, cst.Return))
    if isinstance(home, cst.FunctionDef) and any(one is not None and dotted(one) == path for one in given):
        yield home.name.value


def _is_foreign(module: FileFacts, node: Node) -> bool:
    """Whether the iterable comes from a function of unknown order."""
    if isinstance(node, cst.Param):
        return False
    return (
        called_name(node) not in ("zip", "enumerate", "list", "tqdm") if isinstance(node, cst.Call) else True
    )


def _steps_back(part: cst.Slice) -> bool:
    return isinstance(part.step, cst.UnaryOperation)


def _fix(loop: cst.For, put: Node) -> ProposedFix | None:
    if not isinstance(put, cst.Call) or called_name(put) != "insert" or isinstance(loop.iter, cst.Call):
        return None
    return ProposedFix("go from the last reward to the first", wrap(loop.iter, "reversed(", ")"))
