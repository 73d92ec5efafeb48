"""TA157: the chat template writes the begin token, and the tokenizer adds it a second time."""

import re
from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.value import Path
from ta_lint.syntax.edits import ProposedFix, add_argument
from ta_lint.syntax.tree import Node, argument, is_name, spreads

KEYWORDS = ("apply_chat_template", "tokenize")
AROUND = ("from_pretrained",)

# Families whose tokenizer and whose chat template both add the begin token, by the names of their repositories.
_BOTH_ADD = regex(r"(.*/)?((meta-)?llama-?[234]|codellama|mistral|mixtral|gemma)[\w.-]*", re.IGNORECASE)
_METHODS = ("encode", "encode_plus", "batch_encode_plus")
_DEPTH = 4


def check(module: FileFacts) -> Iterator[Suspicion]:
    for call in module.tree.all(cst.Call):
        tokenizer = _tokenizer(call, module)
        if tokenizer is None or spreads(call) or argument(call, "add_special_tokens") is not None:
            continue
        rendered = _rendered(call, module)
        if rendered is None or not _is_of_family(tokenizer, rendered, module):
            continue
        if _is_measured(call, module) or _is_compared(call, module):
            continue
        related = [(rendered, "the template writes the begin token here")]
        related += [(node, "the model gets the rows here") for node in _uses(module)]
        edit = add_argument(call, "add_special_tokens=False")
        yield Suspicion(
            call,
            "the chat template has added the begin token: tokenize with `add_special_tokens=False`",
            tuple(related),
            ProposedFix("add no special tokens", (edit,)) if edit is not None else None,
        )


def _tokenizer(call: cst.Call, module: FileFacts) -> Node | None:
    """What tokenizes in a call: `tokenizer(text)` or `tokenizer.encode(text)`."""
    if not call.args or module.qualified(call.func) is not None:
        return None
    if isinstance(call.func, cst.Attribute) and call.func.attr.value in _METHODS:
        return call.func.value
    return call.func


def _rendered(call: cst.Call, module: FileFacts) -> cst.Call | None:
    """The `apply_chat_template(..., tokenize=False)` that began the text, or the texts, which a call tokenizes."""
    text = call.args[0].value
    return next(iter(_beginnings(text, (), module) or _beginnings(text, (None,), module)), None)


def _beginnings(text: Node, path: Path, module: FileFacts, depth: int = _DEPTH) -> list[cst.Call]:
    """The templates that certainly wrote the beginning of a text; none if something else may have."""
    found: list[cst.Call] = []
    for origin in module.flow.of(text, path).origins:
        if isinstance(origin.node, cst.Call) and _renders(origin.node, module):
            if ":" in origin.path:  # the begin token may be cut off
                return []
            found.append(origin.node)
            continue
        first = _first_part(origin.node)
        begun = _beginnings(first, (), module, depth - 1) if first is not None and depth else []
        if not begun:
            return []
        found += begun
    return found


def _first_part(text: Node) -> Node | None:
    """What a text begins with that is put together: `first + rest`, `first += rest` or `f"{first}rest"`."""
    match text:
        case cst.BinaryOperation(left=first, operator=cst.Add()):
            return first
        case cst.AugAssign(target=first, operator=cst.AddAssign()):
            return first
        case cst.FormattedString(parts=[cst.FormattedStringExpression(expression=first), *_]):
            return first
    return None


def _is_measured(call: cst.Call, module: FileFacts) -> bool:
    """Whether only the number of tokens counts: `len(tokenizer.encode(text))`."""
    given = module.tree.parent[call]
    above = module.tree.parent[given] if isinstance(given, cst.Arg) else None
    return isinstance(above, cst.Call) and module.qualified(above.func) == "builtins.len"


def _is_compared(call: cst.Call, module: FileFacts) -> bool:
    """Whether the same text is also tokenized with the choice written out, as where somebody looks at the difference."""
    text = call.args[0].value
    bindings = module.names.bindings(text) if isinstance(text, cst.Name) else None
    return bindings is not None and any(
        argument(other, "add_special_tokens") is not None
        and other.args
        and isinstance(other.args[0].value, cst.Name)
        and module.names.bindings(other.args[0].value) is bindings
        for other in module.tree.all(cst.Call)
    )


def _renders(call: cst.Call, module: FileFacts) -> bool:
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "apply_chat_template":
        return False
    tokenize = argument(call, "tokenize")
    return tokenize is not None and is_name(module.kinds.origin(tokenize), "False")


def _is_of_family(tokenizer: Node, rendered: cst.Call, module: FileFacts) -> bool:
    made = module.tokenizers.makers(tokenizer)
    assert isinstance(rendered.func, cst.Attribute)
    if not made or module.tokenizers.makers(rendered.func.value) != made:
        return False
    return all(_adds_begin(call, module) for call in made)


def _adds_begin(made: cst.Call, module: FileFacts) -> bool:
    name = argument(made, "pretrained_model_name_or_path", 0)
    text = module.string(name) if name is not None else None
    told = any(argument(made, keyword) is not None for keyword in ("add_bos_token", "add_special_tokens"))
    return text is not None and not told and _BOTH_ADD.fullmatch(text) is not None


def _uses(module: FileFacts) -> list[cst.Call]:
    return [*module.languages.trainings, *module.languages.generations]
