"""Whether a function trains: whether it does, or may call what does, anything that a rule about a training asks for.

Its source decides, so that nothing is executed for it: it calls what trains, or a word in it names a function or class that does.
"""

import ast
import re
from functools import cache

from ta_lint.core.data import read
from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.values import Class, Function, Value

_WORD = re.compile(r"[A-Za-z_]\w*")
_BACKWARD = b".backward("


def trains(machine: Machine, value: Value) -> bool:
    """Whether a function, or a method of a class, trains."""
    if isinstance(value, Function):
        return _function(machine, value)
    if isinstance(value, Class) and value.node is not None:
        return any(_function(machine, one) for one in value.fields.values() if isinstance(one, Function))
    return False


def _function(machine: Machine, function: Function) -> bool:
    known: dict[object, bool] = machine.program.trains
    if function.node not in known:
        known[function.node] = False  # what calls itself acts if something else in it does
        text = machine.program.code(function.frame.file, function.node)
        known[function.node] = _actions().search(text) is not None or any(
            trains(machine, one)
            for word in set(_WORD.findall(text))
            if (one := _named(function, word)) is not None
        )
    return known[function.node]


def goes_back(machine: Machine, path: str, body: list[ast.stmt]) -> bool:
    """Whether these statements of a file go backward."""
    return any(machine.program.says(path, one, _BACKWARD) for one in body)


def actions_in(text: str) -> int:
    """How many of torch's functions that train are called in a text."""
    return len(set(_actions().findall(text)))


def averages(machine: Machine, function: Function) -> bool:
    """Whether a function goes over parameters and computes no loss: it may keep averages of them from call to call."""
    text = machine.program.code(function.frame.file, function.node)
    return "parameters(" in text and "backward" not in text


def _named(function: Function, word: str) -> Value | None:
    """What a word means in a function: a method of its class, or a name around it."""
    if function.owner is not None and (found := function.owner.find(word)) is not None:
        return found
    holder = function.frame.holder(word)
    return None if holder is None else holder.names.get(word)


@cache
def _actions() -> re.Pattern[str]:
    """A call of one of the functions that train, wherever it stands."""
    names = read("names.toml", dict[str, dict[str, str]])["torch"]["actions"].split()
    return re.compile(rf"\b(?:{'|'.join(names)})\s*\(|\b(?:optim\.|autograd\.grad\b)")
