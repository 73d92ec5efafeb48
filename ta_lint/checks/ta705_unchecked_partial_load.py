"""TA705: `load_state_dict(strict=False)` of a file's content, without reading which keys did not match."""

import re
from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Kind, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.layout import plain
from ta_lint.syntax.tree import Node, argument

KEYWORDS = ("load_state_dict", ("strict", "False"))

_STRICT = 1  # load_state_dict(state_dict, strict=True, assign=False)

_READS_FILE = regex(r"\w*load\w*|safe_open")
_HANDS_ON = frozenset({"state_dict", "get", "float", "deepcopy", "copy"})
_CHANGES = frozenset({"pop", "popitem", "update", "setdefault"})

# Deliberately loaded parts of a model, such as adapters.
_PARTIAL = regex(r"lora|adapter|peft|delta|prompt|prefix|trainable|partial|subset", re.IGNORECASE)
_ADAPTS = regex(r"lora|peft|adapter", re.IGNORECASE)
_COMPARES = regex(r"missing|unexpected|mismatch|not_loaded|unmatched", re.IGNORECASE)


def check(module: FileFacts) -> Iterator[Suspicion]:
    for statement in module.tree.all(cst.Expr):
        call = statement.value
        if not isinstance(call, cst.Call) or module.is_shown(statement):
            continue
        if _is_partial_load(call, module) and not _is_expected(call, module):
            yield Suspicion(
                call,
                "`strict=False` skips keys silently: check the missing and unexpected keys that it returns",
            )


def _is_partial_load(call: cst.Call, module: FileFacts) -> bool:
    """Whether a model is loaded with `strict=False` from the unchanged content of a file."""
    strict = argument(call, "strict", _STRICT)
    given = argument(call, "state_dict", 0)
    return (
        called_name(call) == "load_state_dict"
        and isinstance(call.func, cst.Attribute)
        and strict is not None
        and module.boolean(strict) is False
        and module.kind(call.func.value) in (Kind.MODULE, None)
        and given is not None
        and _was_in_file(given, module, set())
    )


def _was_in_file(node: Node, module: FileFacts, passed: set[Node]) -> bool:
    """Whether an expression is the content of a file, or an entry of it, with nothing added or removed."""
    if node in passed:  # checkpoint = checkpoint["model"]
        return True
    passed.add(node)
    if isinstance(node, cst.Subscript):
        return _was_in_file(node.value, module, passed)
    if isinstance(node, cst.IfExp):
        return _was_in_file(node.body, module, passed) and _was_in_file(node.orelse, module, passed)
    if isinstance(node, cst.Call):
        return _is_read(node, module, passed)
    if not isinstance(node, cst.Name) or _is_changed(node, module):
        return False
    bindings = module.names.bindings(node)
    return bool(bindings) and all(
        binding.how == "assign"
        and binding.value is not None
        and (binding.value in passed or _was_in_file(binding.value, module, passed))
        for binding in bindings
    )


def _is_read(call: cst.Call, module: FileFacts, passed: set[Node]) -> bool:
    name = called_name(call) or ""
    if name not in _HANDS_ON:
        return _READS_FILE.fullmatch(name) is not None
    if name in ("deepcopy", "copy") and call.args:
        return _was_in_file(call.args[0].value, module, passed)
    return isinstance(call.func, cst.Attribute) and _was_in_file(call.func.value, module, passed)


def _is_changed(name: cst.Name, module: FileFacts) -> bool:
    """Whether entries of a dictionary are set, deleted or removed, which shows that the keys were checked."""
    for mention in module.names.mentions(name):
        above = module.tree.parent[mention]
        if isinstance(above, cst.Attribute) and above.attr.value in _CHANGES:
            return True
        if isinstance(above, cst.Subscript):
            holder = module.tree.parent[above]
            if isinstance(holder, (cst.AssignTarget, cst.Del, cst.AugAssign)):
                return True
    return False


def _is_expected(call: cst.Call, module: FileFacts) -> bool:
    """Whether the state is a part on purpose, a comment gives the reason, or code compares the keys."""
    line = module.tree.parent[module.tree.statement(call)]
    if isinstance(line, cst.SimpleStatementLine) and any(
        "strict" in text for text in module.places.comments(line)
    ):
        return True
    around = module.tree.enclosing(call, cst.ClassDef) or module.tree.home(call)
    if any(_ADAPTS.search(name.value) for name in module.tree.within(around, cst.Name)):
        return True
    names = module.tree.within(module.tree.home(call), cst.Name)
    return _PARTIAL.search(plain(call)) is not None or any(_COMPARES.search(name.value) for name in names)
