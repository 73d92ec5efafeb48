"""The edit that pins the batches of a loader."""

import libcst as cst

from ta_lint.core.finding import Site
from ta_lint.facts.file_facts import FileFacts
from ta_lint.syntax.edits import Edit, ProposedFix


def pin(module: FileFacts, copy: Site) -> ProposedFix | None:
    """`pin_memory=True` for the loaders whose batch a call copies, if all are made in this file."""
    call = module.call_at(copy)
    batch = call.func.value if call is not None and isinstance(call.func, cst.Attribute) else None
    while isinstance(batch, cst.Subscript):
        batch = batch.value  # batch["pixels"]
    found = module.loaders.pass_of(batch) if isinstance(batch, cst.Name) else None
    edits: list[Edit] = []
    for loader in found.loaders if found is not None else ():
        edit = loader.switched_on("pin_memory")
        if edit is None or not module.is_here(loader.call):
            return None
        edits.append(edit)
    return ProposedFix("pin the memory of the loader's batches", tuple(edits)) if edits else None
