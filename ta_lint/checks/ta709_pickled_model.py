"""TA709: a model is read from a pickle, which runs any code in the file."""

import re
from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.torch.unpickling import READS_PICKLE
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.layout import plain
from ta_lint.syntax.tree import Node, argument, attribute_of_self, dotted

KEYWORDS = (("*pickle*", "*pickle5*", "joblib", "dill", "cloudpickle"),)

_WRITES = regex(r"(_?pickle|cPickle|pickle5|dill|cloudpickle|joblib)\.dumps?")

# Methods that models have and data sets do not.
_MODEL_METHODS = frozenset(
    "decision_function eval forward load_state_dict named_parameters parameters predict predict_proba "
    "state_dict".split()
)

# Attributes of fitted estimators.
_FITTED = frozenset(
    "classes_ cluster_centers_ coef_ estimators_ feature_importances_ intercept_ n_features_in_".split()
)

_MODEL_FILE = regex(
    r"(.*[\\/_.-])?(model|net|network|classifier|regressor|estimator|generator|discriminator|policy|weights|"
    r"checkpoint|clf)"
    r"([_-]?(best|final|last|latest|v?\d[\w.]*))?\.(pkl|pickle|joblib|sav|p|pt|pth|bin)|.*\.(pth|ckpt)",
    re.IGNORECASE,
)
_OPENS = frozenset({"open", "join", "Path", "expanduser", "abspath", "fspath", "str"})


def check(module: FileFacts) -> Iterator[Suspicion]:
    for call, reader in module.calls_matching(READS_PICKLE):
        source = call.args[0].value if call.args else None
        if source is None or _is_own(call, source, module):
            continue
        foreign = module.provenance.foreign(source)
        if foreign is not None and module.hub.taken_by(foreign.node) is not None:
            continue  # unpinned files from the hub are TA702
        name = reader.group(0)
        if _becomes_model(call, module) or _names_model(source, module):
            yield Suspicion(
                call, f"`{name}` of a model runs whatever code the file holds: load only files you trust"
            )


def _becomes_model(call: cst.Call, module: FileFacts) -> bool:
    """Whether the result is used as a model, or as the state of one."""
    if _is_used_so(call, module):
        return True
    above = module.tree.parent[call]
    if not isinstance(above, cst.Assign) or len(above.targets) != 1:
        return False
    target = above.targets[0].target
    parts = [part.value for part in target.elements] if isinstance(target, cst.Tuple) else [target]
    return any(_is_used_so(use, module) for part in parts for use in _uses(part, call, module))


def _uses(target: Node, call: cst.Call, module: FileFacts) -> list[Node]:
    """The uses of a variable that refer to the call's result, or of an attribute in the same class."""
    if isinstance(target, cst.Name):
        bound = ((use, module.names.definition(use)) for use in module.names.mentions(target))
        return [use for use, binding in bound if binding is not None and binding.value is call]
    klass = module.tree.enclosing(call, cst.ClassDef)
    if klass is None or attribute_of_self(target) is None:
        return []
    return [use for use in module.tree.within(klass, cst.Attribute) if dotted(use) == dotted(target)]


def _is_used_so(node: Node, module: FileFacts) -> bool:
    above = module.tree.parent[node]
    if isinstance(above, cst.Attribute):
        if above.attr.value in _FITTED:
            return True
        around = module.tree.parent[above]
        called = isinstance(around, cst.Call) and around.func is above
        return called and above.attr.value in _MODEL_METHODS
    call = module.tree.parent[above] if isinstance(above, cst.Arg) else None
    return isinstance(call, cst.Call) and called_name(call) == "load_state_dict"


def _names_model(source: Node, module: FileFacts) -> bool:
    """Whether the file's name is that of a model: `open("model.pkl", "rb")`."""
    name = module.string(source)
    if name is not None:
        return _MODEL_FILE.fullmatch(name) is not None
    opened = module.kinds.origin(source)
    if isinstance(opened, cst.BinaryOperation):
        return _names_model(opened.right, module)
    if not isinstance(opened, cst.Call) or called_name(opened) not in _OPENS or not opened.args:
        return False
    last = opened.args[-1] if called_name(opened) == "join" else opened.args[0]
    return _names_model(last.value, module)


def _is_own(call: cst.Call, source: Node, module: FileFacts) -> bool:
    """Whether the same function pickled the data that it reads: a copy, or its own file."""
    written = module.kinds.origin(source)
    if isinstance(written, cst.Call) and _WRITES.fullmatch(module.qualified(written.func) or ""):
        return True
    code = plain(source)
    return any(
        module.tree.before(other, call)
        and _WRITES.fullmatch(module.qualified(other.func) or "") is not None
        and (target := argument(other, "file", 1)) is not None
        and plain(target) == code
        for other in module.tree.own(module.tree.home(call), cst.Call)
    )
