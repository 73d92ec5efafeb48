"""TA614: a constant seed is set repeatedly, so all passes draw the same random numbers."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.core.protocol import Action
from ta_lint.facts import FileFacts, Kind, Suspicion
from ta_lint.facts.loops.loops import Loop
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.tree import Node, dotted

KEYWORDS = ("*seed*",)
AROUND = (("*backward", "forward", "__getitem__"),)

_SEEDS = regex(
    r"torch\.(manual_seed|random\.manual_seed|cuda\.manual_seed(_all)?|cuda\.random\.manual_seed(_all)?)|"
    r"random\.seed|numpy\.random\.seed|(transformers|accelerate)(\.\w+)*\.set_seed|lightning(\.\w+)*\.seed_everything"
)
_BUILDS = regex(
    r"_?(build|create|get|init|initiali[sz]e|load|make|new|prepare|reset|setup)(_\w*)?"
    r"(model|net|optim|agent|trainer)\w*|([A-Z]\w*)?(Agent|Model|Net|Network|Trainer)"
)
_RESTORES = regex(r"set_rng_state\w*|fork_rng|setstate|set_state|get_rng_state\w*|getstate|get_state")


def check(module: FileFacts) -> Iterator[Suspicion]:
    seen = set()
    for call in module.tree.all(cst.Call):
        if _SEEDS.fullmatch(module.qualified(call.func) or "") is None or not call.args:
            continue
        for place, seed in (call, call.args[0].value), *_helped(module, call):
            repeated = _repeated(module, place, seed)
            home = module.tree.home(place)
            restores = any(_RESTORES.fullmatch(name.value) for name in module.tree.within(home, cst.Name))
            if repeated is not None and not restores and place not in seen:
                seen.add(place)
                again, which = repeated
                message = f"`{module.code(place)}` repeats the same random numbers {again}: seed once, before"
                yield Suspicion(place, message, ((which, "what is repeated"),))


def _helped(module: FileFacts, call: cst.Call) -> Iterator[tuple[cst.Call, Node]]:
    """The calls of a function that seeds with its argument, each with that seed."""
    home, seed = module.tree.home(call), call.args[0].value
    parameter = module.kinds.origin(seed)
    if not isinstance(home, cst.FunctionDef) or not isinstance(parameter, cst.Param):
        return
    if module.tree.enclosing(call, cst.If, cst.For, cst.While, cst.Try) is not None:
        return
    for site in module.calls.sites(home):
        given = module.calls.arguments(site, home).get(parameter)
        if given is None and not any(arg.star for arg in site.args):
            given = parameter.default
        if given is not None and module.is_here(site):
            yield site, given


def _repeated(module: FileFacts, call: cst.Call, seed: Node) -> tuple[str, Node] | None:
    """The description and node of the place where a seed is repeatedly set to the same value."""
    home = module.tree.home(call)
    for loop in module.tree.loops(call):
        if _changes(module, seed, loop) or _is_sometimes(module, call, loop) or _starts_anew(module, loop):
            return None
        if {Action.BACKWARD, Action.STEP} <= module.order.actions(loop):
            return "in each pass of the training loop", loop
    klass = module.tree.enclosing(call, cst.ClassDef)
    if klass is None or not isinstance(home, cst.FunctionDef) or not _is_constant(module, klass, seed):
        return None
    if any(isinstance(above, (cst.If, cst.Try)) for above in module.tree.ancestors(call)):
        return None
    if home.name.value == "forward" and module.classes.derives(klass, "torch.nn.Module"):
        return "in each forward pass", home.name
    return ("for each item", home.name) if home.name.value == "__getitem__" else None


def _changes(module: FileFacts, seed: Node, loop: Loop) -> bool:
    return bool(module.tree.within(seed, cst.Call)) or module.loops.changes(seed, loop)


def _is_sometimes(module: FileFacts, call: cst.Call, loop: Loop) -> bool:
    """Whether the seed is set only in some passes: `if epoch == 0:`."""
    above = (
        a for a in module.tree.ancestors(call) if isinstance(a, cst.If) and module.tree.contains(loop, a)
    )
    return any(module.loops.changes(branch.test, loop) for branch in above)


def _starts_anew(module: FileFacts, loop: Loop) -> bool:
    """Whether a loop builds the model it trains, to compare seeds, folds or learning rates from equal starts."""
    tree = module.tree
    reached = module.loops.reach(loop)
    calls = [call for node in reached for call in tree.within(node, cst.Call)]
    if any(_builds(module, call) for call in calls):
        return True
    roots = (tree.within(step.subject, cst.Name)[:1] for step in module.order.events(Action.STEP))
    return any(
        tree.contains(loop, binding.node) and binding.how in ("assign", "unpack")
        for root in roots
        for name in root
        for binding in module.names.bindings(name)
    )


def _builds(module: FileFacts, call: cst.Call) -> bool:
    is_assigned = isinstance(module.tree.parent[call], cst.Assign)
    return is_assigned and (
        module.kind(call) in (Kind.OPTIMIZER, Kind.MODULE)
        or _BUILDS.fullmatch(called_name(call) or "") is not None
    )


def _is_constant(module: FileFacts, klass: cst.ClassDef, seed: Node) -> bool:
    """Whether the seed is a number, or an attribute that only `__init__` sets."""
    if module.number(seed) is not None:
        return True
    name = dotted(seed) or ""
    values = module.classes.attribute(klass, name.removeprefix("self.")) if name.startswith("self.") else []
    homes = [module.tree.home(value) for value in values]
    return len(homes) == 1 and isinstance(homes[0], cst.FunctionDef) and homes[0].name.value == "__init__"
