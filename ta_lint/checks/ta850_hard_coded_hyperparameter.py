"""TA850: a script hard-codes its training settings, or never chooses them."""

import re
from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.words import words
from ta_lint.syntax.tree import Node, argument, dotted

_OPTIMIZES = "optim"  # without an optimizer of torch, others chose the settings
KEYWORDS = ()
AROUND = (_OPTIMIZES,)

_OPTIMIZER = regex(r"torch\.optim\.(\w+)")
_RATE = "lr"

# Methods for which a learning rate of 1 is standard, or that find their own.
_WITHOUT_A_CHOICE = frozenset({"Adadelta", "Adafactor", "LBFGS", "Rprop"})

# Code that sets the rate later, or overrides the file's constants by name.
_SETS_THE_RATE = regex(r"OneCycleLR|CyclicLR|\[['\"]lr['\"]\]\s*[-+*/]?=[^=]")
_REWRITES = regex(r"\bexec\(|\bglobals\(\)|\bsetattr\(|@\w+\.config\b|# *@param|#.*\bpapermill\b")

# Settings of an evaluation do not affect what is learned.
_OF_EVALUATION = regex(r"eval|test|val(id|$|_)|infer", re.IGNORECASE)


def check(module: FileFacts) -> Iterator[Suspicion]:
    script = module.script if _has_a_constant(module) else ()
    optimizes = any(_OPTIMIZES in words(file.tree) for file in script)
    if optimizes and any(file.scripts.entry is not None for file in script):
        yield from _constants(module, script)
    if _OPTIMIZES not in words(module.tree):
        return
    optimizers = [(call, match[1]) for call, match in module.calls_matching(_OPTIMIZER)]
    if _SETS_THE_RATE.search(module.source.text) is None:
        for call, name in optimizers:
            if name not in _WITHOUT_A_CHOICE and _leaves_the_rate(call) and not _is_wrapped(module, call):
                message = f"`{name}` uses the default learning rate, which nobody chose: set `lr`"
                yield Suspicion(call, message)


def _has_a_constant(module: FileFacts) -> bool:
    """Whether a statement at the top assigns a number."""
    return any(
        module.number(statement.value) is not None
        for statement in module.tree.all(cst.Assign)
        if module.tree.is_at_top(statement)
    )


def _constants(module: FileFacts, script: tuple[FileFacts, ...]) -> Iterator[Suspicion]:
    """One suspicion for all constants of the file that reach an optimizer, a loader or the loops around a step."""
    if _REWRITES.search(module.source.text):
        return
    uses: dict[Node, Node] = {}
    for value in (value for file in script for value in _settings(file)):
        for use in _names_behind(module, value):
            constant = _constant(module, use)
            if constant is not None and module.is_here(constant):
                uses.setdefault(constant, use)
    if not uses:
        return
    constants = sorted(uses, key=module.tree.order)
    named = ", ".join(f"`{dotted(constant)}`" for constant in constants)
    message = f"other hyperparameters need an edit of this file: make arguments of {named}"
    related = tuple((uses[constant], f"`{dotted(constant)}` is used here") for constant in constants)
    yield Suspicion(constants[0], message, related=related)


def _settings(module: FileFacts) -> Iterator[Node]:
    """The expressions of a file that configure a training."""
    for call, _ in module.calls_matching(_OPTIMIZER):
        yield from (arg.value for arg in call.args[1:])
    for loader in module.loaders.all:
        if (batch_size := loader.given("batch_size")) is not None:
            yield batch_size
    for training in module.scripts.training:
        for loop in module.scripts.around(training):
            if isinstance(loop, cst.While):
                yield loop.test
            else:
                ranges = module.tree.within(loop.iter, cst.Call)
                yield from (arg.value for call in ranges if _counts(module, call) for arg in call.args)


def _counts(module: FileFacts, call: cst.Call) -> bool:
    called = module.qualified(call.func) or ""
    return called == "builtins.range" or called.endswith("trange")


def _names_behind(module: FileFacts, value: Node) -> list[cst.Name]:
    """The names in an expression; for a parameter, those in the arguments of its function's calls."""
    found: list[cst.Name] = []
    for name in module.tree.within(value, cst.Name):
        origin = module.kinds.origin(name)
        given = module.calls.given(origin) or [] if isinstance(origin, cst.Param) else []
        found += [inner for part in given for inner in module.tree.within(part, cst.Name)] or [name]
    return found


def _constant(module: FileFacts, name: cst.Name) -> Node | None:
    """The target of the only assignment to a module-level name, if its value is a number."""
    bindings = module.names.bindings(name) if not _OF_EVALUATION.search(name.value) else []
    if len(bindings) != 1 or bindings[0].how != "assign" or not isinstance(bindings[0].node, cst.Assign):
        return None
    statement = bindings[0].node
    is_global = isinstance(module.tree.home(statement), cst.Module)
    if not is_global or len(statement.targets) != 1 or module.number(statement.value) is None:
        return None
    return statement.targets[0].target


def _leaves_the_rate(call: cst.Call) -> bool:
    """Whether an optimizer gets a model's parameters without any learning rate."""
    if argument(call, _RATE, 1) is not None or not call.args:
        return False
    parameters = call.args[0].value
    return (
        isinstance(parameters, cst.Call)
        and isinstance(parameters.func, cst.Attribute)
        and parameters.func.attr.value == "parameters"
    )


def _is_wrapped(module: FileFacts, call: cst.Call) -> bool:
    """Whether an optimizer is passed directly to a call that may set its rate: `ScheduledOptim(Adam(...), ...)`."""
    return isinstance(module.tree.parent[call], cst.Arg)
