"""TA159: a decoder generates from a batch that its tokenizer pads on the right."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.syntax.tree import Node, argument, is_name

KEYWORDS = ("generate",)
AROUND = ("padding", "*Tokenizer*", ("*ForCausalLM", "*LMHeadModel"))

_STEPS = 8


def check(module: FileFacts) -> Iterator[Suspicion]:
    for call in module.tree.all(cst.Call):
        if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "generate":
            continue
        encoding = _encoding(call, module)
        if encoding is None or not _pads(encoding, module) or not _is_of_several(encoding, module):
            continue
        if not module.languages.is_causal(call.func.value):
            continue
        if module.tokenizers.pads_on_the_right(encoding.func):
            message = (
                'the model continues the padding on the right, not the prompt: set `padding_side="left"`'
            )
            yield Suspicion(call, message, ((encoding, "the batch is padded here"),))


def _encoding(call: cst.Call, module: FileFacts) -> cst.Call | None:
    """The call of a tokenizer that made the prompts: of `**inputs`, `inputs.input_ids` or `inputs["input_ids"]`."""
    spread = [arg.value for arg in call.args if arg.star == "**"]
    node: Node | None = argument(call, "input_ids") or argument(call, "inputs", 0) or next(iter(spread), None)
    for _ in range(_STEPS):
        if node is None:
            return None
        if isinstance(node, cst.Call) and module.tokenizers.makers(node.func):
            return node
        node = _held_in(node, module)
    return None


def _held_in(node: Node, module: FileFacts) -> Node | None:
    """What an expression is a part, or a copy on a device, of."""
    if isinstance(node, cst.Attribute) and node.attr.value == "input_ids":
        return node.value
    if isinstance(node, cst.Subscript):
        return node.value
    if isinstance(node, cst.Call) and (given := module.calls.returned(node)) is not None:
        return given
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        return node.func.value if node.func.attr.value in ("to", "cuda") else None
    origin = module.kinds.origin(node)
    return origin if origin is not node else None


def _pads(encoding: cst.Call, module: FileFacts) -> bool:
    padding = argument(encoding, "padding")
    if padding is None or argument(encoding, "padding_side") is not None:
        return False
    return is_name(module.kinds.origin(padding), "True") or module.string(padding) in (
        "longest",
        "max_length",
    )


def _is_of_several(encoding: cst.Call, module: FileFacts) -> bool:
    """Whether it is certain, or likely by a plural name, that several texts are tokenized together."""
    texts = argument(encoding, "text", 0)
    if texts is None:
        return False
    if isinstance(texts, cst.Name) and (found := module.loaders.pass_of(texts)) is not None:
        sizes = [one.given("batch_size") for one in found.loaders]
        return all(size is not None and module.number(size) != 1 for size in sizes)
    made = module.kinds.origin(texts)
    if isinstance(made, cst.List):
        return len(made.elements) > 1
    if isinstance(made, cst.ListComp):
        return True
    if isinstance(made, cst.Subscript):
        return isinstance(made.slice[0].slice, cst.Slice)
    name = texts.value if isinstance(texts, cst.Name) else ""
    return isinstance(made, (cst.Name, cst.Param)) and (name.endswith("s") or "batch" in name)
