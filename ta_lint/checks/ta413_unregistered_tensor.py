"""TA413: a tensor on `self` that is neither parameter nor buffer: `.to(device)` and `state_dict()` skip it."""

from collections.abc import Iterator
from enum import StrEnum

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Kind, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.edits import ProposedFix, replace, wrap
from ta_lint.syntax.tree import Node, argument, is_name

_NAMES = (
    "FloatTensor LongTensor Tensor arange bernoulli empty eye from_numpy full linspace logspace normal ones rand randint randn "
    "randperm tensor zeros"
)
_ANY = _NAMES.replace(" ", "|")

KEYWORDS = ("__init__",)
AROUND = (("Parameter", *_NAMES.split()),)

_FACTORY = regex(rf"torch\.(?:{_ANY})")

# Uses of a tensor by code that handles its device or gradient itself, and by code that only needs its values.
_PLACES = frozenset("cpu cuda data device grad is_leaf requires_grad requires_grad_ to type type_as".split())
_NUMBERS = frozenset({"item", "numpy", "tolist"})
_VIEWS = frozenset(
    "clone contiguous cos detach exp expand expand_as flatten float long permute repeat reshape sin squeeze sqrt t transpose "
    "unsqueeze view".split()
)
# Names in code that chooses a device, or makes a tensor learn.
_CHOOSES = frozenset("cuda device new requires_grad requires_grad_ to type_as".split())


# Methods with which a class handles moves itself.
_MOVES = frozenset({"_apply", "cuda", "to"})

# Containers that create a new parameter from a tensor: training it does not train the tensor.
_COPIES = regex(r"torch\.nn\.Parameter(List|Dict)")

_JOINS = regex(r"torch\.(cat|concat|hstack|stack|vstack)")

_DEPTH = 4


class Fate(StrEnum):
    """How an expression uses a tensor."""

    CALCULATED = "calculated"  # with another operand, which decides the device
    PLACED = "placed"  # code handles its device or gradient
    GONE = "gone"  # passed to code that may do anything
    NUMBERS = "numbers"  # only its values are needed, which are the same on any device
    READ = "read"


def check(module: FileFacts) -> Iterator[Suspicion]:
    for klass in module.classes.modules():
        found = [
            suspicion
            for name, assign in module.classes.assignments(klass)
            if assign.value is not None and module.classes.attribute(klass, name) == [assign.value]
            for suspicion in _suspicions(module, klass, name, assign, assign.value)
        ]
        found += _caches(module, klass)
        if found and not any(module.classes.method(klass, move) is not None for move in _MOVES):
            yield from found


def _caches(module: FileFacts, klass: cst.ClassDef) -> Iterator[Suspicion]:
    """Tensors that `forward` makes on the device of its input and keeps while the sizes stay: another device changes no size."""
    for name, assign in module.classes.assignments(klass):
        home, value = module.tree.home(assign), assign.value
        if value is None or not isinstance(home, cst.FunctionDef) or home.name.value != "forward":
            continue
        values = module.classes.attribute(klass, name)
        if len(values) != 2 or not is_name(values[0], "None") or not _is_made_on_device(module, value):
            continue
        condition = next(
            (
                above
                for above in module.tree.ancestors(assign)
                if isinstance(above, (cst.If, cst.FunctionDef))
            ),
            None,
        )
        if not isinstance(condition, cst.If) or not module.tree.contains(condition.body, assign):
            continue
        if _compares_sizes(module, condition.test) and Fate.PLACED not in _fates(module, klass, name):
            message = (
                f"`self.{name}` stays on the device it was made on: make it a buffer, or compare the device"
            )
            yield Suspicion(assign, message, ((values[0], "`None` at first"),))


def _is_made_on_device(module: FileFacts, value: Node) -> bool:
    """Whether a call gets a device that is read from a tensor: `make_mask(n, device=x.device)`."""
    given = argument(value, "device") if isinstance(value, cst.Call) else None
    origin = module.kinds.origin(given) if given is not None else None
    return isinstance(origin, cst.Attribute) and origin.attr.value == "device"


def _compares_sizes(module: FileFacts, test: Node) -> bool:
    """Whether a condition asks for an order or a difference, and not for a device."""
    names = module.tree.within(test, cst.Name)
    if any("device" in name.value or name.value == "is_cuda" for name in names):
        return False
    compared = module.tree.within(test, cst.ComparisonTarget)
    return any(isinstance(one.operator, (cst.NotEqual, cst.LessThan, cst.GreaterThan)) for one in compared)


