"""TA421: a class with layers and a `forward` is not an `nn.Module`: its layers are not trained, moved or saved."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.syntax.tree import Node

KEYWORDS = ("forward",)

# Code that uses these handles the layers' parameters, device or state itself.
_HANDLES = frozenset(
    "apply cpu cuda eval load_state_dict named_parameters parameters state_dict to train".split()
)


def check(module: FileFacts) -> Iterator[Suspicion]:
    for klass in module.classes.all():
        if "forward" not in module.classes.methods(klass) or not _is_plain(module, klass):
            continue
        layers = [
            (assign, layer)
            for _, assign in module.classes.assignments(klass)
            if assign.value is not None and (layer := module.layers.made(assign.value)) is not None
        ]
        if layers and not _handles(module, klass):
            assign, layer = layers[0]
            message = f"`{klass.name.value}` never registers its layers, so they have no parameters to train: derive it from `nn.Module`"
            yield Suspicion(klass.name, message, related=((assign, f"`{layer}` is made here"),))


def _is_plain(module: FileFacts, klass: cst.ClassDef) -> bool:
    """Whether a class is certainly neither a module nor a base or mixin of one."""
    return (
        module.classes.is_whole(klass)
        and not module.classes.derives(klass, "torch.nn.Module")
        and not _is_mixin(module, klass)
        and not any(module.classes.inherits(other, klass) for other in module.classes.all())
    )


def _is_mixin(module: FileFacts, klass: cst.ClassDef) -> bool:
    """Whether a class may need another one beside it: it is called so, or asks `super()` for more than `object` has."""
    if klass.name.value.endswith("Mixin"):
        return True
    asked = [name for name in module.tree.within(klass, cst.Name) if name.value == "super"]
    return any(not _constructs_object(module, name) for name in asked) or (
        bool(asked) and not _is_made(module, klass)
    )


def _constructs_object(module: FileFacts, name: cst.Name) -> bool:
    """Whether it is `super().__init__()`, which `object` has too."""
    method = module.tree.parent[module.tree.parent[name]]
    call = module.tree.parent[method]
    return (
        isinstance(method, cst.Attribute)
        and method.attr.value == "__init__"
        and isinstance(call, cst.Call)
        and not call.args
    )


def _is_made(module: FileFacts, klass: cst.ClassDef) -> bool:
    """Whether the file makes an object of a class, which no mixin is for."""
    return any(module.classes.local(call.func) is klass for call in module.tree.all(cst.Call))


def _handles(module: FileFacts, klass: Node) -> bool:
    """Whether the class, or code that uses its instances, handles the layers itself."""
    return any(
        attribute.attr.value in _HANDLES for attribute in module.tree.within(klass, cst.Attribute)
    ) or any(method.name.value in _HANDLES for method in module.tree.within(klass, cst.FunctionDef))
