"""TA667: a trainer evaluates a model whose `forward` names no labels, so it computes no loss and no metrics."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.syntax.edits import ProposedFix, set_argument
from ta_lint.syntax.tree import Node, is_name, literal_text

KEYWORDS = ("*Trainer",)
AROUND = ("forward",)

_OTHERWISE = ("prediction_step", "evaluate", "evaluation_loop", "prediction_loop")


def check(module: FileFacts) -> Iterator[Suspicion]:
    for trainer in module.trainers.made:
        if not _evaluates(module, trainer):
            continue
        models = module.trainers.given(trainer, "model").origins
        if models and all(not model.path and _names_no_labels(module, model.node) for model in models):
            message = "`forward` has no label argument, so there is no `eval_loss`: set `label_names` in the arguments"
            yield Suspicion(trainer, message, fix=_fix(module, trainer))


def _evaluates(module: FileFacts, trainer: cst.Call) -> bool:
    """Whether a trainer evaluates like that of transformers, with settings that name no labels."""
    trainers = module.trainers
    held_out = trainers.given(trainer, "eval_dataset").origins
    names = trainers.option(trainer, "label_names")
    return (
        trainers.is_plain(trainer)
        and not trainers.defines(trainer, *_OTHERWISE)
        and any(not is_name(one.node, "None") for one in held_out)
        and names is not None
        and not names.origins
    )


def _names_no_labels(module: FileFacts, model: Node) -> bool:
    """Whether `forward` of a class of the project takes labels among other keywords, and not by their name."""
    klass = module.kinds.class_of(model)
    forward = module.classes.method(klass, "forward") if klass is not None else None
    if forward is None or forward.decorators or forward.params.star_kwarg is None:
        return False
    if not _may_return_loss(module, forward):
        return False  # the training fails first
    params = (*forward.params.params, *forward.params.kwonly_params)
    return not any("label" in param.name.value or param.name.value == "return_loss" for param in params)


def _may_return_loss(module: FileFacts, forward: cst.FunctionDef) -> bool:
    """Whether a `forward` returns anything but dictionaries whose keys all show, and are not `loss`."""
    returned = [one.value for one in module.tree.own(forward.body, cst.Return) if one.value is not None]
    return not returned or not all(isinstance(one, cst.Dict) and _lacks_loss(one) for one in returned)


def _lacks_loss(made: cst.Dict) -> bool:
    keys = [
        literal_text(element.key) if isinstance(element, cst.DictElement) else None
        for element in made.elements
    ]
    return None not in keys and "loss" not in keys


def _fix(module: FileFacts, trainer: cst.Call) -> ProposedFix | None:
    settings = module.trainers.settings_of(trainer)
    if settings is None or not module.is_here(settings):
        return None
    edit = set_argument(settings, "label_names", '["labels"]', None)
    return ProposedFix("name the labels", (edit,)) if edit is not None else None
