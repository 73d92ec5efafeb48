"""TA403: weight decay shrinks the rows of an embedding, even rows that a batch does not use."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.parameters import OptimizerCall

KEYWORDS = (
    ("AdamW", "weight_decay"),
    ("parameters", "named_parameters"),
)
AROUND = ("Embedding",)


def check(module: FileFacts) -> Iterator[Suspicion]:
    for optimizer in module.parameters.optimizers:
        embedding = _decayed_embedding(optimizer, module)
        if embedding is not None:
            related = ((embedding, "an embedding of the model"),)
            yield Suspicion(
                optimizer.call,
                "weight decay also shrinks embeddings of tokens not in the batch: give embeddings `weight_decay=0`",
                related,
            )


def _decayed_embedding(optimizer: OptimizerCall, module: FileFacts) -> cst.Call | None:
    for source in optimizer.sources or ():
        if source.part or not module.parameters.decay(optimizer, source):
            continue
        for called, call in module.parameters.layers(source.model):
            if called == "torch.nn.Embedding" and not _is_special(call, module):
                return call
    return None


def _is_special(call: cst.Call, module: FileFacts) -> bool:
    """Whether the class of an embedding ties or freezes weights."""
    region = module.tree.enclosing(call, cst.ClassDef) or module.tree.root
    return any(
        attribute.attr.value in ("requires_grad", "requires_grad_")
        or (attribute.attr.value == "weight" and isinstance(module.tree.parent[attribute], cst.AssignTarget))
        for attribute in module.tree.within(region, cst.Attribute)
    )
