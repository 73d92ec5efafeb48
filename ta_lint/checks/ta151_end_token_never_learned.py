"""TA151: the end token is also the padding token, whose labels are masked, so the model never learns to stop."""

from collections.abc import Iterable, Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.loaders import LoaderCall
from ta_lint.syntax.tree import Node, argument, is_name

KEYWORDS = (("DataCollatorForLanguageModeling", "*pad*"),)
AROUND = (("eos_token", "eos_token_id"), ("pad_token", "pad_token_id"))

_COLLATOR = "transformers.DataCollatorForLanguageModeling"
_EVALUATION_HOOKS = frozenset({"predict_dataloader", "test_dataloader", "val_dataloader"})
_MESSAGE = "the end token is also the padding, so the model never learns to stop: use another padding token"


def check(module: FileFacts) -> Iterator[Suspicion]:
    # Labels that are made by hand replace those of a collator.
    found = _ends_masked(_by_hand(module), module) or _ends_masked(_collators(module), module)
    if not found or _puts_ends_back(module):
        return
    related = tuple((node, "the model is trained here") for node in module.languages.trainings)
    for place in found:
        yield Suspicion(place, _MESSAGE, related)


def _ends_masked(places: Iterable[tuple[Node, Node]], module: FileFacts) -> list[Node]:
    return [place for place, tokenizer in places if module.tokenizers.pads_with_end(tokenizer)]


def _by_hand(module: FileFacts) -> Iterator[tuple[Node, Node]]:
    """The first place of each function that masks labels, with the tokenizer."""
    seen = set()
    for place, tokenizer in module.tokenizers.masked_in(module.tree.root):
        if module.tree.home(place) not in seen:
            seen.add(module.tree.home(place))
            yield place, tokenizer


def _collators(module: FileFacts) -> Iterator[tuple[Node, Node]]:
    for call in module.calls_to(_COLLATOR):
        masks, tokenizer = argument(call, "mlm", 1), argument(call, "tokenizer", 0)
        if tokenizer is None or masks is None or not is_name(module.kinds.origin(masks), "False"):
            continue
        users = list(_users(call, module))
        if any(_masks_itself(user, module) for user in users) or (not users and _is_evaluated(call, module)):
            continue
        yield call, tokenizer


def _users(collator: cst.Call, module: FileFacts) -> Iterator[cst.Call]:
    """The calls that get a collator, such as that of a trainer."""
    for call in module.tree.all(cst.Call):
        given = argument(call, "data_collator")
        if given is not None and module.kinds.origin(given) is collator:
            yield call


def _is_evaluated(collator: cst.Call, module: FileFacts) -> bool:
    """Whether no loader of a collator is trained on, as far as its loops, or Lightning's name for it, show."""
    loaders = [
        loader
        for loader in module.loaders.all
        if (given := loader.given("collate_fn")) is not None and module.kinds.origin(given) is collator
    ]
    return bool(loaders) and all(_only_evaluates(loader, module) for loader in loaders)


def _only_evaluates(loader: LoaderCall, module: FileFacts) -> bool:
    home = module.tree.home(loader.call)
    if isinstance(home, cst.FunctionDef) and home.name.value in _EVALUATION_HOOKS:
        return True
    passes = module.loaders.passes_over(loader)
    return bool(passes) and not any(module.loops.trains(one.loop) for one in passes)


def _masks_itself(trainer: cst.Call, module: FileFacts) -> bool:
    """Whether the class of a trainer stands in a file that makes labels by hand."""
    klass = module.classes.local(trainer.func)
    return klass is not None and bool(module.tokenizers.masked_in(module.tree.root_of(klass)))


def _puts_ends_back(module: FileFacts) -> bool:
    """Whether code writes end tokens into labels: `labels[rows, ends] = tokenizer.eos_token_id`."""
    return any(
        isinstance(assign.targets[0].target, cst.Subscript)
        and isinstance(assign.value, cst.Attribute)
        and assign.value.attr.value == "eos_token_id"
        for assign in module.tree.all(cst.Assign)
    )
