"""TA157: the chat template or a literal writes the begin token, and the tokenizer adds it a second time."""

import re
from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.value import Path
from ta_lint.syntax.edits import ProposedFix, add_argument
from ta_lint.syntax.tree import Node, argument, is_name, literal_text, spreads

KEYWORDS = (("apply_chat_template", "*tokenizer*"),)
AROUND = (
    "from_pretrained",
    ("apply_chat_template", "<s>", "<bos>", "<|begin_of_text|>"),
    ("*llama*", "*mistral*", "*mixtral*", "*gemma*"),
)

# Families whose tokenizer and whose chat template both add the begin token, by the names of their repositories.
_BOTH_ADD = regex(r"(.*/)?((meta-)?llama-?[234]|codellama|mistral|mixtral|gemma)[\w.-]*", re.IGNORECASE)
# The begin tokens that people write out, with the families whose tokenizers know them.
_WRITTEN = {
    "<s>": regex(r"(.*/)?((meta-)?llama-?2|codellama|mistral|mixtral)[\w.-]*", re.IGNORECASE),
    "<bos>": regex(r"(.*/)?gemma[\w.-]*", re.IGNORECASE),
    "<|begin_of_text|>": regex(r"(.*/)?(meta-)?llama-?[34][\w.-]*", re.IGNORECASE),
}
_METHODS = ("encode", "encode_plus", "batch_encode_plus")
_DEPTH = 4


def check(module: FileFacts) -> Iterator[Suspicion]:
    for call in module.tree.all(cst.Call):
        tokenizer = _tokenizer(call, module)
        if tokenizer is None or spreads(call) or argument(call, "add_special_tokens") is not None:
            continue
        begun = _begun(call, module)
        if begun is None or not _is_of_family(tokenizer, begun, module):
            continue
        if _is_measured(call, module) or _is_compared(call, module):
            continue
        writer = "chat template" if isinstance(begun, cst.Call) else "text"
        related = [(begun, f"the {writer} writes the begin token here")]
        related += [(node, "the model gets the rows here") for node in _uses(module)]
        edit = add_argument(call, "add_special_tokens=False")
        has_added = "has added" if isinstance(begun, cst.Call) else "already begins with"
        yield Suspicion(
            call,
            f"the {writer} {has_added} the begin token, so rows get two: pass `add_special_tokens=False`",
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


def _begun(call: cst.Call, module: FileFacts) -> Node | None:
    """The `apply_chat_template(..., tokenize=False)` or the literal that began the text, or the texts, which a call tokenizes."""
    text = call.args[0].value
    return next(iter(_beginnings(text, (), module) or _beginnings(text, (None,), module)), None)


def _beginnings(text: Node, path: Path, module: FileFacts, depth: int = _DEPTH) -> list[Node]:
    """The templates and literals that certainly wrote the begin token of a text; none if something else may begin it."""
    found: list[Node] = []
    for origin in module.flow.of(text, path).origins:
        if _renders(origin.node, module) or _written(origin.node, module) is not None:
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
    """What a text begins with that is put together: `first + rest`, `first += rest`, `f"{first}rest"` or `first.format(rest)`."""
    match text:
        case cst.Call(func=cst.Attribute(value=first, attr=cst.Name("format"))):
            return first
        case cst.ConcatenatedString(left=first):
            return first
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


def _written(text: Node, module: FileFacts) -> str | None:
    """The begin token with which a literal of this file begins."""
    match text:
        case cst.FormattedString(parts=[cst.FormattedStringText(value=start), *_]):
            pass
        case cst.SimpleString():
            start = literal_text(text) or ""
        case _:
            return None
    is_here = module.tree.root_of(text) is module.tree.root
    return next((token for token in _WRITTEN if start.startswith(token)), None) if is_here else None


def _renders(call: Node, module: FileFacts) -> bool:
    if not isinstance(call, cst.Call):
        return False
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "apply_chat_template":
        return False
    tokenize = argument(call, "tokenize")
    return tokenize is not None and is_name(module.kinds.origin(tokenize), "False")


def _is_of_family(tokenizer: Node, begun: Node, module: FileFacts) -> bool:
    """Whether a tokenizer certainly adds the begin token that its template, or a literal, has written."""
    made = module.tokenizers.makers(tokenizer)
    token = _written(begun, module)
    if isinstance(begun, cst.Call):
        assert isinstance(begun.func, cst.Attribute)
        made = made if module.tokenizers.makers(begun.func.value) == made else []
    family = _WRITTEN[token] if token is not None else _BOTH_ADD
    return bool(made) and all(_adds_begin(call, family, module) for call in made)


def _adds_begin(made: cst.Call, family: re.Pattern[str], module: FileFacts) -> bool:
    name = argument(made, "pretrained_model_name_or_path", 0)
    told = any(argument(made, keyword) is not None for keyword in ("add_bos_token", "add_special_tokens"))
    return name is not None and not told and module.tokenizers.is_named(name, family)


def _uses(module: FileFacts) -> list[cst.Call]:
    return [*module.languages.trainings, *module.languages.generations]
