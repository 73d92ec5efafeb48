"""TA540: an episode cut off by its time limit is trained on as one that ended."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.discounting import CASTS, alternatives, bare
from ta_lint.syntax.tree import Node, literal_text

KEYWORDS = ("step", ("*trunc*", "*done*", "*term*"))
AROUND = (("*gamma*", "*discount*", "0.9"),)

# A program with one of these words may tell the time limit apart in its own way.
_TELLS_APART = tuple(
    "TimeLimit _max_episode_steps final_observation final_obs terminal_observation bad_masks bad_mask time_outs "
    "handle_timeout_termination".split()
)
_LOGS = regex(r"print|log\w*|info|debug|write|add_scalar|reset|format|len|range|sum|any|all|zip|enumerate")
_ENVIRONMENTS = ("gym.make", "gymnasium.make")
_DEPTH = 3


def check(module: FileFacts) -> Iterator[Suspicion]:
    for call in module.tree.all(cst.Call):
        if called_name(call) != "step":
            continue
        flag = _flag(module, call)
        if flag is None or module.is_nearby(*_TELLS_APART):
            continue
        mask = _mask(module)
        if mask is not None:
            related = ((mask, "what it masks"),) if module.is_here(mask) else ()
            message = "states cut off by a time limit count as worth zero: mask by `terminated` only"
            yield Suspicion(flag, message, related, is_note=_hardly_reaches_limit(module))


def _hardly_reaches_limit(module: FileFacts) -> bool:
    """Whether all environments of a file are games of Atari, whose limit is half an hour of play."""
    made = module.calls_to(*_ENVIRONMENTS)
    names = [literal_text(call.args[0].value) or "" for call in made if call.args]
    return bool(names) and all("NoFrameskip" in name or name.startswith("ALE/") for name in names)


# -- the flag -------------------------------------------------------------------------------------------------


def _flag(module: FileFacts, step: cst.Call) -> Node | None:
    """The joined flag of an environment's step; None if the program also uses one of the two flags alone."""
    target = _unpacked(module, step)
    names = [element.value for element in target.elements] if isinstance(target, cst.Tuple) else []
    if len(names) == 4:
        flag = names[2]
        limited = bool(module.calls_to(*_ENVIRONMENTS)) and not module.is_nearby("max_episode_steps")
        return flag if limited and _is_target_kept(module, flag, _DEPTH) else None
    if len(names) != 5:
        return None
    terminated, truncated = names[2:4]
    if not isinstance(terminated, cst.Name) or not isinstance(truncated, cst.Name):
        return None
    both = terminated.value, truncated.value
    joined = []
    for name in (terminated, truncated):
        for mention in module.names.mentions(name):
            if isinstance(module.tree.parent[mention], (cst.Element, cst.Param)):
                above = module.tree.parent[module.tree.parent[mention]]
                if isinstance(module.tree.parent[above], cst.AssignTarget):
                    continue  # the names of a step
            if isinstance(module.tree.parent[mention], cst.AssignTarget):
                continue
            expression = _join_of(module, mention, both)
            if expression is None and not _is_logged(module, mention):
                return None
            if expression is not None and _is_kept(module, expression):
                joined.append(expression)
    own = [expression for expression in joined if module.tree.before(step, expression)]
    return next(iter([*own, *joined]), None)


def _unpacked(module: FileFacts, step: cst.Call) -> Node | None:
    """What the values of a step are assigned to, at once or from a variable: `result = env.step(a)`; `s, r, d, t, i = result`."""
    above = module.tree.parent[step]
    target = above.targets[0].target if isinstance(above, cst.Assign) and above.value is step else None
    if not isinstance(target, cst.Name):
        return target
    found = [
        assign.targets[0].target
        for mention in module.names.mentions(target)
        if isinstance(assign := module.tree.parent[mention], cst.Assign) and assign.value is mention
    ]
    return next((one for one in found if isinstance(one, cst.Tuple) and len(one.elements) == 5), None)


def _join_of(module: FileFacts, mention: cst.Name, both: tuple[str, str]) -> Node | None:
    """`terminated or truncated`, if a mention is one side of it."""
    for above in module.tree.ancestors(mention):
        if isinstance(above, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
            return None
        sides = [bare(side) for side in alternatives(above)]
        if len(sides) == 2 and all(isinstance(side, cst.Name) and side.value in both for side in sides):
            return above
    return None


def _is_logged(module: FileFacts, mention: Node) -> bool:
    call = module.tree.enclosing(mention, cst.Call)
    return call is not None and _LOGS.fullmatch(called_name(call) or "") is not None


def _is_kept(module: FileFacts, node: Node, depth: int = _DEPTH) -> bool:
    """Whether a flag, in any form, is passed on, put into a collection, or masks a product."""
    while True:
        above = module.tree.parent[node]
        match above:
            case cst.Arg():
                call = module.tree.parent[above]
                name = called_name(call) if isinstance(call, cst.Call) else None
                if name not in CASTS:
                    return name is not None and not _LOGS.fullmatch(name)
                node = call
            case cst.Element() | cst.DictElement():
                return _is_kept_in(module, module.tree.parent[above])
            case cst.Attribute() if above.attr.value in CASTS:
                node = module.tree.parent[above]
            case cst.UnaryOperation() | cst.IfExp():
                node = above
            case cst.BinaryOperation() if isinstance(above.operator, cst.Subtract):
                node = above
            case cst.BinaryOperation():
                return isinstance(above.operator, cst.Multiply) and not isinstance(node, cst.Name)
            case cst.Assign() if above.value is node:
                return any(_is_target_kept(module, each.target, depth - 1) for each in above.targets)
            case _:
                return False


def _is_kept_in(module: FileFacts, collection: Node) -> bool:
    """Whether a collection with the flag is passed on or stored, and not returned or unpacked to names."""
    above = module.tree.parent[collection]
    return not isinstance(above, (cst.Return, cst.AssignTarget, cst.Comparison, cst.Yield))


def _is_target_kept(module: FileFacts, target: Node, depth: int) -> bool:
    if isinstance(target, cst.Subscript):
        return True
    if not isinstance(target, cst.Name) or depth <= 0:
        return False
    return any(
        _is_kept(module, mention, depth) for mention in module.names.mentions(target) if mention is not target
    )


# -- the bootstrap --------------------------------------------------------------------------------------------


def _mask(module: FileFacts) -> Node | None:
    """The flag that masks the bootstrap, in this file or, if it has no such sum, in another one of the program."""
    found = _mask_in(module)
    if not module.discounting.sums:
        for root in module.names.beside("gamma", "GAMMA", "discount", "discount_factor", "gammas") or ():
            found = _mask_in(module.beside(root))
            if found is not None:
                break
    return found


def _mask_in(module: FileFacts) -> Node | None:
    for one in module.discounting.sums:
        if not one.is_plain or module.discounting.adds_up_from_zero(one):
            continue
        for end in module.discounting.ends(one):
            if module.discounting.is_end(end):
                return end
    return module.discounting.stored_end()
