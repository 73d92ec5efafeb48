"""Which values are certainly objects of `torch.device`, and no strings."""

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts.values.classes import Classes
from ta_lint.facts.values.flow import ValueFlow
from ta_lint.facts.values.kinds import Kind, Kinds
from ta_lint.facts.values.names import Names
from ta_lint.facts.values.value import Origin
from ta_lint.syntax.tree import Node, Tree, is_name

_DEVICE = "torch.device"

# Libraries whose objects have a `device` of torch.
_HAVE_DEVICE = regex(
    r"accelerate\.(\w+\.)*(Accelerator|PartialState|AcceleratorState)|lightning(\.\w+)*\.Fabric|"
    r"lightning_fabric(\.\w+)*\.Fabric"
)


class Devices:
    """Queries about devices."""

    def __init__(self, tree: Tree, names: Names, classes: Classes, kinds: Kinds, flow: ValueFlow) -> None:
        self._tree = tree
        self._classes = classes
        self._names = names
        self._kinds = kinds
        self._flow = flow

    def is_device(self, node: Node) -> bool:
        """Whether a value is one on each way that leads to it."""
        value = self._flow.of(node)
        if not value.origins or any(map(self._may_be_string, value.aliases)):
            return False
        return all(map(self._is_device, value.origins))

    def _may_be_string(self, alias: Node) -> bool:
        """Whether a value comes through a parameter that says it takes strings too, which callers out of sight may give."""
        binding = self._names.definition(alias) if isinstance(alias, cst.Name) else None
        param = binding.node if binding is not None else None
        if not isinstance(param, cst.Param):
            return False
        if isinstance(param.default, cst.SimpleString):
            return True
        if param.annotation is None:
            return False
        parts = self._tree.subtree(param.annotation.annotation)
        return _DEVICE not in map(self._names.qualified, parts) or any(is_name(one, "str") for one in parts)

    def _is_device(self, origin: Origin) -> bool:
        node, path = origin.node, origin.path
        if isinstance(node, cst.Call):
            return not path and self._names.qualified(node.func) == _DEVICE
        if isinstance(node, cst.Param):
            return not path and self._is_annotated(node)
        if isinstance(node, cst.Attribute):
            is_torch_s = node.attr.value == "device" and self._has_device(node.value)
            return not path and (is_torch_s or self._is_kept_device(node))
        return False

    def _is_kept_device(self, node: cst.Attribute) -> bool:
        """Whether all that the class of an object, which a parameter may hold, puts into an attribute is a device."""
        klass = self._kinds.declared_class(node.value) or self._kinds.class_of(node.value)
        values = self._classes.attribute(klass, node.attr.value) if klass is not None else []
        return bool(values) and all(
            isinstance(value, cst.Call) and self._names.qualified(value.func) == _DEVICE for value in values
        )

    def _is_annotated(self, param: cst.Param) -> bool:
        """Whether a parameter is annotated as a device, without a string as its default."""
        annotation = param.annotation.annotation if param.annotation is not None else None
        is_device = annotation is not None and self._names.qualified(annotation) == _DEVICE
        return is_device and not isinstance(param.default, cst.SimpleString)

    def _has_device(self, owner: Node) -> bool:
        """Whether the `device` of an object is one of torch: of a tensor, or of what keeps the device of a process."""
        if self._kinds.kind(owner) in (Kind.TENSOR, Kind.PARAMETER) or self._is_first_parameter(owner):
            return True
        made = self._kinds.construction(owner)
        called = self._names.qualified(made.func) if made is not None else None
        return called is not None and _HAVE_DEVICE.fullmatch(called) is not None

    def _is_first_parameter(self, node: Node) -> bool:
        """Whether an expression is `next(model.parameters())`."""
        origin = self._kinds.origin(node)
        inner = origin.args[0].value if isinstance(origin, cst.Call) and len(origin.args) == 1 else None
        return (
            isinstance(origin, cst.Call)
            and self._names.qualified(origin.func) == "builtins.next"
            and isinstance(inner, cst.Call)
            and isinstance(inner.func, cst.Attribute)
            and inner.func.attr.value == "parameters"
        )
