"""TA613: an evaluation runs without `no_grad`, so every forward pass records a graph."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.core.protocol import Action
from ta_lint.facts import FileFacts, Kind, Suspicion
from ta_lint.facts.loops.evaluations import Evaluation
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.edits import ProposedFix, insert_line_before
from ta_lint.syntax.tree import Node, attribute_of_self, dotted, is_name

# Methods of modules that run nothing.
_HANDLES = frozenset(
    "apply cpu cuda eval get half load_state_dict parameters requires_grad_ state_dict to train type".split()
)

# Methods that use a model, and those that train it.
_INFERS = frozenset({"generate", "infer", "inference", "predict", "sample", "synthesize"})
_TRAINS = regex(r"^forward$|train|loss")

KEYWORDS = (("__init__", "eval", "train"),)
AROUND = (("eval", "train"), ("eval", "False"))


def check(module: FileFacts) -> Iterator[Suspicion]:
    yield from _held_by_objects(module)
    if Action.EVAL not in module.evaluations.modes:
        return
    yield from _beside_quiet_sibling(module)
    if module.loops.framework is not None or module.recording.freezes(module.tree.root):
        return
    seen: set[Node] = set()
    for evaluation in module.evaluations.all:
        mode = module.evaluations.mode(evaluation)
        if (
            mode is None
            or mode[0] is not Action.EVAL
            or module.recording.records(evaluation.call) is not True
        ):
            continue
        if not module.tree.contains(module.tree.home(mode[1]), evaluation.call):
            continue
        if any(map(module.recording.freezes, module.recording.files_around(evaluation.call)[1:])):
            continue
        if _is_handed_out(module, evaluation):
            continue
        message = f"`{module.code(evaluation.call)}` runs with gradients that nobody uses: put it under `torch.no_grad()`"
        related = ((mode[1], "the model is put into evaluation mode here"),)
        seen.add(evaluation.call)
        yield Suspicion(evaluation.call, message, related=related, fix=_fix(module, evaluation.call))
    yield from _own_inference(module, seen)


def _held_by_objects(module: FileFacts) -> Iterator[Suspicion]:
    """Objects that are made with a model in evaluation mode and run it, in a file that trains nothing."""
    if module.evaluations.goes_back([module.tree.root]) or module.loops.framework is not None:
        return
    for klass in module.classes.all():
        methods = module.classes.methods(klass)
        init = methods.get("__init__")
        if init is None or not all(is_name(base.value, "object") for base in klass.bases):
            continue  # its base may differentiate, as attacks do
        if module.evaluations.trains(klass.body):
            continue
        for name, assign in module.classes.assignments(klass):
            param = module.kinds.origin(assign.value) if assign.value is not None else None
            if not isinstance(param, cst.Param) or module.tree.home(assign) is not init:
                continue
            runs = _runs_of(module, name, methods)
            switches = _switches(module, init, param) if runs else []
            if switches:
                message = f"`{module.code(runs[0])}` runs with gradients that nobody uses: put it under `torch.no_grad()`"
                home = module.tree.home(runs[0])
                related = (
                    (switches[0], "the model is put into evaluation mode here"),
                    (home, "nothing goes back here"),
                )
                yield Suspicion(runs[0], message, related=related)


def _runs_of(module: FileFacts, name: str, methods: dict[str, cst.FunctionDef]) -> list[cst.Call]:
    """The calls that run a model of an object, or a part of it, and record: `self.model(x)`, `self.model.encoder(x)`.

    A call whose output goes nowhere, as one that warms up, is made once.
    """
    return [
        call
        for method in methods.values()
        for call in module.tree.own(method, cst.Call)
        if call.args
        and f"{dotted(call.func)}.".startswith(f"self.{name}.")
        and called_name(call) not in _HANDLES
        and not isinstance(module.tree.parent[call], cst.Expr)
        and module.recording.records(call) is True
    ]


def _switches(module: FileFacts, init: cst.FunctionDef, param: cst.Param) -> list[cst.Call]:
    """The calls of `eval()` on the models that all objects of a class are made with; empty if one is in another mode."""
    found: list[cst.Call] = []
    for site in module.calls_in_loop.sites(init):
        given = module.calls.arguments(site, init).get(param)
        models = module.flow.of(given).aliases if given is not None else ()
        calls = [
            call
            for model in models
            if isinstance(model, cst.Name)
            for call in module.tree.own(module.tree.home(model), cst.Call)
            if isinstance(call.func, cst.Attribute) and is_name(call.func.value, model.value)
        ]
        switches = [call for call in calls if called_name(call) == "eval" and not call.args]
        if not switches or any(called_name(call) == "train" for call in calls):
            return []
        found += switches[:1]
    return found


def _beside_quiet_sibling(module: FileFacts) -> Iterator[Suspicion]:
    """Methods such as `inference` that record, where the class has `inference_batch` under `no_grad` and trains through neither."""
    for klass in module.classes.all():
        methods = module.classes.methods(klass)
        for name in sorted(_INFERS & methods.keys()) if "forward" in methods else ():
            quiet = (
                sibling
                for other, sibling in methods.items()
                if other.startswith(f"{name}_")
                and sibling.decorators
                and _is_quiet(module, sibling.body.body[-1])
            )
            sibling, method = next(quiet, None), methods[name]
            runs = _parts_run(module, method) if sibling is not None and not method.decorators else []
            if not runs or sibling is None or any(module.recording.around(call) is not None for call in runs):
                continue
            if module.evaluations.trains(method.body) or _is_trained_through(module, method):
                continue
            message = f"`{module.code(runs[0])}` runs with gradients that nobody uses: put it under `torch.no_grad()`"
            related = ((method, "this records"), (sibling, f"`{sibling.name.value}` does not"))
            yield Suspicion(runs[0], message, related=related, fix=_fix(module, runs[0]))


def _is_quiet(module: FileFacts, node: Node) -> bool:
    decision = module.recording.around(node)
    return decision is not None and decision.records is False


def _parts_run(module: FileFacts, method: cst.FunctionDef) -> list[cst.Call]:
    """The calls of parts of a module in one of its methods."""
    return [
        call
        for call in module.tree.own(method, cst.Call)
        if attribute_of_self(call.func) is not None and module.kind(call.func) is Kind.MODULE
    ]


def _is_trained_through(module: FileFacts, method: cst.FunctionDef) -> bool:
    """Whether a method is called where something trains, or by `forward` or a step of training."""
    homes = [module.tree.home(site) for site in module.calls_in_loop.sites(method)]
    return any(
        isinstance(home, cst.FunctionDef)
        and (_TRAINS.search(home.name.value) is not None or module.evaluations.trains(home.body))
        for home in homes
    )


def _own_inference(module: FileFacts, seen: set[Node]) -> Iterator[Suspicion]:
    """Methods in which a module puts itself into evaluation mode and runs itself: nothing trains through these."""
    for switch in module.tree.all(cst.Call):
        if called_name(switch) != "eval" or not _is_self(module, switch.func):
            continue
        method = module.tree.home(switch)
        if not isinstance(method, cst.FunctionDef) or module.evaluations.trains(method.body):
            continue
        runs = [
            call
            for call in module.tree.own(method, cst.Call)
            if module.tree.before(switch, call)
            and (
                is_name(call.func, "self") or (called_name(call) == "forward" and _is_self(module, call.func))
            )
        ]
        if runs and runs[0] not in seen and module.recording.records(runs[0]) is True:
            message = f"`{module.code(runs[0])}` runs with gradients that nobody uses: put it under `torch.no_grad()`"
            related = ((switch, "the module puts itself into evaluation mode here"),)
            yield Suspicion(runs[0], message, related=related, fix=_fix(module, runs[0]))


def _is_self(module: FileFacts, called: Node) -> bool:
    """Whether code calls a method of the module that it is in."""
    if not isinstance(called, cst.Attribute) or not is_name(called.value, "self"):
        return False
    klass = module.tree.enclosing(called, cst.ClassDef)
    return klass is not None and module.classes.derives(klass, "torch.nn.Module")


def _is_handed_out(module: FileFacts, evaluation: Evaluation) -> bool:
    """Whether another function returns the evaluating one, for a caller that may turn recording off."""
    function = module.tree.home(evaluation.call)
    if not isinstance(function, cst.FunctionDef):
        return False
    maker = module.tree.home(function)
    return isinstance(maker, cst.FunctionDef) and any(
        isinstance(found.value, cst.Name) and found.value.value == function.name.value
        for found in module.tree.own(maker, cst.Return)
    )


def _fix(module: FileFacts, call: cst.Call) -> ProposedFix | None:
    """`@torch.no_grad()` over a function that only evaluates."""
    function = module.tree.home(call)
    spelled = module.spelled("torch.no_grad", function)
    if (
        not isinstance(function, cst.FunctionDef)
        or function.decorators  # the new decorator would wrap the result of `property` and the like
        or function.asynchronous is not None  # and would wrap only the creation of a coroutine
        or spelled is None
        or module.evaluations.trains(function.body)
    ):
        return None
    code, imports = spelled
    return ProposedFix(
        "evaluate without recording", (insert_line_before(module.tree, function, f"@{code}()"),), imports
    )
