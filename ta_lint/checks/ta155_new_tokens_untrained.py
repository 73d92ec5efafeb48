"""TA155: tokens are added under adapters that leave the embedding table frozen, so the new rows stay random."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.torch.adapters import Adaptation
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.tree import argument, literal_text

KEYWORDS = ("resize_token_embeddings",)
AROUND = (("get_peft_model", "peft_config"), ("add_tokens", "add_special_tokens"))

_TABLES = ("embed", "wte", "lm_head")
_MASKED = frozenset({"pad_token"})


def check(module: FileFacts) -> Iterator[Suspicion]:
    resized = [call for call in module.tree.all(cst.Call) if called_name(call) == "resize_token_embeddings"]
    if not resized or module.adapters.thaws:
        return
    added = next((call for call in module.tree.all(cst.Call) if _adds_tokens(module, call)), None)
    if added is None:
        return
    for adaptation in module.adapters.put:
        if _leaves_out_table(module, adaptation) and _is_resized(module, adaptation, resized):
            message = (
                "embeddings of new tokens stay random and frozen: list them in `trainable_token_indices`"
            )
            yield Suspicion(adaptation.call, message, ((added, "the tokens are added here"),))


def _adds_tokens(module: FileFacts, call: cst.Call) -> bool:
    """Whether a call certainly adds tokens that a model has to learn, and not one for padding alone."""
    name = called_name(call)
    if name == "add_tokens":
        return bool(call.args)
    if name != "add_special_tokens":
        return False
    given = argument(call, "special_tokens_dict", 0)
    tokens = module.kinds.origin(given) if given is not None else None
    if not isinstance(tokens, cst.Dict):
        return False
    keys = {literal_text(one.key) for one in tokens.elements if isinstance(one, cst.DictElement)}
    return not keys <= _MASKED


def _leaves_out_table(module: FileFacts, adaptation: Adaptation) -> bool:
    """Whether a configuration certainly trains no row of the table of tokens."""
    adapters, config = module.adapters, adaptation.config
    targets = adapters.words(config, "target_modules")
    if targets is None:
        return False
    unset = all(adapters.is_unset(config, name) for name in ("modules_to_save", "trainable_token_indices"))
    return unset and not any(part in target for target in targets for part in _TABLES)


def _is_resized(module: FileFacts, adaptation: Adaptation, resized: list[cst.Call]) -> bool:
    """Whether the table of the very model is resized, before or after it gets its adapters."""
    models = {id(module.kinds.construction(one) or one) for one in adaptation.models}
    for call in resized:
        if not isinstance(call.func, cst.Attribute):
            continue
        made = module.kinds.construction(call.func.value)
        if made is not None and (made is adaptation.call or id(made) in models):
            return True
    return False
