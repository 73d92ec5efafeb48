"""The edit that copies a value."""

from ta_lint.core.finding import Site
from ta_lint.facts.file_facts import FileFacts
from ta_lint.syntax.edits import ProposedFix, wrap


def copied(module: FileFacts, made: Site) -> ProposedFix | None:
    """A deep copy of what the call at a place gives."""
    call = module.call_at(made)
    spelled = None if call is None else module.spelled("copy.deepcopy", at=call)
    if call is None or spelled is None:
        return None
    return ProposedFix("copy it", wrap(call, f"{spelled[0]}(", ")"), spelled[1])
