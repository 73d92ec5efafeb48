"""TA656: the collator of a causal language model masks tokens, which is its default."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.value import Value
from ta_lint.syntax.edits import ProposedFix, set_argument
from ta_lint.syntax.tree import Node, argument, spreads

KEYWORDS = ("DataCollatorForLanguageModeling",)
AROUND = (("*CausalLM", "*LMHeadModel"),)

_CAUSAL = regex(r"\w*(ForCausalLM|LMHeadModel)")
_MASKED = regex(r"\w*(ForMaskedLM|ForPreTraining|ForSeq2SeqLM|WithLMHead|ForConditionalGeneration)")


def check(module: FileFacts) -> Iterator[Suspicion]:
    for call in module.tree.all(cst.Call):
        name = module.qualified(call.func) or ""
        if not name.startswith("transformers.") or not name.endswith(".DataCollatorForLanguageModeling"):
            continue
        if _masks(module, call) and not _is_set_later(module) and _is_for_causal_model(module, call):
            message = "this trains a causal model to fill in masked tokens, not to write on: set `mlm=False`"
            edit = set_argument(call, "mlm", "False", argument(call, "mlm", 1))
            fix = ProposedFix("set `mlm=False`", (edit,)) if edit is not None else None
            yield Suspicion(call, message, fix=fix)


def _masks(module: FileFacts, call: cst.Call) -> bool:
    given = module.flow.argument(call, "mlm", 1)
    if not given.origins:
        return not spreads(call)
    return all(not one.path and module.boolean(one.node) is True for one in given.origins)


def _is_set_later(module: FileFacts) -> bool:
    return any(
        isinstance(item.target, cst.Attribute) and item.target.attr.value == "mlm"
        for item in module.tree.all(cst.AssignTarget)
    )


def _is_for_causal_model(module: FileFacts, call: cst.Call) -> bool:
    """Whether the model trained on the collator's batches is causal: that of its trainer, else all of the program."""
    models = [
        module.trainers.given(trainer, "model")
        for trainer in module.trainers.made
        if _makes(module, call, module.trainers.given(trainer, "data_collator"))
    ]
    known = [answer for model in models if (answer := _is_causal(module, model)) is not None]
    return all(known) if known else _has_causal_models_alone(module)


def _makes(module: FileFacts, call: cst.Call, value: Value) -> bool:
    return any(module.kinds.construction(one.node) is call for one in value.origins if not one.path)


def _is_causal(module: FileFacts, model: Value) -> bool | None:
    """Whether a model predicts the next token; None if its class is not known."""
    names = {_class_name(module, one.node) for one in model.origins if not one.path}
    if names and all(name is not None and _CAUSAL.fullmatch(name) for name in names):
        return True
    return False if any(name is not None and _MASKED.fullmatch(name) for name in names) else None


def _class_name(module: FileFacts, model: Node) -> str | None:
    """The class of a model, below adapters: `LlamaForCausalLM` of `LlamaForCausalLM.from_pretrained(path)`."""
    made = module.adapters.base(model)
    name = module.qualified(made.func) if made is not None else None
    if name is None:
        return None
    owner, _, method = name.rpartition(".")
    return (owner if method in ("from_pretrained", "from_config") else name).rpartition(".")[2]


def _has_causal_models_alone(module: FileFacts) -> bool:
    """Whether the program names classes of causal models, and none of others."""
    beside = module.names.beside("CausalLM", "LMHeadModel", "MaskedLM", "PreTraining", "Seq2SeqLM")
    if beside is None:
        return False
    named = {
        name.value for root in (module.tree.root, *beside) for name in module.tree.within(root, cst.Name)
    }
    return any(map(_CAUSAL.fullmatch, named)) and not any(map(_MASKED.fullmatch, named))
