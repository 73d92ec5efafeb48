"""Edits of loaders that have a sampler: to tell it the epoch, and to leave the order to it."""

import libcst as cst

from ta_lint.core.finding import Site
from ta_lint.facts.file_facts import FileFacts
from ta_lint.syntax.edits import ProposedFix, insert_line_before, remove_argument


def set_epoch(module: FileFacts, site: Site) -> ProposedFix | None:
    """`sampler.set_epoch(epoch)` as the first statement, if both names are visible and the sampler always exists."""
    loader = next((one for one in module.loaders.all if one.call is module.call_at(site)), None)
    given = None if loader is None else loader.given("sampler")
    if loader is None or not isinstance(given, cst.Name) or len(module.names.bindings(given)) != 1:
        return None
    if not isinstance(module.kinds.origin(given), cst.Call):
        return None
    tree = module.tree
    for found in module.loaders.passes_over(loader):
        for epochs in tree.loops(found.loop):
            counted = epochs.target if isinstance(epochs, cst.For) and _counts(epochs, module) else None
            if isinstance(counted, cst.Name) and tree.home(epochs) is tree.home(loader.call):
                line = f"{given.value}.set_epoch({counted.value})"
                edit = insert_line_before(tree, epochs.body.body[0], line)
                return ProposedFix("tell the sampler the epoch", (edit,))
    return None


def _counts(epochs: cst.For, module: FileFacts) -> bool:
    return isinstance(epochs.iter, cst.Call) and module.qualified(epochs.iter.func) == "builtins.range"


def without_shuffle(module: FileFacts, site: Site) -> ProposedFix | None:
    """The loader without its argument `shuffle`, if that is given by name."""
    loader = module.call_at(site)
    given = () if loader is None else loader.args
    arg = next((one for one in given if one.keyword is not None and one.keyword.value == "shuffle"), None)
    if loader is None or arg is None:
        return None
    return ProposedFix("leave the order to the sampler", (remove_argument(loader, arg),))
