"""Assignment to names, attributes, items, and to several of them at once."""

import ast

from ta_lint.dryrun.machine.asked import BACKWARD, asked_of_variable
from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.calling import call, native
from ta_lint.dryrun.machine.frame import Frame
from ta_lint.dryrun.machine.iteration import unpacked
from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.machine.objects import set_attribute, set_item
from ta_lint.dryrun.machine.tables import evaluate
from ta_lint.dryrun.sources import FromFile
from ta_lint.dryrun.values import (
    NONE,
    REST,
    Class,
    External,
    Function,
    Known,
    Module,
    Native,
    Object,
    Sequence,
    Table,
    Unknown,
    Value,
    options,
)


def assign(
    machine: Machine, target: ast.expr, value: Value, frame: Frame, *, called: ast.expr | None = None
) -> None:
    """`target = value`; `called` is what is called for the value, if a call gives it."""
    value = value if frame.site is not None else _given(machine, target, value, frame, called=called)
    if isinstance(called, (ast.Name, ast.Attribute)) and _is_same(called, target):
        machine.emit("rebind", called, evaluate(machine, called, frame), new=value)
    if isinstance(target, ast.Name):
        holder = frame.outside.get(target.id, frame)
        _follow(machine, holder.names.get(target.id), value, target, called)
        machine.state.write(holder.names, target.id, value)
    elif isinstance(target, ast.Attribute):
        owner = evaluate(machine, target.value, frame)
        if isinstance(owner, Object) and owner.cls.find("__attached__") is None:
            _follow(machine, owner.fields.get(target.attr), value, target, called)
        set_attribute(machine, owner, target.attr, value, target)
    elif isinstance(target, ast.Subscript):
        holder_, key = evaluate(machine, target.value, frame), evaluate(machine, target.slice, frame)
        set_item(machine, holder_, key, value, target)
        is_view = isinstance(holder_, Object) and holder_.cls.find("__viewed__") is not None
        if is_view and isinstance(target.value, ast.Subscript):  # `tensor[i][j] = value`
            assign(machine, target.value, holder_, frame)
    elif isinstance(target, (ast.Tuple, ast.List)):
        stars = [index for index, part in enumerate(target.elts) if isinstance(part, ast.Starred)]
        parts = unpacked(machine, value, len(target.elts), stars[0] if stars else None, target)
        for part, one in zip(target.elts, parts, strict=True):
            inner = part.value if isinstance(part, ast.Starred) else part
            assign(machine, inner, one, frame, called=called)


def _follow(
    machine: Machine, old: Value | None, new: Value, target: ast.expr, called: ast.expr | None
) -> None:
    """A variable gets what a call gives, instead of something that may want to know."""
    if called is None or not isinstance(old, Object) or old is new:
        return
    if isinstance(follows := old.cls.find("__followed__"), Native):
        native(follows, Call(machine, target, [old, new]))


def _is_same(called: ast.expr, target: ast.expr) -> bool:
    """Whether one is the other: the value of a call replaces what was called."""
    if isinstance(called, ast.Name):
        return isinstance(target, ast.Name) and target.id == called.id
    if not isinstance(called, ast.Attribute) or not isinstance(target, ast.Attribute):
        return False
    return called.attr == target.attr and _is_same(called.value, target.value)


def _given(
    machine: Machine, target: ast.expr, value: Value, frame: Frame, *, called: ast.expr | None
) -> Value:
    """What code out of sight gives, as far as its name and what is asked of it say so: the same under each name unless a call gives a new
    one.
    """
    if machine.outline or not isinstance(target, (ast.Name, ast.Attribute)):
        return value
    may_be_loss = machine.program.may_be_loss(value, frame.module)
    asked = (
        asked_of_variable(machine, frame, target)
        if may_be_loss or isinstance(value, Unknown)
        else frozenset()
    )
    if may_be_loss and BACKWARD in asked:
        return machine.program.loss(machine, value, target)  # type: ignore[no-any-return]
    if not isinstance(value, Unknown):
        return value
    if value.type is not None:
        is_read = isinstance(value.source, FromFile)
        whole = machine.program.guess(machine, "", "", asked) if is_read else None  # a model, from a file
        if isinstance(whole, Object):
            whole.made = machine.place(target)
        return whole or value
    name = target.id if isinstance(target, ast.Name) else target.attr
    key = machine.entry, name
    if called is not None or key not in machine.guessed:
        imported = isinstance(called, ast.Name) and isinstance(evaluate(machine, called, frame), External)
        machine.guessed[key] = (
            machine.program.given(machine, name, asked, value.got, imported=imported) or NONE
        )
    else:
        machine.program.reassigned(machine, machine.guessed[key])
    guessed = machine.guessed[key]
    return value if guessed == NONE else guessed


def delete(machine: Machine, target: ast.expr, frame: Frame) -> None:
    """`del target`."""
    if isinstance(target, ast.Name):
        machine.state.remove(frame.outside.get(target.id, frame).names, target.id)
    elif isinstance(target, ast.Attribute):
        for one in options(evaluate(machine, target.value, frame)):
            if target.attr == "grad":
                set_attribute(machine, one, "grad", NONE, target)
            elif isinstance(one, Object) and not isinstance(one, (Sequence, Table)):
                if isinstance(one, (Class, Module, Function)):
                    machine.memo.patched(target.attr)
                machine.state.remove(one.fields, target.attr)
    elif isinstance(target, ast.Subscript):
        _delete_item(
            machine, evaluate(machine, target.value, frame), evaluate(machine, target.slice, frame), target
        )
    elif isinstance(target, (ast.Tuple, ast.List)):
        for part in target.elts:
            delete(machine, part, frame)


def _delete_item(machine: Machine, holder: Value, key: Value, node: ast.AST) -> None:
    """`del holder[key]`."""
    if isinstance(holder, (Sequence, Table)):
        machine.emit("empty", node, holder)
    if isinstance(holder, Table):
        machine.state.remove(holder.fields, key.value if isinstance(key, Known) else REST)
    elif isinstance(holder, Object) and (removes := holder.cls.find("__delitem__")) is not None:
        call(machine, removes, [holder, key], {}, node)
