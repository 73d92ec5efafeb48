"""TA415: a module's `__init__` sets attributes without `super().__init__()`, or layers before it."""

from collections.abc import Iterator
from pathlib import PurePosixPath

import libcst as cst

from ta_lint.facts import FileFacts, Kind, Suspicion
from ta_lint.syntax.edits import ProposedFix, insert_line_before
from ta_lint.syntax.tree import Node, is_name

KEYWORDS = ("__init__",)

# What layers of torch have, and `nn.Module` has not.
_OF_LAYERS = frozenset(
    {"bias", "embedding_dim", "in_channels", "in_features", "out_channels", "out_features", "weight"}
)

# A file that transformers turns into code, with the bodies of base classes in place of calls of `super()`; it never runs.
_TEMPLATE = "modular_"


def check(module: FileFacts) -> Iterator[Suspicion]:
    if PurePosixPath(module.source.path).name.startswith(_TEMPLATE):
        return
    for klass in module.classes.modules():
        init = module.classes.methods(klass).get("__init__")
        if init is None or klass.decorators:
            continue
        first = _first_mention(module, init)
        if first is not None and not _assigns_before(module, init, first):
            continue
        sets = [
            (name, assign)
            for name, assign in module.classes.assignments(klass)
            if module.tree.home(assign) is init
        ]
        if (
            first is None
            and sets
            and not _is_elsewhere(module, init)
            and not _is_mixed_in(module, klass, init)
            and not _is_plain_callable(module, klass, init)
        ):
            message = f"`{klass.name.value}` never sets up `nn.Module`, so using it raises: call `super().__init__(...)`"
            yield Suspicion(init.name, message, fix=_fix(module, klass, init))
        elif first is not None:
            for name, assign in sets:
                early = module.tree.before(assign, first) and not module.tree.contains(assign, first)
                if early and _is_registered(module, assign):
                    yield Suspicion(
                        assign,
                        f"setting the layer or parameter `self.{name}` raises here: call `super().__init__()` first",
                    )


def _first_mention(module: FileFacts, init: cst.FunctionDef) -> Node | None:
    """The first mention of `super` or of another class's `__init__`."""
    found = [name for name in module.tree.within(init.body, cst.Name) if name.value in ("super", "__init__")]
    return found[0] if found else None


def _assigns_before(module: FileFacts, init: cst.FunctionDef, first: Node) -> bool:
    assigns = module.tree.within(init.body, cst.Assign, cst.AnnAssign)
    return bool(assigns) and module.tree.before(assigns[0], first)


def _is_mixed_in(module: FileFacts, klass: cst.ClassDef, init: cst.FunctionDef) -> bool:
    """Whether `__init__` reads an attribute that the class and its bases do not set: the class is mixed into a module,
    which is initialised first.
    """
    set_here = {name for name, _ in module.classes.assignments(klass)} | set(module.classes.methods(klass))
    return module.classes.bases(klass) == ["torch.nn.Module"] and any(
        is_name(attribute.value, "self") and attribute.attr.value in _OF_LAYERS - set_here
        for attribute in module.tree.within(init.body, cst.Attribute)
    )


def _is_plain_callable(module: FileFacts, klass: cst.ClassDef, init: cst.FunctionDef) -> bool:
    """Whether a class with a `__call__` of its own sets no layer or parameter: it uses nothing of `nn.Module`."""
    return "__call__" in module.classes.methods(klass) and not any(
        _is_registered(module, assign) for assign in module.tree.within(init, cst.Assign, cst.AnnAssign)
    )


def _is_registered(module: FileFacts, assign: cst.Assign | cst.AnnAssign) -> bool:
    """Whether a value is a layer or parameter, which a module registers when it is set."""
    return assign.value is not None and module.kind(assign.value) in (Kind.MODULE, Kind.PARAMETER)


def _is_elsewhere(module: FileFacts, init: cst.FunctionDef) -> bool:
    """Whether other code may initialise the module: a function that gets `self`, or its whole state."""
    names = [name for name in module.tree.within(init.body, cst.Name) if name.value == "self"]
    handed = any(isinstance(module.tree.parent[name], cst.Arg) for name in names)
    states = ("__dict__", "__class__", "__setstate__")
    return handed or any(name.value in states for name in module.tree.within(init.body, cst.Name))


def _fix(module: FileFacts, klass: cst.ClassDef, init: cst.FunctionDef) -> ProposedFix | None:
    """`super().__init__()` as the first statement, where the base is `nn.Module` itself, which takes no arguments."""
    body = init.body.body
    if module.classes.bases(klass) != ["torch.nn.Module"] or not isinstance(init.body, cst.IndentedBlock):
        return None
    first = body[1] if init.get_docstring() is not None and len(body) > 1 else body[0]
    statement = first.body[0] if isinstance(first, cst.SimpleStatementLine) else first
    return ProposedFix(
        "initialise the module first", (insert_line_before(module.tree, statement, "super().__init__()"),)
    )
