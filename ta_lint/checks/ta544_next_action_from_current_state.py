"""TA544: a target values the next state under an action that was chosen from the current one."""

import re
from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.discounting import bare
from ta_lint.facts.values.states import State
from ta_lint.syntax.edits import ProposedFix, replace
from ta_lint.syntax.tree import Node, argument

KEYWORDS = (("*next*", "*new_*", "*prime*", "*state_*", "*states_*", "*obs2*", "*obs_*", "*s_*"),)
AROUND = (("*gamma*", "*discount*", "0.9"),)

_ACTION = regex(r".*act.*|(\w+_)?a(_\w+)?|a\d?|pi\w*|\w*max\w*|best\w*|idx|index", re.IGNORECASE)
_OUTLASTS = regex(
    r".*(option|skill|latent|goal|hidden|memory|context|task|noise|embed|reward|limit).*|[hcz]\w?",
    re.IGNORECASE,
)
_JOINS = frozenset({"torch.cat", "torch.concat", "torch.concatenate", "torch.hstack"})


def check(module: FileFacts) -> Iterator[Suspicion]:
    reported: set[Node] = set()
    for one in module.discounting.sums:
        for part in (part for factor in one.later for part in module.states.behind(factor)):
            for use, action in _uses(module, part):
                choice = _choice(module, action) if use not in reported else None
                if choice is None:
                    continue
                reported.add(use)
                message = f"`{module.code(choice)}` picks the next action, but from the current state: give it the next state"
                yield Suspicion(use, message, ((choice, "chosen here"),), _fix(module, use, choice))


def _uses(module: FileFacts, part: Node) -> Iterator[tuple[Node, Node]]:
    """What values the next state under an action, with the action."""
    for call in module.tree.within(part, cst.Call):
        if called_name(call) == "gather":
            by_function = module.qualified(call.func) == "torch.gather"
            base = argument(call, "input", 0) if by_function else getattr(call.func, "value", None)
            index = argument(call, "index", 2 if by_function else 1)
            if base is not None and index is not None and module.states.of(base) == {State.NEXT}:
                yield call, index
        elif module.qualified(call.func) is None and call.args:
            given = _given(module, call)  # the last two: `q_value(critic, next_state, action)`
            states = [module.states.mentioned(one) for one in given[:-1]]
            if states[-1:] == [{State.NEXT}] and not any(states[:-1]):
                yield call, given[-1]
    for row in module.tree.within(part, cst.Subscript):
        last = row.slice[-1].slice
        if (
            len(row.slice) == 2
            and isinstance(last, cst.Index)
            and module.states.of(row.value) == {State.NEXT}
        ):
            yield row, last.value


def _given(module: FileFacts, call: cst.Call) -> list[Node]:
    """The arguments of a call, or the tensors that its only argument is joined of."""
    given: list[Node] = [arg.value for arg in call.args]
    if len(given) != 1:
        return given
    joined = [
        part
        for part in module.states.behind(given[0])[:2]
        if isinstance(part, cst.Call) and module.qualified(part.func) in _JOINS and part.args
    ]
    parts = joined[0].args[0].value if joined else None
    return (
        [element.value for element in parts.elements] if isinstance(parts, (cst.List, cst.Tuple)) else given
    )


def _choice(module: FileFacts, action: Node) -> cst.Call | None:
    """The call that chooses an action from the current state, if nothing of the next one is in it."""
    if State.NEXT in module.states.of(action) or not _is_action(module, action):
        return None
    for part in module.states.behind(action):
        for call in module.tree.within(part, cst.Call):
            given = [arg.value for arg in call.args]
            if module.qualified(call.func) is None and any(
                module.states.of(one) == {State.CURRENT} and not _mentions_action(module, one)
                for one in given
            ):
                return call if not any(_mentions_action(module, one) for one in given) else None
    return None


def _is_action(module: FileFacts, node: Node) -> bool:
    """Whether an expression may be an action, by its name, and nothing that outlasts a step."""
    named = bare(node)
    if isinstance(named, cst.Name) and _ACTION.fullmatch(named.value) is None:
        return False
    return not any(_OUTLASTS.fullmatch(name.value) for name in module.tree.within(node, cst.Name))


def _mentions_action(module: FileFacts, node: Node) -> bool:
    return any("action" in name.value for name in module.tree.within(node, cst.Name))


def _fix(module: FileFacts, use: Node, choice: cst.Call) -> ProposedFix | None:
    """Gives the policy the next state, where both states are plain names."""
    current = [arg.value for arg in choice.args if isinstance(arg.value, cst.Name)]
    following = {
        name.value
        for part in module.states.behind(use)
        for name in module.tree.within(part, cst.Name)
        if module.states.mentioned(name) == {State.NEXT}
    }
    if len(choice.args) != 1 or len(current) != 1 or len(following) != 1:
        return None
    (name,) = following
    return ProposedFix("choose the action from the next state", (replace(current[0], name),))
