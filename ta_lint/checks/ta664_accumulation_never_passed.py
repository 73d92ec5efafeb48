"""TA664: `accelerator.accumulate(...)` of an `Accelerator` without a number of batches: it never accumulates."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.accumulating import is_set_later, is_told, maker
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.tree import Node, argument, dotted, literal_key, literal_text

KEYWORDS = ("accumulate",)
AROUND = ("Accelerator", "*accum*")

# The numbers of batches that somebody may want to accumulate.
_COUNTS = range(2, 1025)
_OF_A_NUMBER = ("step", "grad", "iter", "every", "batch", "num")


def check(module: FileFacts) -> Iterator[Suspicion]:
    reported: set[Node] = set()
    for call in module.tree.all(cst.Call):
        made = maker(call, module) if called_name(call) == "accumulate" else None
        if made is None or made in reported or is_told(made) or is_set_later(module):
            continue
        setting = _setting(module)
        if setting is not None and not _is_in_batches(module):
            reported.add(made)
            message = "nothing is accumulated: pass `gradient_accumulation_steps` to `Accelerator`"
            related = ((made, "made here"), (setting, "the setting that it does not get"))
            yield Suspicion(call, message, related)


def _is_in_batches(module: FileFacts) -> bool:
    """Whether a loader's batches already hold all that were to be accumulated: `batch_size=size * steps`."""
    enlarged = {
        _last_name(target)
        for facts in module.script
        for made in facts.tree.all(cst.Assign)
        for target in made.targets
        if _is_enlarged(made.value)
    }
    sizes = (loader.given("batch_size") for facts in module.script for loader in facts.loaders.all)
    return any(size is not None and (_is_enlarged(size) or _last_name(size) in enlarged) for size in sizes)


def _is_enlarged(value: Node) -> bool:
    """Whether a value is a product with the number of batches to accumulate."""
    match value:
        case cst.BinaryOperation(left=left, operator=cst.Multiply(), right=right):
            return _is_enlarged(left) or _is_enlarged(right)
    return _is_of_accumulation(_last_name(value))


def _last_name(node: Node) -> str:
    """The `batch_size` of `batch_size`, `args.batch_size`, `config["batch_size"]` and an assignment to one of them."""
    if isinstance(node, cst.Subscript):
        return literal_key(node) or ""
    inner = node.target if isinstance(node, cst.AssignTarget) else node
    return (dotted(inner) or "").rpartition(".")[2]


def _setting(module: FileFacts) -> Node | None:
    """An option, an attribute of a configuration or a variable of the program that says how many batches to accumulate."""
    for facts in module.script:
        nodes: list[Node] = facts.tree.all(
            cst.Attribute, cst.Param, cst.SimpleString, cst.AssignTarget, cst.AnnAssign
        )
        for node in nodes:
            given = _given(node, facts)
            number = facts.number(given) if given is not None else None
            name = _written(node)
            if (_names_a_number(name) and number != 1) or (_is_of_accumulation(name) and number in _COUNTS):
                return node
    return None


def _written(node: Node) -> str:
    if isinstance(node, cst.Attribute):
        is_own = "accel" in (dotted(node.value) or "")
        return "" if is_own else node.attr.value
    if isinstance(node, cst.Param):
        return node.name.value
    if isinstance(node, (cst.AssignTarget, cst.AnnAssign)):
        return node.target.value if isinstance(node.target, cst.Name) else ""
    return literal_text(node) or ""


def _names_a_number(text: str) -> bool:
    return _is_of_accumulation(text) and any(part in text.lower() for part in _OF_A_NUMBER)


def _is_of_accumulation(text: str) -> bool:
    return text.replace("-", "_").strip("_").isidentifier() and "accum" in text.lower()


def _given(node: Node, facts: FileFacts) -> Node | None:
    """The value that a variable, a default or an entry of a dictionary has where it is named."""
    above = facts.tree.parent[node]
    match node, above:
        case (cst.AssignTarget(), cst.Assign(value=value)) | (cst.AnnAssign(value=value), _):
            return value
        case (cst.SimpleString(), cst.DictElement(key=key, value=value)) if key is node:
            return value
        case (cst.SimpleString(), cst.Arg()):  # an option may be given another number than its default 1
            call = facts.tree.parent[above]
            default = argument(call, "default") if isinstance(call, cst.Call) else None
            return default if default is not None and facts.number(default) != 1 else None
    return None
