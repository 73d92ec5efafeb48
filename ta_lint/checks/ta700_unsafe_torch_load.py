"""TA700: `torch.load`, or a loader built on it, unpickles and so runs any code in the file."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.torch.unpickling import Unpickled
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.edits import ProposedFix, set_argument
from ta_lint.syntax.tree import Node, argument, spreads

KEYWORDS = (("load", "weights_only"),)


def check(module: FileFacts) -> Iterator[Suspicion]:
    for read in module.unpickling.calls:
        if module.unpickling.foreign(read) is None:  # files from outside are TA701
            yield Suspicion(read.call, read.why, fix=_restricted(read, module))


def _restricted(read: Unpickled, module: FileFacts) -> ProposedFix | None:
    """Load only weights, where that is possible: not with a `pickle_module`, nor before torch 1.13."""
    call = read.call
    if not read.can_restrict or not _holds_weights(call, module):
        return None
    given = argument(call, "weights_only")
    edit = (
        set_argument(call, "weights_only", "True", given) if given is not None or not spreads(call) else None
    )
    return ProposedFix("load weights alone", (edit,)) if edit is not None else None


def _holds_weights(loaded: cst.Call, module: FileFacts) -> bool:
    """Whether the loaded value is only passed to `load_state_dict`."""
    above = module.tree.parent[loaded]
    if _is_handed_over(loaded, module):
        return True
    target = above.targets[0].target if isinstance(above, cst.Assign) and len(above.targets) == 1 else None
    if not isinstance(target, cst.Name):
        return False
    uses = [name for name in module.names.mentions(target) if name is not target]
    return bool(uses) and all(_is_handed_over(name, module) for name in uses)


def _is_handed_over(node: Node, module: FileFacts) -> bool:
    above = module.tree.parent[node]
    call = module.tree.parent[above] if isinstance(above, cst.Arg) else None
    return isinstance(call, cst.Call) and called_name(call) == "load_state_dict"
