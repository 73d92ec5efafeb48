"""TA151: the end token is also the padding token, whose labels are masked, so the model never learns to stop."""

from collections.abc import Iterable, Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.loaders import LoaderCall
from ta_lint.syntax.tree import Node, argument, is_name

KEYWORDS = (("DataCollatorForLanguageModeling", "*pad*"),)
AROUND = (("eos_token", "eos_token_id", "-100"), ("pad_token", "pad_token_id", "-100"))

_COLLATOR = "transformers.DataCollatorForLanguageModeling"
_EVALUATION_HOOKS = frozenset({"predict_dataloader", "test_dataloader", "val_dataloader"})
_MESSAGE = "the end token is also the padding, so the model never learns to stop: use another padding token"


def check(module: FileFacts) -> Iterator[Suspicion]:
    # Labels that are made by hand replace those of a collator.
    found = _ends_masked(_by_hand(module), module) or _ends_masked(_collators(module), module)
    found = found or list(_numbered(module))
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


def _numbered(module: FileFacts) -> Iterator[Node]:
    """The places that mask a number of a table of tokens by which, under another key, rows of tokens end."""
    masked = [(place, _entry(token, module)) for place, token in module.tokenizers.masks_in(module.tree.root)]
    rows = module.tree.all(cst.BinaryOperation, cst.Call) if any(entry for _, entry in masked) else []
    ends = [end for row in rows if (end := _last_of(row, module)) is not None]
    for place, entry in masked:
        if entry is not None and any(_is_beside(entry, end, module) for end in ends):
            yield place


def _last_of(row: Node, module: FileFacts) -> Node | None:
    """The token that is put behind a row: `row + [tokens["end"]]`, `row.append(tokens["end"])`."""
    match row:
        case cst.BinaryOperation(operator=cst.Add(), right=cst.List(elements=[*_, cst.Element(value=last)])):
            return _entry(last, module)
        case cst.Call(func=cst.Attribute(attr=cst.Name("append")), args=[cst.Arg(value=last)]):
            return _entry(last, module)
    return None


def _entry(token: Node, module: FileFacts) -> Node | None:
    """The number in a table that a token is."""
    origins = module.flow.of(token).origins
    one = origins[0].node if len(origins) == 1 else None
    is_entry = one is not None and isinstance(module.tree.parent.get(one), cst.DictElement)
    return one if is_entry and isinstance(one, cst.Integer) else None


def _is_beside(padding: Node, end: Node, module: FileFacts) -> bool:
    """Whether two entries of one table are the same number."""
    tables = [module.tree.enclosing(one, cst.Dict) for one in (padding, end)]
    return padding is not end and tables[0] is tables[1] and module.number(padding) == module.number(end)


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