def _suspicions(
    module: FileFacts, klass: cst.ClassDef, name: str, assign: cst.Assign | cst.AnnAssign, value: Node
) -> Iterator[Suspicion]:
    """What is wrong with an attribute, as far as its uses show."""
    value = _unless_none(value)
    learns = _learns(module, value)
    if isinstance(value, cst.Call) and not learns and module.kind(value) is not Kind.TENSOR:
        return  # a layer, mostly: what all its arguments are made of takes longer to find out
    parts = module.parts.of(value)
    if not _makes_tensor(module, parts) or not _is_at_start(module, assign):
        return
    fates = _fates(module, klass, name)
    if Fate.PLACED in fates or (Fate.NUMBERS in fates and not learns):
        return
    if learns:
        if Fate.GONE not in fates | _fates_before(module, value):
            message = f"`self.{name}` requires gradients but reaches no optimizer: make it an `nn.Parameter`"
            yield Suspicion(assign, message, fix=_as_parameter(module, value))
    elif Fate.CALCULATED in fates and _is_constant(module, parts):
        message = f"`self.{name}` is skipped by `.to()` and `state_dict()`: register it as a buffer"
        yield Suspicion(assign, message, fix=_as_buffer(module, assign, name))


def _unless_none(value: Node) -> Node:
    """The tensor in `torch.tensor(mean) if mean else None`."""
    if isinstance(value, cst.IfExp):
        sides = [side for side in (value.body, value.orelse) if not is_name(side, "None")]
        return sides[0] if len(sides) == 1 else value
    return value


def _is_at_start(module: FileFacts, assign: Node) -> bool:
    """Whether a statement runs while its object is made: in `__init__`, or in a method that only `__init__` calls."""
    home = module.tree.home(assign)
    if not isinstance(home, cst.FunctionDef):
        return False
    if home.name.value == "__init__":
        return True
    homes = [module.tree.home(site) for site in module.calls.sites(home)]
    return bool(homes) and all(
        isinstance(at, cst.FunctionDef) and at.name.value == "__init__" for at in homes
    )


def _makes_tensor(module: FileFacts, parts: list[Node]) -> bool:
    """Whether a value has a part that is a new tensor or parameter."""
    return any(
        _is_new_parameter(module, call) or _FACTORY.fullmatch(module.qualified(call.func) or "")
        for part in parts
        for call in module.tree.within(part, cst.Call)
    )


def _learns(module: FileFacts, value: Node) -> bool:
    """Whether a tensor requires gradients: by its factory, or because it is computed from a new parameter."""
    value = module.kinds.origin(value)
    if isinstance(value, cst.BinaryOperation):
        return any(_is_new_parameter(module, side) for side in (value.left, value.right))
    if not isinstance(value, cst.Call):
        return False
    if called_name(value) == "requires_grad_" and isinstance(value.func, cst.Attribute):
        asked = argument(value, "requires_grad", 0)
        return _is_filled(module, value.func.value) and (asked is None or module.boolean(asked) is True)
    grad = argument(value, "requires_grad")
    return _is_new(module, value) and grad is not None and module.boolean(grad) is True


def _is_new(module: FileFacts, call: cst.Call) -> bool:
    return _FACTORY.fullmatch(module.qualified(call.func) or "") is not None


def _is_filled(module: FileFacts, node: Node) -> bool:
    """Whether a tensor is a new one, with numbers that a method puts into it: `torch.empty(4).normal_()`."""
    made = module.kinds.origin(node)
    while isinstance(made, cst.Call) and isinstance(made.func, cst.Attribute) and not _is_new(module, made):
        if not made.func.attr.value.endswith("_"):
            return False
        made = module.kinds.origin(made.func.value)
    return isinstance(made, cst.Call) and _is_new(module, made)


def _is_new_parameter(module: FileFacts, node: Node) -> bool:
    return isinstance(node, cst.Call) and module.qualified(node.func) == "torch.nn.Parameter"


def _is_constant(module: FileFacts, parts: list[Node]) -> bool:
    """Whether a value is computed only from torch factories, without a device, and is not a scalar."""
    value = parts[0]
    if module.kind(value) is not Kind.TENSOR or module.shapes.shape(value) == ():
        return False
    if any(name.value in _CHOOSES for part in parts for name in module.tree.within(part, cst.Name)):
        return False
    calls = [call for part in parts for call in module.tree.within(part, cst.Call)]
    if any(module.kind(part) in (Kind.MODULE, Kind.PARAMETER) for part in (*parts, *calls)):
        return False  # made with a model, or a parameter that is lost on the way, as in TA412
    made = [call for call in calls if _FACTORY.fullmatch(module.qualified(call.func) or "")]
    return bool(made) and not any(_may_be_scalar(module, call) for call in made)


def _may_be_scalar(module: FileFacts, call: cst.Call) -> bool:
    """Whether a tensor may have no dimensions: a scalar on the CPU combines with tensors on any device."""
    if module.qualified(call.func) != "torch.tensor" or not call.args:
        return False
    above = module.tree.parent[call]
    viewed = module.tree.parent[above] if isinstance(above, cst.Attribute) else None
    if isinstance(viewed, cst.Call) and module.shapes.shape(viewed):
        return False  # `torch.tensor(mean).view(-1, 1, 1)`
    return not isinstance(module.kinds.origin(call.args[0].value), (cst.List, cst.ListComp, cst.Tuple))


