"""TA627: a loop assigns the loss to the name of the loss function, so the next pass calls a tensor."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Kind, Suspicion
from ta_lint.facts.values.names import Binding
from ta_lint.syntax.tree import dotted, is_name

KEYWORDS = (("for", "while", "self"),)
AROUND = ("*backward",)


def check(module: FileFacts) -> Iterator[Suspicion]:
    yield from _attributes_rebound(module)
    for assign in module.tree.all(cst.Assign):
        call, target = assign.value, assign.targets[0].target
        if len(assign.targets) > 1 or not isinstance(call, cst.Call) or not isinstance(target, cst.Name):
            continue
        if not call.args or not is_name(call.func, target.value) or not (loops := module.tree.loops(assign)):
            continue
        bindings = module.names.bindings(target)
        others = [one for one in bindings if one.node is not assign]
        if any(module.tree.contains(loops[0], one.node) for one in others) or module.loops.is_last_pass(
            assign, loops[0]
        ):
            continue
        if others and (_is_loss(module, target) or all(_is_criterion(module, one) for one in others)):
            message = f"the loss replaces the loss function `{target.value}`, so the next batch raises: use another name"
            yield Suspicion(call, message, ((loops[0], "the loop"),))


def _attributes_rebound(module: FileFacts) -> Iterator[Suspicion]:
    """Methods that assign `self.loss = self.loss(...)`, where all else that the class puts there is a loss function."""
    for klass in module.tree.all(cst.ClassDef):
        for name, assign in module.classes.assignments(klass):
            call, home = assign.value, module.tree.home(assign)
            if not isinstance(call, cst.Call) or dotted(call.func) != f"self.{name}" or not call.args:
                continue
            others = [value for value in module.classes.attribute(klass, name) if value is not call]
            is_first = isinstance(home, cst.FunctionDef) and home.name.value == "__init__"
            if others and not is_first and all(module.kind(one) is Kind.CRITERION for one in others):
                message = f"the loss replaces the loss function `self.{name}`, so the next call raises: use another name"
                yield Suspicion(call, message)


def _is_criterion(module: FileFacts, binding: Binding) -> bool:
    return binding.value is not None and module.kind(binding.value) is Kind.CRITERION


def _is_loss(module: FileFacts, name: cst.Name) -> bool:
    """Whether the value of a variable is back-propagated."""
    above = (module.tree.parent[mention] for mention in module.names.mentions(name))
    return any(isinstance(one, cst.Attribute) and one.attr.value == "backward" for one in above)
