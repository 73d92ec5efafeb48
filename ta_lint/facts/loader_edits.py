"""The edit that keeps the last batch of a loader."""

from ta_lint.core.finding import Site
from ta_lint.facts.file_facts import FileFacts
from ta_lint.syntax.edits import ProposedFix, replace_with_atom
from ta_lint.syntax.tree import is_name


def keep_last(module: FileFacts, site: Site) -> ProposedFix | None:
    """`drop_last=False` for `drop_last=True`."""
    loader = next((one for one in module.loaders.all if one.call is module.call_at(site)), None)
    dropping = None if loader is None else loader.given("drop_last")
    if dropping is None or not is_name(dropping, "True"):
        return None
    return ProposedFix("keep the last batch", (replace_with_atom(dropping, "False"),))