def _fates_before(module: FileFacts, value: Node) -> set[Fate]:
    """The ways in which `__init__` uses a tensor under the name that it had before."""
    while isinstance(value, cst.Call) and (called_name(value) or "").endswith("_"):
        value = getattr(value.func, "value", value.func)
    if not isinstance(value, cst.Name):
        return set()
    mentions = [mention for mention in module.names.mentions(value) if mention is not value]
    return {fate for mention in mentions for fate in _fate(module, mention)}


def _fates(module: FileFacts, klass: cst.ClassDef, name: str) -> set[Fate]:
    """The ways in which the program uses the tensor."""
    elsewhere = module.classes.mentions_elsewhere(klass, name)
    fates = set() if elsewhere is not None else {Fate.GONE}
    for mention in [*module.classes.mentions(name), *(elsewhere or ())]:
        if module.classes.may_be_of(mention, klass):
            found = set(_fate(module, mention))
            if Fate.CALCULATED in found and _is_at_start(module, mention):
                found.remove(Fate.CALCULATED)  # no `.to()` comes before
            fates |= (
                found if is_name(mention.value, "self") else found & {Fate.PLACED, Fate.NUMBERS, Fate.GONE}
            )
    return fates


def _fate(module: FileFacts, node: Node, depth: int = _DEPTH) -> Iterator[Fate]:
    """How code uses a tensor, looking through views, and through local names."""
    while True:
        above = module.tree.parent[node]
        match above:
            case cst.BinaryOperation():
                yield Fate.CALCULATED
            case cst.Subscript() if above.value is node:
                node = above
                continue
            case cst.UnaryOperation():
                node = above
                continue
            case cst.Attribute() if above.attr.value in _VIEWS and isinstance(
                module.tree.parent[above], cst.Call
            ):
                node = module.tree.parent[above]
                continue
            case cst.Attribute() if above.attr.value in ("T", "mT"):
                node = above
                continue
            case cst.Attribute():
                yield _fate_of_attribute(above.attr.value)
            case cst.Arg():
                yield _fate_as_argument(module, above)
            case cst.Element():
                yield _fate_as_element(module, above)
            case cst.Return() | cst.Yield():
                yield Fate.GONE
            case cst.Assign() if depth and above.value is node:
                yield from _fates_of_name(module, above, depth - 1)
            case _:
                yield Fate.READ
        return


def _fate_of_attribute(name: str) -> Fate:
    if name in _NUMBERS:
        return Fate.NUMBERS
    return Fate.PLACED if name in _PLACES else Fate.READ


def _fate_as_argument(module: FileFacts, given: cst.Arg) -> Fate:
    call = module.tree.parent[given]
    called = module.qualified(call.func) if isinstance(call, cst.Call) else None
    if called is None and isinstance(call, cst.Call) and module.parameters.is_trainable(call.func):
        return Fate.CALCULATED  # with the weights of a layer
    if called is None or not called.startswith("torch.") or called.startswith("torch.optim."):
        return Fate.GONE
    return Fate.CALCULATED if isinstance(call, cst.Call) and len(call.args) > 1 else Fate.READ


def _fate_as_element(module: FileFacts, element: cst.Element) -> Fate:
    """Of an element of a list: calculated in `torch.cat([a, b])`."""
    whole = module.tree.parent[element]
    given = module.tree.parent[whole]
    call = module.tree.parent[given]
    if isinstance(call, cst.Call) and _COPIES.fullmatch(module.qualified(call.func) or ""):
        return Fate.READ
    joined = isinstance(whole, (cst.List, cst.Tuple)) and len(whole.elements) > 1
    if joined and isinstance(given, cst.Arg) and isinstance(call, cst.Call):
        called = module.qualified(call.func) or ""
        return Fate.CALCULATED if _JOINS.fullmatch(called) else Fate.GONE
    return Fate.GONE


def _fates_of_name(module: FileFacts, assign: cst.Assign, depth: int) -> Iterator[Fate]:
    """The uses of a local name that an assignment gives the tensor to."""
    target = assign.targets[0].target
    if not isinstance(target, cst.Name):
        yield Fate.READ
        return
    for mention in module.names.mentions(target):
        reaching = module.names.definition(mention)
        if reaching is not None and reaching.node is assign and mention is not target:
            yield from _fate(module, mention, depth)


def _as_parameter(module: FileFacts, value: Node) -> ProposedFix | None:
    """`nn.Parameter(torch.zeros(4, requires_grad=True))`; no fix if the value already contains a parameter."""
    spelled = module.spelled("torch.nn.Parameter", value)
    if spelled is None or not isinstance(value, cst.Call):
        return None
    code, imports = spelled
    return ProposedFix("make it a parameter", wrap(value, f"{code}(", ")"), imports)


def _as_buffer(module: FileFacts, assign: cst.Assign | cst.AnnAssign, name: str) -> ProposedFix | None:
    if assign.value is None:
        return None
    code = f'self.register_buffer("{name}", {module.verbatim(assign.value)}, persistent=False)'
    return ProposedFix("make it a buffer", (replace(assign, code),))
