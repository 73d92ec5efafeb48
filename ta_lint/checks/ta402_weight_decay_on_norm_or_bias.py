"""TA402: weight decay shrinks normalisation weights and biases that should be excluded."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Kind, Suspicion
from ta_lint.facts.values.parameters import OptimizerCall, ParameterSource
from ta_lint.syntax.tree import Node, argument, dotted, evaluated

KEYWORDS = ("weight_decay", ("parameters", "named_parameters"))

STRONG = 0.05
"""From here on decoupled decay of everything is reported, as in the run."""

_NORM = regex(r"torch\.nn\.(Lazy)?((Batch|Instance)Norm[123]d|SyncBatchNorm|LayerNorm|GroupNorm|RMSNorm)")


def check(module: FileFacts) -> Iterator[Suspicion]:
    for optimizer in module.parameters.optimizers:
        strong = _strongly_decayed(optimizer, module)
        if strong is not None:
            message = f"strong weight decay of `{strong}` also shrinks norm weights and biases: put these in a group without it"
            yield Suspicion(optimizer.call, message)
            continue
        missed = _missed_by_name(optimizer, module)
        if missed is not None:
            name, test = missed
            message = (
                f"norm weights are decayed, as their names do not match `{name}`: pick them by layer type"
            )
            yield Suspicion(optimizer.call, message, related=((test, "the names are compared here"),))


def _strongly_decayed(optimizer: OptimizerCall, module: FileFacts) -> str | None:
    """The model that certainly has norms or biases, and is decayed as a whole."""
    parameters = module.parameters
    sources = optimizer.sources or ()
    if not parameters.is_decoupled(optimizer) or any(source.group or source.part for source in sources):
        return None
    return next(
        (
            dotted(source.model)
            for source in sources
            if _decay(optimizer, source, module) >= STRONG
            and (_norms(source.model, module) or _is_foreign(source.model, module))
        ),
        None,
    )


def _decay(optimizer: OptimizerCall, source: ParameterSource, module: FileFacts) -> float:
    """The weight decay of parameters, the smallest if a setting has several values; 0 if it is not known."""
    known = module.parameters.decay(optimizer, source)
    given = argument(optimizer.call, "weight_decay")
    if known is not None or given is None:
        return known or 0
    settings = [module.number(origin.node) for origin in module.flow.of(given).origins]
    return min((value or 0 for value in settings), default=0)


def _norms(model: Node, module: FileFacts) -> list[cst.Call]:
    return [call for called, call in module.parameters.layers(model) if _NORM.fullmatch(called)]


def _is_foreign(model: Node, module: FileFacts) -> bool:
    """Whether this is a network of another library: they all have norms or biases."""
    made = module.kinds.construction(model)
    called = module.qualified(made.func) if made is not None else None
    return called is not None and not called.startswith("torch.") and module.kind(model) is Kind.MODULE


# -- groups by name -------------------------------------------------------------------------------------------


def _missed_by_name(optimizer: OptimizerCall, module: FileFacts) -> tuple[str, Node] | None:
    """A norm whose weight no name of the group without decay matches, and the comparison of the names."""
    for source in optimizer.sources or ():
        if source.chosen is None or source.group is None or module.parameters.decay(optimizer, source) != 0:
            continue
        names = _names(source.chosen, module)
        if not names or not any("bias" in name or "norm" in name.lower() for name in names):
            continue
        for norm in _norms(source.model, module):
            statement = module.tree.parent[norm]
            target = statement.targets[0].target if isinstance(statement, cst.Assign) else None
            if isinstance(target, cst.Attribute) and not any(
                _may_fit(name, target.attr.value) for name in names
            ):
                return f"{target.attr.value}.weight", source.chosen
    return None


def _names(test: Node, module: FileFacts) -> list[str] | None:
    """The literal names in `any(part in name for part in NAMES)` or `name.endswith(NAMES)`."""
    if not isinstance(test, cst.Call) or len(test.args) != 1:
        return None
    listed: Node = test.args[0].value
    if module.qualified(test.func) == "builtins.any":
        if not isinstance(listed, (cst.GeneratorExp, cst.ListComp)) or not _is_containment(listed.elt):
            return None
        listed = listed.for_in.iter
    elif not (isinstance(test.func, cst.Attribute) and test.func.attr.value == "endswith"):
        return None
    listed = module.kinds.origin(listed)
    if not isinstance(listed, (cst.List, cst.Tuple)):
        return None
    values = [element.value for element in listed.elements]
    names = [evaluated(value) for value in values if isinstance(value, cst.SimpleString)]
    return [str(name) for name in names] if len(names) == len(values) else None


def _is_containment(test: Node) -> bool:
    return isinstance(test, cst.Comparison) and [type(c.operator) for c in test.comparisons] == [cst.In]


def _may_fit(name: str, attribute: str) -> bool:
    """Whether a name may match the parameter path of the weight of a layer with this attribute name.

    `LayerNorm.weight` gives the end of the attribute; a name without a dot may match a module further up.
    """
    layer, dot, tensor = name.rpartition(".")
    if tensor == "bias" and (not dot or not layer):
        return False
    return tensor != "weight" or f"something.{attribute}".endswith(layer)
