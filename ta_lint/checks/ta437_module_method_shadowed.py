"""TA437: an attribute or method of a model hides a method of `nn.Module` that torch calls."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.tree import Node, argument, attribute_of_self, dotted

# Methods that torch itself, or nearly every training, calls on a model or on its parts.
_CALLED = frozenset(
    (
        "apply buffers children cpu cuda eval load_state_dict modules named_buffers named_children named_modules "
        "named_parameters parameters requires_grad_ state_dict to train zero_grad"
    ).split()
)
# Those that only code which wants them calls.
_OTHERS = frozenset("bfloat16 compile double float half share_memory type".split())

KEYWORDS = (tuple(sorted(_CALLED | _OTHERS)),)
AROUND = (("Module", "torch", "nn"),)


def check(module: FileFacts) -> Iterator[Suspicion]:
    for klass in module.classes.modules():
        methods = module.classes.methods(klass)
        train = methods.get("train")
        if train is not None and "eval" not in methods and _is_another(module, train):
            message = (
                "this hides `nn.Module.train`, which `eval()` calls, so the mode never changes: rename it"
            )
            yield Suspicion(train, message, is_note=module.classes.method(klass, "forward") is None)
        for name, assign in module.classes.assignments(klass):
            if name not in _CALLED | _OTHERS or name in methods or assign.value is None:
                continue
            if _is_method_again(module, klass, name, assign.value):
                continue
            message = (
                f"`self.{name}` hides `nn.Module.{name}`, so `model.{name}()` fails: use another name"
                if module.layers.made(assign.value) is None
                else f"`nn.Module.{name}` hides this layer, so `self.{name}` is the method: use another name"
            )
            yield Suspicion(assign, message, is_note=name in _OTHERS)


def _is_another(module: FileFacts, method: cst.FunctionDef) -> bool:
    """Whether a method cannot replace `nn.Module.train(mode)`, judged by its arguments and its calls."""
    params = method.params
    if method.decorators or not isinstance(params.star_arg, (cst.MaybeSentinel, type(None))):
        return False
    own = [*params.posonly_params, *params.params][1:]
    if own and _may_be_mode(own[0]):
        return False
    return not _hands_on(module, method)


def _may_be_mode(param: cst.Param) -> bool:
    """Whether a parameter may be the mode: by its name, or as it is a flag."""
    name = param.name.value.lower().strip("_")
    if any(word in name for word in ("mode", "train", "flag", "enable", "is_")):
        return True
    if isinstance(param.default, cst.Name) and param.default.value in ("True", "False"):
        return True
    annotation = param.annotation.annotation if param.annotation is not None else None
    return annotation is not None and dotted(annotation) == "bool"


def _hands_on(module: FileFacts, method: cst.FunctionDef) -> bool:
    """Whether a method sets modes nevertheless: `super().train(mode)`, or `.training`."""
    for call in module.tree.own(method, cst.Call):
        if called_name(call) == "train" and call.args:
            return True
    return any(
        attribute.attr.value == "training" and isinstance(module.tree.parent[attribute], cst.AssignTarget)
        for attribute in module.tree.own(method, cst.Attribute)
    )


def _is_method_again(module: FileFacts, klass: cst.ClassDef, name: str, value: Node) -> bool:
    """Whether a value is another function in place of the method, or may be one."""
    if any(attribute_of_self(found) == name for found in module.tree.within(value, cst.Attribute)):
        return True
    if isinstance(value, cst.Lambda):
        return True
    if isinstance(value, cst.Attribute):
        held = attribute_of_self(value)
        return held is None or module.classes.method(klass, held) is not None
    if isinstance(value, cst.Name):
        binding = module.names.definition(value)
        node = binding.node if binding is not None else None
        if isinstance(node, cst.Param):
            return node.default is None and node.annotation is None and not _is_read_as_value(module, name)
        return not (binding is not None and binding.how == "assign")
    if isinstance(value, cst.Call):
        made = module.layers.made(value) is not None or module.layers.container(value) is not None
        builtin = (module.qualified(value.func) or "") in ("builtins.int", "builtins.bool", "builtins.str")
        known = (module.qualified(value.func) or "").startswith("torch.nn.") and argument(value, "fn") is None
        return not (made or builtin or known)
    return not isinstance(
        value,
        (
            cst.List,
            cst.Dict,
            cst.Tuple,
            cst.Set,
            cst.ListComp,
            cst.DictComp,
            cst.Integer,
            cst.Float,
            cst.SimpleString,
            cst.FormattedString,
            cst.Comparison,
        ),
    )


def _is_read_as_value(module: FileFacts, name: str) -> bool:
    """Whether code uses the attribute as no function is used: an item of it, a test of it, a loop over it."""
    return any(
        attribute_of_self(found) == name
        and isinstance(
            module.tree.parent[found],
            (cst.Subscript, cst.If, cst.For, cst.CompFor, cst.Comparison, cst.UnaryOperation),
        )
        for found in module.classes.mentions(name)
    )
