"""What kind of thing an expression is, in the words of PyTorch. Unknown is None, and unknown means silent."""

import re
from enum import StrEnum

import libcst as cst

from ta_lint.facts.classes import Classes
from ta_lint.facts.names import Binding, Names
from ta_lint.facts.tree import Node, Tree, dotted

_DEPTH = 8


class Kind(StrEnum):
    OPTIMIZER = "optimizer"
    SCHEDULER = "scheduler"
    SCALER = "scaler"
    CRITERION = "criterion"
    MODULE = "module"
    PARAMETER = "parameter"
    DATALOADER = "dataloader"
    SAMPLER = "sampler"


# Constructors and annotations by qualified name; the first match decides.
_CONSTRUCTED = (
    (re.compile(r"torch\.optim\.lr_scheduler\.\w+|transformers\.(\w+\.)*get_\w*schedule\w*"), Kind.SCHEDULER),
    (re.compile(r"torch\.optim\.[A-Z]\w*|torch\.distributed\.optim\.ZeroRedundancyOptimizer"), Kind.OPTIMIZER),
    (re.compile(r"(bitsandbytes\.optim|apex\.optimizers|torch_optimizer|lion_pytorch|prodigyopt)(\.\w+)*\.[A-Z]\w*"),
     Kind.OPTIMIZER),
    (re.compile(r"transformers\.(\w+\.)*(AdamW|Adafactor)|timm\.optim\.(\w+\.)*create_optimizer\w*"), Kind.OPTIMIZER),
    (re.compile(r"torch\.amp\.GradScaler|torch\.distributed\.fsdp\.(\w+\.)*ShardedGradScaler"), Kind.SCALER),
    (re.compile(r"torch\.nn\.\w+Loss"), Kind.CRITERION),
    (re.compile(r"torch\.nn\.(Parameter|Buffer|UninitializedParameter)"), Kind.PARAMETER),
    (re.compile(r"torch\.nn\.[A-Z]\w*|torchvision\.models(\.\w+)*\.[a-z]\w*|torch\.hub\.load|torch\.compile"),
     Kind.MODULE),
    (re.compile(r"timm\.create_model|timm\.models\.create_model"), Kind.MODULE),
    (re.compile(r"torch\.utils\.data\.DataLoader"), Kind.DATALOADER),
    (re.compile(r"torch\.utils\.data\.\w*Sampler"), Kind.SAMPLER),
)  # fmt: skip

# Methods of a module that return the module itself.
_FLUENT = frozenset({"to", "cuda", "cpu", "float", "half", "double", "bfloat16", "train", "eval", "requires_grad_"})

# The one name pattern that establishes a kind: no other name was safe on real code.
_OPTIMIZER_NAME = re.compile(r"(^|_|\.)(opt|optim|optimizer|optimiser)(s|_?[a-zA-Z0-9]{0,12})?$", re.IGNORECASE)


class Kinds:
    """Kinds from constructors, annotations, fluent calls and `self` attributes bound once."""

    def __init__(self, tree: Tree, names: Names, classes: Classes) -> None:
        self._tree = tree
        self._names = names
        self._classes = classes

    def kind(self, node: Node) -> Kind | None:
        """The kind of the value an expression has."""
        origin = self.origin(node)
        if isinstance(origin, cst.Param):
            return self._annotated(origin.annotation)
        if not isinstance(origin, cst.Call):
            return None
        called = self._names.qualified(origin.func)
        if called is not None:
            return _constructed(called)
        klass = self._classes.local(origin.func)
        if klass is not None and self._classes.derives(klass, "torch.nn.Module"):
            return Kind.MODULE
        if isinstance(origin.func, cst.Attribute) and origin.func.attr.value in _FLUENT:
            return Kind.MODULE if self.kind(origin.func.value) is Kind.MODULE else None
        return None

    def origin(self, node: Node) -> Node:
        """The expression or parameter that an expression's value comes from.

        Follows names to their one reaching assignment and `self.x` to its one assignment in the class; ends where
        that is not certain, at a call, a literal or a parameter.
        """
        for _ in range(_DEPTH):
            following = self._step(node)
            if following is None:
                return node
            node = following
        return node

    def _step(self, node: Node) -> Node | None:
        if isinstance(node, cst.Name):
            binding = self._names.definition(node)
            return _bound_value(binding) if binding is not None else None
        if isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name) and node.value.value == "self":
            klass = self._tree.enclosing(node, cst.ClassDef)
            values = self._classes.attribute(klass, node.attr.value) if klass is not None else []
            return values[0] if len(values) == 1 else None
        if isinstance(node, cst.NamedExpr):
            return node.value
        return None

    def _annotated(self, annotation: cst.Annotation | None) -> Kind | None:
        if annotation is None:
            return None
        called = self._names.qualified(annotation.annotation)
        if called in ("torch.optim.lr_scheduler.LRScheduler", "torch.optim.lr_scheduler._LRScheduler"):
            return Kind.SCHEDULER
        return _constructed(called) if called is not None else None

    def is_optimizer(self, node: Node) -> bool:
        """An optimizer by its kind, or, where the kind is unknown, by its name."""
        if isinstance(node, cst.Subscript):  # optimizers[0]
            node = node.value
        kind = self.kind(node)
        name = dotted(node)
        return kind is Kind.OPTIMIZER or (
            kind is None and name is not None and _OPTIMIZER_NAME.search(name) is not None
        )

    def is_scaler(self, node: Node) -> bool:
        """A gradient scaler by its kind, or, where the kind is unknown, by its name."""
        kind = self.kind(node)
        name = dotted(node)
        return kind is Kind.SCALER or (kind is None and name is not None and "scaler" in name.lower())


def _bound_value(binding: Binding) -> Node | None:
    if binding.how in ("assign", "with"):
        return binding.value
    return binding.node if binding.how == "param" else None


def _constructed(qualified: str) -> Kind | None:
    return next((kind for pattern, kind in _CONSTRUCTED if pattern.fullmatch(qualified)), None)
