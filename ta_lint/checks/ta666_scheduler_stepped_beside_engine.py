"""TA666: a schedule is stepped by hand although Lightning, DeepSpeed or the Trainer steps it too."""

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.value import Frame, Path, Value
from ta_lint.syntax.edits import ProposedFix, remove_statement
from ta_lint.syntax.tree import Node, argument, attribute_of_self, literal_text

KEYWORDS = ("step",)
AROUND = (("lightning", "pytorch_lightning", "deepspeed", "transformers", "trl"), ("*sched*", "optimizers"))

_TRAINER = regex(r"transformers\.(\w+\.)*(Seq2Seq)?Trainer|trl\.(\w+\.)*\w+Trainer")
_SCHEDULER_OF_ENGINE = 3  # its place in what `deepspeed.initialize` returns

Made = tuple[Node, Path, Frame | None]


@dataclass(frozen=True)
class _Given:
    """Schedules, by where they are made, that a framework gets at a place."""

    framework: str
    place: Node
    schedules: frozenset[Made]


def check(module: FileFacts) -> Iterator[Suspicion]:
    steps = [call for call in module.tree.all(cst.Call) if _is_step(call)]
    if not steps:
        return
    given = [*_to_deepspeed(module), *_to_trainers(module), *_to_lightning(module)]
    for call in steps:
        for one in given:
            if _steps(module, call, one):
                message = (
                    f"{one.framework} steps this schedule too, so it runs ahead: leave out this `step()`"
                )
                related = ((one.place, "given here"),) if module.is_here(one.place) else ()
                yield Suspicion(call, message, related, _fix(module, call))
                break


def _is_step(call: cst.Call) -> bool:
    return called_name(call) == "step" and isinstance(call.func, cst.Attribute)


def _fix(module: FileFacts, call: cst.Call) -> ProposedFix | None:
    if not isinstance(module.tree.parent[call], cst.Expr):
        return None
    return ProposedFix("leave it out", (remove_statement(module.tree, call),))


def _steps(module: FileFacts, call: cst.Call, given: _Given) -> bool:
    receiver = call.func.value if isinstance(call.func, cst.Attribute) else call
    if given.framework == "DeepSpeed" and _is_under_condition(module, call):
        return False
    value = module.flow.of(receiver)
    if _made(value) & given.schedules:
        return not _is_kept_instead(module, receiver, given.place)
    if given.framework != "Lightning" or module.tree.enclosing(call, cst.ClassDef) is not given.place:
        return False
    asked = (one.node.iter if isinstance(one.node, cst.For) else one.node for one in value.origins)
    return any(isinstance(one, cst.Call) and attribute_of_self(one.func) == "lr_schedulers" for one in asked)


def _is_kept_instead(module: FileFacts, receiver: Node, given_to: Node) -> bool:
    """Whether `configure_optimizers` keeps the schedule as `self.x` only where it does not give it to Lightning."""
    name = attribute_of_self(receiver)
    configure = (
        module.lightning.hook(given_to, "configure_optimizers")
        if isinstance(given_to, cst.ClassDef)
        else None
    )
    if name is None or configure is None:
        return False
    kept = [
        target
        for target in module.tree.within(configure, cst.AssignTarget)
        if attribute_of_self(target.target) == name
    ]
    gifts = [
        node
        for node in module.tree.within(configure, cst.SimpleString)
        if literal_text(node) == "lr_scheduler"
    ]
    pairs = [(one, gift) for one in kept for gift in gifts]
    return bool(pairs) and all(module.tree.apart(one, gift) for one, gift in pairs)


def _is_under_condition(module: FileFacts, call: cst.Call) -> bool:
    """Whether a step is made under a condition of its function, which may say that the engine is not used."""
    home = module.tree.home(call)
    for above in module.tree.ancestors(call):
        if above is home:
            return False
        if isinstance(above, (cst.If, cst.IfExp)):
            return True
    return False


def _made(value: Value) -> frozenset[Made]:
    return frozenset(
        (origin.node, origin.path, origin.frame)
        for origin in value.origins
        if isinstance(origin.node, cst.Call)
    )


# -- who gets a schedule --------------------------------------------------------------------------------------


def _to_deepspeed(module: FileFacts) -> Iterator[_Given]:
    for call in module.calls_to("deepspeed.initialize"):
        own = frozenset({(call, (_SCHEDULER_OF_ENGINE,), None)})
        schedule = argument(call, "lr_scheduler")
        given = _made(module.flow.of(schedule)) if schedule is not None else frozenset()
        yield _Given("DeepSpeed", call, own | given)


def _to_trainers(module: FileFacts) -> Iterator[_Given]:
    for call in module.tree.all(cst.Call):
        pair = argument(call, "optimizers")
        if pair is not None and _is_trainer(module, call.func):
            yield _Given("the `Trainer`", call, _made(module.flow.of(pair, (1,))))


def _is_trainer(module: FileFacts, constructor: Node) -> bool:
    """Whether a class is a `Trainer` of transformers or TRL, or one of the project that derives from it."""
    klass = module.classes.local(constructor)
    named = module.classes.bases(klass) if klass is not None else [module.qualified(constructor)]
    return any(isinstance(name, str) and _TRAINER.fullmatch(name) for name in named)


def _to_lightning(module: FileFacts) -> Iterator[_Given]:
    for klass in module.lightning.modules:
        schedules = module.lightning.schedules(klass)
        if not schedules or module.lightning.automatic(klass) is not True:
            continue
        lineage = module.lightning.lineage(klass) or []
        if all(module.lightning.hook(one, "lr_scheduler_step") is None for one in lineage):
            yield _Given("Lightning", klass, frozenset((one.made, (), one.frame) for one in schedules))
