"""TA700: `torch.load` that unpickles runs whatever code the file holds."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import Module, Suspicion
from ta_lint.facts.calls import called_name
from ta_lint.facts.edits import Fix, set_argument
from ta_lint.facts.tree import Node, argument, is_name, spreads

# `.load` of something that is not known to be another library, or an import of `load`, which aliases then call.
_OTHERS = ("json", "pickle", "yaml", "np", "numpy", "jit", "joblib", "toml", "OmegaConf")
_CALL = r"\.load\b" + "".join(rf"(?<!{name}\.load)" for name in _OTHERS)
_IMPORT = r"\bimport\b[^\n]*\bload\b|^\s*load\s*(?:,|\bas\b|\))"

NEEDS = (r"load", r"load\b(?<!\wload)", rf"{_CALL}|{_IMPORT}")

_PICKLE_MODULE = 2  # torch.load(f, map_location, pickle_module, *, weights_only, mmap, ...)


def check(module: Module) -> Iterator[Suspicion]:
    if module.is_test:
        return
    for call in module.calls_to("torch.load"):
        if not spreads(call) and not _was_just_saved(call, module) and (why := _unsafe(call, module)):
            yield Suspicion(call, why, fix=_restricted(call, module))


def _unsafe(call: cst.Call, module: Module) -> str | None:
    """Why a call unpickles, None if it does not, or may not."""
    weights_only = _given(argument(call, "weights_only"))
    if weights_only is not None:
        unsafe = module.boolean(weights_only) is False
        return "`weights_only=False` runs whatever code the file holds" if unsafe else None
    pickle_module = _given(argument(call, "pickle_module", _PICKLE_MODULE))
    if pickle_module is not None:  # it turns the default of weights_only back to False
        known = module.qualified(pickle_module) is not None
        return "`torch.load` with a `pickle_module` runs whatever code the file holds" if known else None
    if module.targets_before(1, 13):
        return "`torch.load` runs whatever code the file holds, and torch before 1.13 has no `weights_only`"
    if module.targets_before(2, 6):
        return "`torch.load` without `weights_only` runs whatever code the file holds, before torch 2.6"
    return None


def _restricted(call: cst.Call, module: Module) -> Fix | None:
    """Load weights alone, where they are; with a `pickle_module`, or before torch 1.13, there is no way to."""
    if _given(argument(call, "pickle_module", _PICKLE_MODULE)) is not None or module.targets_before(1, 13):
        return None
    if not _holds_weights(call, module):
        return None
    written = argument(call, "weights_only")
    edit = set_argument(call, "weights_only", "True", written)
    return Fix("load weights alone", (edit,)) if edit is not None else None


def _holds_weights(loaded: cst.Call, module: Module) -> bool:
    """Whether what is loaded is handed to `load_state_dict`, and to nothing else."""
    above = module.tree.parent[loaded]
    if _is_handed_over(loaded, module):
        return True
    target = above.targets[0].target if isinstance(above, cst.Assign) and len(above.targets) == 1 else None
    if not isinstance(target, cst.Name):
        return False
    uses = [name for name in module.names.mentions(target) if name is not target]
    return bool(uses) and all(_is_handed_over(name, module) for name in uses)


def _is_handed_over(node: Node, module: Module) -> bool:
    above = module.tree.parent[node]
    call = module.tree.parent[above] if isinstance(above, cst.Arg) else None
    return isinstance(call, cst.Call) and called_name(call) == "load_state_dict"


def _given(value: cst.BaseExpression | None) -> cst.BaseExpression | None:
    """An argument, if it is not `None`, which both parameters take for the default."""
    return None if is_name(value, "None") else value


def _was_just_saved(call: cst.Call, module: Module) -> bool:
    """Whether the same function has written the file or buffer before: a file of one's own making is no threat."""
    source = argument(call, "f", 0)
    if source is None:
        return False
    home, name = module.tree.home(call), module.code(source)
    return any(
        module.tree.home(save) is home
        and module.tree.before(save, call)
        and (target := argument(save, "f", 1)) is not None
        and module.code(target) == name
        for save in module.calls_to("torch.save")
    )
