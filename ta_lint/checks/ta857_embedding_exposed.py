"""TA857: a route of a web service returns embeddings."""

import re
from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.tree import Node, dotted

KEYWORDS = (
    ("flask", "fastapi", "starlette", "sanic", "litestar", "bottle"),
    ("route", "get", "post", "put", "api_route"),
    "tolist",
)

_ROUTE = frozenset({"api_route", "get", "post", "put", "route"})
_FRAMEWORK = regex(r"(flask|fastapi|starlette|sanic|litestar|bottle)(\.|$)")

# Functions that compute embeddings, and the names they are stored under.
_MAKES = regex(
    r"encode|encode_(image|text|query|queries|document|batch|multi_process)\w*|embed\w*|get_\w*(embedding|feature)s?|"
    r"extract_features|forward_features"
)
_IS = regex(
    r"\w*embed\w*|last_hidden_state|hidden_states?|pooler_output|\w*_embeds|(image|text)_features",
    re.IGNORECASE,
)
_TOKENIZER = regex(r"token|vocab|label|bpe|base64|json|binascii", re.IGNORECASE)

_HANDS_ON = frozenset(
    {
        "cpu",
        "detach",
        "numpy",
        "squeeze",
        "mean",
        "to",
        "float",
        "half",
        "flatten",
        "unsqueeze",
        "astype",
        "reshape",
        "view",
    }
)
_DEPTH = 8


def check(module: FileFacts) -> Iterator[Suspicion]:
    if not any(_FRAMEWORK.match(name) for name in module.names.imported):
        return
    for function in module.tree.all(cst.FunctionDef):
        if not any(_is_route(item.decorator, module) for item in function.decorators):
            continue
        for answer in module.tree.own(function, cst.Return):
            found = _exposed(module, answer)
            if found is not None:
                message = f"`{module.code(found)}` hands out embeddings, which reveal the input: return a result made of them"
                yield Suspicion(answer, message, related=((function.name, "the route is answered here"),))


def _is_route(decorator: Node, module: FileFacts) -> bool:
    """Whether a decorator defines a route: a method of an application, or a function of Litestar."""
    if not isinstance(decorator, cst.Call) or called_name(decorator) not in _ROUTE:
        return False
    called = module.qualified(decorator.func) or ""
    return isinstance(decorator.func, cst.Attribute) or called.startswith("litestar.")


def _exposed(module: FileFacts, answer: cst.Return) -> Node | None:
    """The embedding whose numbers an answer contains."""
    if answer.value is None:
        return None
    parts = [
        answer.value,
        *(module.kinds.origin(name) for name in module.tree.within(answer.value, cst.Name)),
    ]
    for part in parts:
        for call in module.tree.within(part, cst.Call):
            if called_name(call) == "tolist" and isinstance(call.func, cst.Attribute):
                found = _embedding(module, call.func.value)
                if found is not None:
                    return found
    return None


def _embedding(module: FileFacts, node: Node) -> Node | None:
    """The call or attribute that makes a value an embedding, through names, indices and moves."""
    for _ in range(_DEPTH):
        node = module.kinds.origin(node)
        if isinstance(node, cst.Subscript):
            node = node.value
        elif isinstance(node, cst.Attribute):
            return node if _IS.fullmatch(node.attr.value) else None
        elif isinstance(node, cst.Call):
            name = called_name(node) or ""
            if _MAKES.fullmatch(name) and isinstance(node.func, cst.Attribute):
                return node if node.args and not _TOKENIZER.search(dotted(node.func.value) or "") else None
            if not isinstance(node.func, cst.Attribute) or name not in _HANDS_ON:
                return None
            node = node.func.value
        else:
            return None
    return None
