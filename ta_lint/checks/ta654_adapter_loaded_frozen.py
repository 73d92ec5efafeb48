"""TA654: an adapter is trained although PEFT loads it frozen by default."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.edits import ProposedFix, set_argument
from ta_lint.syntax.tree import Node, argument, is_name

KEYWORDS = ("from_pretrained", "*Peft*")
AROUND = (("*Trainer", "*optim*"),)

_EVALUATES = regex(r"(?i)(?<![a-z])(eval|infer|predict|test)")
_LOADS = regex(r"peft\.(\w+\.)*(Auto)?PeftModel\w*\.from_pretrained")


def check(module: FileFacts) -> Iterator[Suspicion]:
    loaded = [call for call in module.tree.all(cst.Call) if _is_frozen(module, call)]
    if not loaded:
        return
    trained = {made: place for facts in _program(module) for made, place in _trained(facts) if made in loaded}
    for call in loaded:
        if call in trained and not module.adapters.thaws and not _is_to_evaluate(module, call):
            message = "the adapter is loaded frozen and never learns: set `is_trainable=True`"
            edit = set_argument(call, "is_trainable", "True", argument(call, "is_trainable"))
            fix = ProposedFix("load it to train", (edit,)) if edit is not None else None
            yield Suspicion(call, message, ((trained[call], "trained here"),), fix=fix)


def _is_to_evaluate(module: FileFacts, call: cst.Call) -> bool:
    """Whether names say that an adapter is loaded to evaluate: of conditions around the load, or of what its function takes."""
    function = module.tree.home(call)
    if _speaks_of_evaluation(module, call):
        return True
    if not isinstance(function, cst.FunctionDef):
        return False
    sites = module.calls.sites(function)
    takes = any(_EVALUATES.search(param.name.value) for param in function.params.params)
    return takes or (bool(sites) and all(_speaks_of_evaluation(module, site) for site in sites))


def _speaks_of_evaluation(module: FileFacts, node: Node) -> bool:
    """Whether a condition around a node names what evaluates: `if test_file:`."""
    tests = [
        above.test
        for above in module.tree.ancestors(node)
        if isinstance(above, cst.If) and module.tree.contains(above.body, node)
    ]
    return any(_EVALUATES.search(name.value) for test in tests for name in module.tree.within(test, cst.Name))


def _is_frozen(module: FileFacts, call: cst.Call) -> bool:
    """Whether a call certainly loads an adapter that does not train."""
    name = module.qualified(call.func) or ""
    if _LOADS.fullmatch(name) is None:
        return False
    given = module.flow.argument(call, "is_trainable", 2 if ".AutoPeft" in name else 3)
    return all(not one.path and module.boolean(one.node) is False for one in given.origins)


def _program(module: FileFacts) -> list[FileFacts]:
    """This file, and those of its program that train."""
    return [module, *map(module.beside, module.names.beside("train", "optim") or ())]


def _trained(module: FileFacts) -> Iterator[tuple[cst.Call, Node]]:
    """The calls that created the models which a file trains, each with its trainer or optimizer."""
    for trainer in module.trainers.made:
        uses = module.whereabouts.uses(trainer)
        if module.trainers.given(trainer, "peft_config").origins or (
            uses is not None and "train" not in uses
        ):
            continue
        model = module.trainers.given(trainer, "model")
        yield from _makers(module, [one.node for one in model.origins if not one.path], trainer)
    for optimizer in module.parameters.optimizers:
        for given in optimizer.models:
            model = module.flow.of(given)
            yield from _makers(module, [one.node for one in model.origins if not one.path], optimizer.call)
            klass = module.kinds.class_of(given)
            kept = module.tree.within(klass, cst.Call) if klass is not None else ()
            yield from ((made, optimizer.call) for made in kept if _is_saved(module, made))


def _is_saved(module: FileFacts, loaded: cst.Call) -> bool:
    """Whether the file saves an adapter that it loads, as it does after a training."""
    saves = (call for call in module.tree.all(cst.Call) if called_name(call) == "save_pretrained")
    return _is_frozen(module, loaded) and any(
        origin.node is loaded and not origin.path
        for call in saves
        if isinstance(call.func, cst.Attribute)
        for origin in module.flow.of(call.func.value).origins
    )


def _makers(module: FileFacts, models: list[Node], place: Node) -> Iterator[tuple[cst.Call, Node]]:
    found = [made for model in models if (made := module.kinds.construction(model)) is not None]
    renews = any(module.adapters.wraps(made) and _runs_always(module, made, place) for made in found)
    for made in found:
        if not (renews and _is_into_global(module, made)):
            yield made, place


def _runs_always(module: FileFacts, call: cst.Call, place: Node) -> bool:
    """Whether a call is made under no condition in the function that trains."""
    home, line = module.tree.home(place), module.tree.parent[module.tree.statement(call)]
    return isinstance(home, cst.FunctionDef) and module.tree.parent[line] is home.body


def _is_into_global(module: FileFacts, made: cst.Call) -> bool:
    """Whether a function of this file puts what it makes into a variable of the file."""
    assign = module.tree.parent[made]
    target = assign.targets[0].target if isinstance(assign, cst.Assign) else None
    names = [item.name for line in module.tree.own(module.tree.home(made), cst.Global) for item in line.names]
    return isinstance(target, cst.Name) and any(is_name(name, target.value) for name in names)
