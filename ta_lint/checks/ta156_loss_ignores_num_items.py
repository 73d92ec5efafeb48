"""TA156: an accumulating trainer's loss is a mean that ignores the number of items, so the means are summed."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.options import usual
from ta_lint.syntax.tree import Node

KEYWORDS = ("compute_loss", "*Trainer*")
AROUND = ("gradient_accumulation_steps",)

_NUMBER = "num_items_in_batch"
_SAYS = frozenset({"loss_is_scaled_for_ga", "model_accepts_loss_kwargs"})
_OF_TRANSFORMERS = regex(
    r"transformers\.(\w+\.)*(?!TF|Flax)(\w+\.from_(pretrained|config)|\w+(For[A-Z]\w+|LMHeadModel))"
)


def check(module: FileFacts) -> Iterator[Suspicion]:
    if _says_how(module):
        return
    for klass, method in module.trainers.losses:
        trainer = _accumulating(module, klass) if _ignores(module, method) else None
        if trainer is not None:
            message = (
                "the loss grows with accumulation: sum it over the tokens and divide by `num_items_in_batch`"
            )
            yield Suspicion(method, message, ((trainer, "this trainer accumulates"),))


def _says_how(module: FileFacts) -> bool:
    return any(name.value in _SAYS for name in module.tree.all(cst.Name))


def _ignores(module: FileFacts, method: cst.FunctionDef) -> bool:
    """Whether a loss accepts the number of items, but reads neither it nor its keywords, and calls no base class."""
    params = method.params
    rest = params.star_kwarg.name.value if params.star_kwarg is not None else None
    named = any(param.name.value == _NUMBER for param in (*params.params, *params.kwonly_params))
    if method.decorators or isinstance(params.star_arg, cst.Param) or (rest is None and not named):
        return False
    if any(name.value in (_NUMBER, rest) for name in module.tree.within(method.body, cst.Name)):
        return False
    calls = module.tree.within(method.body, cst.Call)
    return not any(called_name(call) == "compute_loss" for call in calls)


def _accumulating(module: FileFacts, klass: cst.ClassDef) -> cst.Call | None:
    """A call in the program that makes a trainer of a class, with more than one micro-batch in a step."""
    others = module.names.beside("gradient_accumulation_steps") or ()
    for facts in (module, *map(module.beside, others)):
        for trainer in facts.trainers.made:
            if facts.classes.local(trainer.func) is klass and _accumulates(facts, trainer):
                return trainer
    return None


def _accumulates(module: FileFacts, trainer: cst.Call) -> bool:
    steps = module.trainers.option(trainer, "gradient_accumulation_steps")
    given = [usual(one, module.tree) for one in steps.origins] if steps else []
    numbers = [module.number(node) if node is not None else None for node in given]
    models = module.trainers.given(trainer, "model").origins
    return (
        module.trainers.is_plain(trainer)
        and bool(numbers)
        and all(number is not None and number > 1 for number in numbers)
        and bool(models)
        and all(not one.path and _takes_more(module, one.node) for one in models)
    )


def _takes_more(module: FileFacts, model: Node) -> bool:
    """Whether a model takes any keyword, below adapters: then the trainer leaves it to the loss to divide."""
    made = module.adapters.base(model)
    name = module.qualified(made.func) if made is not None else None
    if name is not None:
        return _OF_TRANSFORMERS.fullmatch(name) is not None
    klass = module.kinds.class_of(model)
    forward = module.classes.method(klass, "forward") if klass is not None else None
    return forward is not None and forward.params.star_kwarg is not None
