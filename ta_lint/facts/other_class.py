"""The edit that builds an object of another class of torch."""

import libcst as cst

from ta_lint.core.finding import Site
from ta_lint.facts.file_facts import FileFacts
from ta_lint.syntax.edits import ProposedFix, replace


def other_class(module: FileFacts, built: Site, name: str) -> ProposedFix | None:
    """Call `name`, such as `torch.optim.AdamW`, at the place of another class, imported as that is."""
    call = module.call_at(built)
    if call is None:
        return None
    package, _, last = name.rpartition(".")
    imported = isinstance(call.func, cst.Name) and module.spellings.bound(package, call) is None
    spelled = (
        (last, (f"from {package} import {last}",))
        if imported and not module.names.is_bound(last)
        else module.spelled(name, at=call)
    )
    if spelled is None:
        return None
    return ProposedFix(f"use `{last}`", (replace(call.func, spelled[0]),), spelled[1])
