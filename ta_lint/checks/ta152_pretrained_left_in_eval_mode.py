"""TA152: a model is trained in the evaluation mode in which `from_pretrained` returns it."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.torch.lightning import RAISING
from ta_lint.syntax.tree import Node, argument, attribute_of_self

KEYWORDS = ("from_pretrained",)
AROUND = (("*backward", "training_step"),)

_LOADS = regex(r"transformers\.(\w+\.)*(?!TF|Flax)(\w+?)(Model|LMHeadModel|For[A-Z]\w+)\.from_pretrained")
# Families whose models have dropout as they are published: by the names of their classes, and of their repositories.
_CLASSES = regex(
    r"(Albert|Bart|Bert|Camembert|Deberta|DebertaV2|DistilBert|Electra|GPT2|MBart|MT5|MPNet|Roberta|T5|XLMRoberta|Wav2Vec2)"
)
_NAMES = regex(
    r"(.*/)?(albert|bart|bert|camembert|deberta|distilbert|distilgpt2|distilroberta|electra|flan-t5|gpt2|mbart|mt5|mpnet|"
    r"roberta|t5|xlm-roberta|wav2vec2)([-_.].*)?"
)
_PROBABILITIES = frozenset(
    "hidden_dropout_prob attention_probs_dropout_prob dropout_rate resid_pdrop embd_pdrop attn_pdrop".split()
)
_OF_ENCODERS = (
    "ForSequenceClassification",
    "ForTokenClassification",
    "ForQuestionAnswering",
    "ForMultipleChoice",
)
"""What classes load that choose a model by a name, mostly of such a family."""
_LIGHTNING = "LightningModule"


def check(module: FileFacts) -> Iterator[Suspicion]:
    found = [call for call in module.tree.all(cst.Call) if _loads_with_dropout(call, module)]
    trained = [call for call in found if _is_held_by_lightning(call, module) or _is_stepped(call, module)]
    has_adapters = bool(module.calls_to("peft.get_peft_model", "peft.PeftModel.from_pretrained"))
    if trained and not has_adapters and not _drops_nothing(module) and not _may_switch(module):
        for call in trained:
            yield Suspicion(
                call,
                "`from_pretrained` returns a model in evaluation mode, which switches dropout off: call `train()`",
            )


def _loads_with_dropout(call: cst.Call, module: FileFacts) -> bool:
    called = module.qualified(call.func) if isinstance(call.func, cst.Attribute) else None
    found = _LOADS.fullmatch(called) if called is not None else None
    if found is None:
        return False
    if _CLASSES.fullmatch(found[2]):
        return True
    name = argument(call, "pretrained_model_name_or_path", 0)
    text = module.string(name) if name is not None else None
    if text is None:
        return found[2] == "AutoModel" and found[3] in _OF_ENCODERS
    return found[2].startswith("Auto") and _NAMES.fullmatch(text.lower()) is not None


def _is_held_by_lightning(call: cst.Call, module: FileFacts) -> bool:
    """Whether a `LightningModule` with a training step keeps what is loaded, and freezes nothing."""
    klass = module.tree.enclosing(call, cst.ClassDef)
    statement = module.tree.parent[call]
    if klass is None or not isinstance(statement, cst.Assign):
        return False
    if attribute_of_self(statement.targets[0].target) is None:
        return False
    bases = [module.qualified(arg.value) or "" for arg in klass.bases]
    is_lightning = any(base.endswith(f".{_LIGHTNING}") for base in bases)
    methods = module.classes.methods(klass)
    if not is_lightning or "training_step" not in methods or _freezes(klass, module):
        return False
    return (
        methods.keys().isdisjoint(RAISING)
        and not _is_of_lightning_1(module)
        and not _only_predicts(klass, module)
    )


def _only_predicts(klass: cst.ClassDef, module: FileFacts) -> bool:
    """Whether the script makes the module, and no code in it calls `fit`."""
    makes = any(
        facts.classes.local(call.func) is klass
        for facts in module.script
        for call in facts.tree.all(cst.Call)
    )
    return makes and not any(
        attribute.attr.value == "fit"
        for facts in module.script
        for attribute in facts.tree.all(cst.Attribute)
    )


def _is_of_lightning_1(module: FileFacts) -> bool:
    """Whether the program runs on Lightning 1, which sets the mode itself."""
    return "lightning" in module.old_frameworks or any(facts.lightning.is_of_1 for facts in module.script)


def _drops_nothing(module: FileFacts) -> bool:
    """Whether code sets the probabilities of dropout in a configuration, be it to zero."""
    named = [arg.keyword.value for arg in module.tree.all(cst.Arg) if arg.keyword is not None]
    named += [attribute.attr.value for attribute in module.tree.all(cst.Attribute)]
    return not _PROBABILITIES.isdisjoint(named)


def _freezes(region: Node, module: FileFacts) -> bool:
    """Whether code freezes parameters, or runs a model without gradients."""
    names = {attribute.attr.value for attribute in module.tree.within(region, cst.Attribute)}
    return bool(names & {"requires_grad", "requires_grad_", "freeze", "no_grad", "eval"})


def _is_stepped(call: cst.Call, module: FileFacts) -> bool:
    """Whether a loop of the script steps the parameters of what is loaded, or of a model that holds it."""
    if not any(facts.training_loops for facts in module.script) or _freezes(module.tree.root, module):
        return False
    klass, statement = module.tree.enclosing(call, cst.ClassDef), module.tree.parent[call]
    is_kept = isinstance(statement, cst.Assign) and attribute_of_self(statement.targets[0].target) is not None
    for listed in module.tree.all(cst.Call):
        if not isinstance(listed.func, cst.Attribute) or listed.func.attr.value != "parameters":
            continue
        model = listed.func.value
        if call in module.languages.makers(model):
            return True
        if klass is not None and is_kept and module.kinds.class_of(model) is klass:
            return True
    return False


def _may_switch(module: FileFacts) -> bool:
    """Whether code of the program puts something into training mode, or leaves that to a trainer."""
    script = module.script
    return not script or any(
        attribute.attr.value == "train"
        for facts in script
        for attribute in facts.tree.all(cst.Attribute)
        if isinstance(facts.tree.parent[attribute], cst.Call)
    )
