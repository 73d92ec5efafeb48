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
    TENSOR = "tensor"
    DATASET = "dataset"
    DATALOADER = "dataloader"
    SAMPLER = "sampler"


# Constructors and annotations by qualified name; the first match decides.
_CONSTRUCTED = (
    (re.compile(r"torch\.optim\.lr_scheduler\.\w+|torch\.optim\.swa_utils\.SWALR"), Kind.SCHEDULER),
    (re.compile(r"transformers\.(\w+\.)*get_\w*schedule\w*"), Kind.SCHEDULER),
    (re.compile(r"torch\.optim\.[A-Z]\w*|torch\.distributed\.optim\.ZeroRedundancyOptimizer"), Kind.OPTIMIZER),
    (re.compile(r"(bitsandbytes\.optim|apex\.optimizers|torch_optimizer|lion_pytorch|prodigyopt)(\.\w+)*\.[A-Z]\w*"),
     Kind.OPTIMIZER),
    (re.compile(r"transformers\.(\w+\.)*(AdamW|Adafactor)|timm\.optim\.(\w+\.)*create_optimizer\w*"), Kind.OPTIMIZER),
    (re.compile(r"torch\.amp\.GradScaler|torch\.distributed\.fsdp\.(\w+\.)*ShardedGradScaler"), Kind.SCALER),
    (re.compile(r"torch\.nn\.\w+Loss"), Kind.CRITERION),
    (re.compile(r"torch\.nn\.(Parameter|Buffer|UninitializedParameter)"), Kind.PARAMETER),
    (re.compile(r"torch\.nn\.(parallel\.)?[A-Z]\w*|torch\.optim\.swa_utils\.AveragedModel"), Kind.MODULE),
    (re.compile(r"torchvision\.models(\.\w+)*\.(?!list_|get_(?!model$)|register_|create_)[a-z]\w*"), Kind.MODULE),
    (re.compile(r"timm\.(models\.(\w+\.)*)?create_model"), Kind.MODULE),
    (re.compile(r"transformers\.(\w+\.)*(?!TF|Flax)\w+(Model|For[A-Z]\w+)\.from_(pretrained|config)"), Kind.MODULE),
    (re.compile(r"torch\.utils\.data\.DataLoader"), Kind.DATALOADER),
    (re.compile(r"torch\.utils\.data\.\w*Sampler"), Kind.SAMPLER),
)  # fmt: skip

# What an instance of a class of this file is, by what the class derives from.
_DERIVED = {
    "torch.nn.Module": Kind.MODULE,
    "torch.optim.Optimizer": Kind.OPTIMIZER,
    "torch.optim.lr_scheduler.LRScheduler": Kind.SCHEDULER,
    "torch.utils.data.DataLoader": Kind.DATALOADER,
    "torch.utils.data.Sampler": Kind.SAMPLER,
}

# Methods of a module that return the module itself.
_FLUENT = frozenset(
    "apply bfloat16 cpu cuda double eval float half requires_grad_ share_memory to to_empty train type".split()
)

# Functions that hand on their first argument, copied, wrapped or changed, as the kind of thing it was.
_HANDS_ON = re.compile(
    r"copy\.(deep)?copy|torch\.compile|torch\.jit\.script|"
    r"torch\.nn\.(DataParallel|parallel\.(\w+\.)?(DataParallel|DistributedDataParallel))|"
    r"torch\.nn\.SyncBatchNorm\.convert_sync_batchnorm|"
    r"torch\.nn\.utils\.(parametrizations\.)?(weight_norm|spectral_norm|orthogonal|remove_weight_norm)"
)

# Annotations that say nothing but what stands in their brackets.
_TRANSPARENT = re.compile(
    r"typing\.(Optional|Union|Annotated|Final|ClassVar)|typing_extensions\.(Annotated|Final)"
)

# The one name pattern that establishes a kind: no other name was safe on real code.
_OPTIMIZER_NAME = re.compile(
    r"(^|_|\.)(opt|optim|optimizer|optimiser)(s|_?[a-zA-Z0-9]{0,12})?$", re.IGNORECASE
)


