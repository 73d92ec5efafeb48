"""TA628: a count or a best score is saved in a checkpoint, but the code that resumes never reads it."""

import re
from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.torch.checkpoints import SavedDict
from ta_lint.syntax.tree import Node, literal_text

KEYWORDS = ("load", "load_state_dict", "state_dict")

_COUNT = regex(
    r"(global_?|current_?|cur_?|train_?|last_?|start_?|n_?)?(steps?|epochs?|iter|iters|iteration|iterations|iter_num)|best_\w+",
    re.IGNORECASE,
)


def check(module: FileFacts) -> Iterator[Suspicion]:
    if not _resumes(module):
        return
    for saved in module.checkpoints.saved:
        if not any(module.checkpoints.role(value) == "optimizer" for value in saved.entries.values()):
            continue
        for key, value in saved.entries.items():
            if _COUNT.fullmatch(key) and not _is_state(value) and not _is_read(module, key, saved):
                message = f"`{key}` is saved and never read back, so a resumed run starts at 0: read it"
                yield Suspicion(value, message)


def _resumes(module: FileFacts) -> bool:
    """Whether all that the file loads is read by key here, and the state of an optimizer is restored of it."""
    checkpoints = module.checkpoints
    if not checkpoints.loaded or len(checkpoints.loaded) < len(module.calls_to("torch.load")):
        return False
    restored = [
        owner
        for load in checkpoints.loaded
        for reads in load.reads.values()
        for read in reads
        if (owner := checkpoints.restored(read)) is not None
    ]
    return any(checkpoints.role_of(owner) == "optimizer" for owner in restored)


def _is_state(value: Node) -> bool:
    """Whether it is the state of an object."""
    return isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute) and not value.args


def _is_read(module: FileFacts, key: str, saved: SavedDict) -> bool:
    """Whether a key appears anywhere except as a key of a dictionary, or where it is put into this one."""
    return any(
        literal_text(text) == key and not _is_key(text, module) and not _is_put(text, saved, module)
        for text in module.tree.all(cst.SimpleString)
    )


def _is_key(text: Node, module: FileFacts) -> bool:
    above = module.tree.parent[text]
    return isinstance(above, cst.DictElement) and above.key is text


def _is_put(text: Node, saved: SavedDict, module: FileFacts) -> bool:
    return module.tree.enclosing(text, cst.AssignTarget) is not None and saved.writes(text, module.tree)
