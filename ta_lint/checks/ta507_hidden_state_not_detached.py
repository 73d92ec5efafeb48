"""TA507: a recurrent state is carried from one training step into the next with its graph."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.loops.loops import Loop
from ta_lint.syntax.edits import ProposedFix, insert_line_after
from ta_lint.syntax.layout import plain

KEYWORDS = ("*backward",)

_DETACHES = regex(r"detach|repackage|\.data\b|truncat")
_RECURRENT = regex(r"torch\.nn\.(RNN|LSTM|GRU)(Cell)?")


def check(module: FileFacts) -> Iterator[Suspicion]:
    if module.loops.framework is not None:
        return
    for statement in module.tree.all(cst.Assign):
        call, loops = statement.value, module.tree.loops(statement)
        if not isinstance(call, cst.Call) or not loops or not module.calls_in_loop.acts_as_model(call.func):
            continue
        backwards = [
            found
            for found in module.loops.backwards(loops[0].body)
            if module.tree.loops(found)[0] is loops[0]
        ]
        if not backwards or module.recording.records(call) is False or _is_detached_inside(module, call):
            continue
        for name in _carried(module, statement, call, loops[0]):
            message = f"`{name.value}` carries the graph of all earlier steps, so memory grows: detach it after each step"
            related = ((backwards[0], "this backward pass goes through all earlier steps, or fails"),)
            yield Suspicion(call, message, related=related, fix=_fix(module, name, call, backwards[-1]))
            break


def _carried(module: FileFacts, statement: cst.Assign, call: cst.Call, loop: Loop) -> Iterator[cst.Name]:
    """The variables that a call takes and sets again, and that nothing else in the pass sets or detaches."""
    targets = {name.value for item in statement.targets for name in module.tree.within(item.target, cst.Name)}
    text = plain(loop.body)
    for arg in call.args:
        for name in module.tree.within(arg.value, cst.Name):
            if name.value not in targets or not _is_handed_on(module, name, arg):
                continue
            bindings = module.names.bindings(name)
            inside = [b for b in bindings if module.tree.contains(loop, b.node)]
            before = [b for b in bindings if b not in inside]
            others = [b for b in inside if b.node is not statement]
            if before and not others and not _DETACHES.search(text):
                yield name


def _is_handed_on(module: FileFacts, name: cst.Name, arg: cst.Arg) -> bool:
    """Whether a variable is passed unchanged, alone or in a tuple: `hidden`, `(hidden, cell)`."""
    above = module.tree.parent[name]
    return arg.value is name or isinstance(above, cst.Element)


def _is_detached_inside(module: FileFacts, call: cst.Call) -> bool:
    """Whether the model's class detaches its state itself."""
    made = module.kinds.construction(call.func)
    klass = module.classes.local(made.func) if made is not None else None
    return klass is not None and _DETACHES.search(plain(klass)) is not None


def _fix(module: FileFacts, name: cst.Name, call: cst.Call, backward: cst.Call) -> ProposedFix | None:
    """`detach()` after the backward pass, of a state that is certainly a tensor or a tuple of tensors."""
    made = module.kinds.construction(call.func)
    kind = _RECURRENT.fullmatch(module.qualified(made.func) or "") if made is not None else None
    same: bool = module.tree.block(backward) is module.tree.block(call)
    if kind is None or not same or module.tree.before(backward, call):
        return None
    code = f"{name.value} = {name.value}.detach()"
    if kind[1] == "LSTM":
        if isinstance(module.tree.parent[name], cst.Element):
            return None
        code = f"{name.value} = tuple(state.detach() for state in {name.value})"
    return ProposedFix("detach the state", (insert_line_after(module.tree, backward, code),))