class Kinds:
    """Kinds from constructors, annotations, fluent calls and `self` attributes bound once."""

    def __init__(self, tree: Tree, names: Names, classes: Classes) -> None:
        self._tree = tree
        self._names = names
        self._classes = classes
        self._kinds: dict[Node, Kind | None] = {}

    def kind(self, node: Node) -> Kind | None:
        """The kind of the value an expression has."""
        if node not in self._kinds:
            self._kinds[node] = None  # a cycle ends here: `model = model.to(device)` may be all there is
            self._kinds[node] = self._inferred(node) or self._declared(node)
        return self._kinds[node]

    def _inferred(self, node: Node) -> Kind | None:
        origin = self.origin(node)
        if isinstance(origin, cst.Param):
            return self._annotated(origin.annotation)
        if isinstance(origin, cst.IfExp):
            return self._common([origin.body, origin.orelse])
        if isinstance(origin, (cst.Name, cst.Attribute)):
            return self._common(
                [value for value in self._alternatives(origin) if not self._same(value, origin)]
            )
        if isinstance(origin, cst.Call) and (kind := self._instance(origin.func)) is not None:
            return kind
        call = self.construction(origin)
        return self._instance(call.func) if call is not None else None

    def _instance(self, constructor: Node) -> Kind | None:
        """The kind of what a class or factory makes."""
        called = self._names.qualified(constructor)
        if called is not None:
            return _constructed(called)
        klass = self._classes.local(constructor)
        if klass is None:
            return None
        return next((kind for base, kind in _DERIVED.items() if self._classes.derives(klass, base)), None)

    def _common(self, values: list[Node]) -> Kind | None:
        """The one kind of all values, `None` aside."""
        kinds = {self.kind(value) for value in values if not _is_none(value)}
        return kinds.pop() if len(kinds) == 1 else None

    def _alternatives(self, node: cst.Name | cst.Attribute) -> list[Node]:
        """All that a name or a `self` attribute may hold; empty if a part of that is hidden."""
        if isinstance(node, cst.Name):
            bound = [_bound_value(binding) for binding in self._names.bindings(node)]
            return [value for value in bound if value is not None] if None not in bound else []
        return self._self_attribute(node)

    def _same(self, value: Node, variable: Node) -> bool:
        """Whether a value is what the variable held before: `self.model.to(device)` for `self.model`."""
        for _ in range(_DEPTH):
            if dotted(value) == dotted(variable):
                return True
            if not isinstance(value, cst.Call):
                return False
            if isinstance(value.func, cst.Attribute) and value.func.attr.value in _FLUENT:
                value = value.func.value
            elif (first := self._first_argument_handed_on(value)) is not None:
                value = first
        return False

    def construction(self, node: Node) -> cst.Call | None:
        """The call that made an expression's value.

        Looks through what hands the value on: `.to(device)` of a module, `deepcopy`, `torch.compile`, `DataParallel`.
        """
        call = self.origin(node)
        for _ in range(_DEPTH):
            if not isinstance(call, cst.Call):
                return None
            inner = self.handed_on(call)
            if inner is None:
                return call
            call = self.origin(inner)
        return None

    def handed_on(self, call: cst.Call) -> Node | None:
        """What a call returns if it is a thing that was there before."""
        if (first := self._first_argument_handed_on(call)) is not None:
            return first
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in _FLUENT:
            receiver = call.func.value
            return receiver if self.kind(receiver) in (Kind.MODULE, Kind.CRITERION) else None
        return None

    def _first_argument_handed_on(self, call: cst.Call) -> Node | None:
        called = self._names.qualified(call.func)
        given = bool(call.args) and not call.args[0].star and call.args[0].keyword is None
        return call.args[0].value if given and called is not None and _HANDS_ON.fullmatch(called) else None

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
        if isinstance(node, cst.Attribute):
            values = self._self_attribute(node)
            return values[0] if len(values) == 1 else None
        if isinstance(node, cst.NamedExpr):
            return node.value
        return None

    def _self_attribute(self, node: cst.Attribute) -> list[Node]:
        """All that `self.x` is assigned; empty for another attribute."""
        klass = self._tree.enclosing(node, cst.ClassDef)
        if klass is None or not (isinstance(node.value, cst.Name) and node.value.value == "self"):
            return []
        return self._classes.attribute(klass, node.attr.value)

    def _declared(self, node: Node) -> Kind | None:
        """The kind by annotation of the variable or attribute that an expression names."""
        if isinstance(node, cst.Name):
            statements = [binding.node for binding in self._names.bindings(node)]
            annotations = [found.annotation for found in statements if isinstance(found, cst.AnnAssign)]
        elif (
            isinstance(node, cst.Attribute)
            and isinstance(node.value, cst.Name)
            and node.value.value == "self"
        ):
            klass = self._tree.enclosing(node, cst.ClassDef)
            annotations = self._classes.annotations(klass, node.attr.value) if klass is not None else []
        else:
            return None
        return self._annotated(annotations[0]) if len(annotations) == 1 else None

    def _annotated(self, annotation: cst.Annotation | None) -> Kind | None:
        return self._typed(annotation.annotation) if annotation is not None else None

    def _typed(self, node: Node) -> Kind | None:
        """The kind of a value whose type is written so, `None` aside."""
        kinds = {self._instance(part) for part in self._type_parts(node) if not _is_none(part)}
        return kinds.pop() if len(kinds) == 1 else None

    def _type_parts(self, node: Node) -> list[Node]:
        """The alternatives of a union, with strings read and `Optional` and its like opened."""
        if isinstance(node, cst.SimpleString):
            try:
                return self._type_parts(cst.parse_expression(str(node.evaluated_value)))
            except cst.ParserSyntaxError:
                return [node]
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.BitOr):
            return [*self._type_parts(node.left), *self._type_parts(node.right)]
        qualified = self._names.qualified(node.value) if isinstance(node, cst.Subscript) else None
        if isinstance(node, cst.Subscript) and qualified is not None and _TRANSPARENT.fullmatch(qualified):
            inner = [item.slice.value for item in node.slice if isinstance(item.slice, cst.Index)]
            inner = inner[:1] if qualified.endswith("Annotated") else inner
            return [part for value in inner for part in self._type_parts(value)]
        return [node]

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


def _is_none(node: Node) -> bool:
    return isinstance(node, cst.Name) and node.value == "None"
