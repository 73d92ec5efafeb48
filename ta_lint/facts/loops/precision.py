"""Which models and tensors are in half precision."""

import libcst as cst

from ta_lint.facts.loops.calls_in_loop import CallsInLoop
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.classes import Classes
from ta_lint.facts.values.names import Names
from ta_lint.syntax.tree import LOOPS, Node, Tree, argument, dotted, literal_text

_HALF_METHODS = frozenset({"half", "bfloat16"})
_HALF_TYPES = frozenset({"torch.half", "torch.float16", "torch.bfloat16"})
_KEEPS = frozenset({"clone", "detach", "to", "cuda", "cpu", "eval", "requires_grad_", "train", "contiguous"})
_DEPTH = 6
_WIDER = frozenset({"float", "double", "float32", "float64"})
_NAMES = frozenset({"half", "float16", "bfloat16"})
_LOADS = frozenset({"from_pretrained", "from_config"})


class HalfPrecision:
    """Queries about the type of the numbers of a model."""

    def __init__(self, tree: Tree, names: Names, classes: Classes, calls_in_loop: CallsInLoop) -> None:
        self._tree = tree
        self._names = names
        self._classes = classes
        self._calls_in_loop = calls_in_loop

    def is_half(self, node: Node, depth: int = _DEPTH) -> bool:
        """Whether a model, tensor or dictionary of tensors is certainly in half precision."""
        if depth == 0:
            return False
        if isinstance(node, (cst.Name, cst.Attribute)):
            values = self._values(node)
            if values and all(self.is_half(value, depth - 1) for value in values):
                return True
            return self._is_halved(node)
        if isinstance(node, (cst.DictComp, cst.ListComp)):
            value = node.value if isinstance(node, cst.DictComp) else node.elt
            return self.is_half(value, depth - 1)
        if not isinstance(node, cst.Call):
            return False
        qualified = self._names.qualified(node.func) or ""
        if qualified in ("copy.deepcopy", "copy.copy", "torch.optim.swa_utils.AveragedModel") and node.args:
            return self.is_half(node.args[0].value, depth - 1)
        if not isinstance(node.func, cst.Attribute):
            return False
        if self._makes_half(node) or self._loads_half(node):
            return True
        name = node.func.attr.value
        if name in _KEEPS and not (name == "to" and self._names_type(node)):
            return self.is_half(node.func.value, depth - 1)
        if name in ("state_dict", "copy") and not node.args:
            return self.is_half(node.func.value, depth - 1)
        return False

    def _values(self, node: Node) -> list[Node]:
        """All values that a variable may have; empty if one is unknown."""
        if isinstance(node, cst.Attribute):
            klass = self._tree.enclosing(node, cst.ClassDef)
            is_own = isinstance(node.value, cst.Name) and node.value.value == "self"
            return self._classes.attribute(klass, node.attr.value) if klass is not None and is_own else []
        assert isinstance(node, cst.Name)
        bindings = self._names.reaching(node)
        if len(bindings) == 1 and bindings[0].how == "param":
            found = self._calls_in_loop.values(node)
            return [value for value in found if value is not node and not isinstance(value, cst.Param)]
        if bindings and all(binding.how == "assign" and binding.value is not None for binding in bindings):
            return [binding.value for binding in bindings if binding.value is not None]
        return []

    def _makes_half(self, call: cst.Call) -> bool:
        name = called_name(call)
        if name in _HALF_METHODS and not call.args:
            return True
        return name == "to" and any(self._is_half_type(arg.value) for arg in call.args)

    def _is_half_type(self, node: Node) -> bool:
        """Whether an expression is a type of half precision, also as what all known calls give to a parameter."""
        return all(self._names.qualified(one) in _HALF_TYPES for one in self._calls_in_loop.values(node))

    def _names_type(self, call: cst.Call) -> bool:
        """Whether `to` may change the type of numbers."""
        return any(
            (self._names.qualified(arg.value) or "").startswith("torch.")
            or (arg.keyword is not None and arg.keyword.value == "dtype")
            for arg in call.args
        )

    def _is_halved(self, node: Node) -> bool:
        """Whether a statement of its own makes a model half, which `half()` does in place: `model.half()`."""
        path = dotted(node)
        return any(
            isinstance(call.func, cst.Attribute)
            and dotted(call.func.value) == path
            and self._makes_half(call)
            and isinstance(self._tree.parent[call], cst.Expr)
            and self._tree.home(call) is self._tree.home(node)
            and self._tree.enclosing(call, cst.If, *LOOPS) is None
            and self._calls_in_loop.acts_as_model(node)
            for call in self._tree.all(cst.Call)
        )

    def is_widened(self, node: Node) -> bool:
        """Whether some code takes what holds the weights to more precision."""
        path = dotted(node)
        return path is not None and any(
            isinstance(call.func, cst.Attribute)
            and dotted(call.func.value) == path
            and (
                called_name(call) in _WIDER
                or (called_name(call) == "to" and not self._makes_half(call) and self._names_type(call))
            )
            for call in self._tree.all(cst.Call)
        )

    def _loads_half(self, call: cst.Call) -> bool:
        """`from_pretrained(name, torch_dtype=torch.bfloat16)`."""
        given = argument(call, "dtype") or argument(call, "torch_dtype")
        if called_name(call) not in _LOADS or given is None:
            return False
        return self._names.qualified(given) in _HALF_TYPES or literal_text(given) in _NAMES
