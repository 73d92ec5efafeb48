"""TA153: labels are shifted before they are passed to a model that shifts them itself."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.syntax.tree import argument

KEYWORDS = (("labels", "**"),)
AROUND = (("*ForCausalLM", "*LMHeadModel"),)

_MESSAGE = "`labels` are shifted already, and the model shifts them again: pass them unshifted"
_OTHERWISE = ("compute_loss", "training_step", "_prepare_inputs")


def check(module: FileFacts) -> Iterator[Suspicion]:
    for call in module.tree.all(cst.Call):
        if not module.languages.takes_labels(call) or argument(call, "shift_labels") is not None:
            continue
        if not module.languages.is_causal(call.func):
            continue
        inputs = module.languages.given(call, "input_ids", 0)
        labels = module.languages.given(call, "labels")
        if inputs is not None and labels is not None and module.languages.lag(labels, inputs) == 1:
            yield Suspicion(call, _MESSAGE)
    for trainer in module.trainers.made:
        if module.trainers.is_plain(trainer) and not module.trainers.defines(trainer, *_OTHERWISE):
            yield from _collated(module, trainer)


def _collated(module: FileFacts, trainer: cst.Call) -> Iterator[Suspicion]:
    """The labels that the collator of a trainer shifts for a model that does so itself."""
    models = module.trainers.given(trainer, "model").origins
    if not models or not all(not one.path and module.languages.is_causal(one.node) for one in models):
        return
    for function in module.trainers.collators(trainer):
        if not isinstance(function, cst.FunctionDef):
            continue
        inputs, labels = (module.languages.handed_out(function, key) for key in ("input_ids", "labels"))
        if inputs is None or labels is None:
            continue
        if module.languages.lag(module.languages.stretch(labels), module.languages.stretch(inputs)) == 1:
            place = labels if module.is_here(labels) else trainer
            yield Suspicion(place, _MESSAGE, ((trainer, "the trainer gives them to the model"),))
