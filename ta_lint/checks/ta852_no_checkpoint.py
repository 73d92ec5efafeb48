"""TA852: a script trains a model but never saves it."""

import re
from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.loops.scripts import header
from ta_lint.facts.values.calls import called_name

KEYWORDS = ("*backward", "step", "*parameters")

# Calls that may save a model: `torch.save`, `save_checkpoint`, `model.save_pretrained`, `pickle.dump`, `onnx.export`.
_KEEPS = regex(
    r"(?!savefig|save_?image|imsave|imwrite|save_(?:fig|plot|sample|result)\w*|should_\w*)"
    r"\w*(?:save|saving|checkpoint|ckpt|snapshot|dump|export|serialize|push_to_hub|upload|persist|store_)\w*",
    re.IGNORECASE,
)
_RESTORES = regex(r"load|restore|resume|from_|latest|find|get_", re.IGNORECASE)

# Scripts that only measure training.
_MEASURES = regex(r"bench|profil|speed|perf|throughput|memory|debug|smoke|lr_?find", re.IGNORECASE)


def check(module: FileFacts) -> Iterator[Suspicion]:
    entry = module.scripts.own_entry
    if entry is None or _MEASURES.search(module.source.path):
        return
    if module.script and not any(_keeps(call) for file in module.script for call in file.tree.all(cst.Call)):
        steps = tuple((step.call, "it is trained here") for step in module.loops.steps)
        yield Suspicion(
            header(entry),
            "the trained model is lost when this script ends: save its `state_dict()`",
            related=steps[:1],
        )


def _keeps(call: cst.Call) -> bool:
    name = called_name(call) or ""
    return _KEEPS.fullmatch(name) is not None and _RESTORES.match(name) is None
