"""TA322: batch means are added up and divided by the number of samples."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.loops.totals import added_to, divisions
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.edits import ProposedFix, replace_with_atom
from ta_lint.syntax.tree import Node, is_name

KEYWORDS = ("dataset", "len")


def check(module: FileFacts) -> Iterator[Suspicion]:
    for node, total, divisor in divisions(module.tree):
        loader = _counted(divisor, module)
        if loader is None or _is_of_single_samples(loader, module):
            continue
        added = added_to(total, module.tree)
        means = [module.losses.means(value) for value in added]
        if not means or not all(means):
            continue
        message = (
            f"`{module.code(total)}` is too small: divide the sum of batch means by the number of batches"
        )
        yield Suspicion(
            node, message, ((added[0], "the mean of a batch is added"),), _fix(divisor, loader, module)
        )


def _counted(divisor: Node, module: FileFacts) -> Node | None:
    """The loader whose samples a number counts: `loader` of `len(loader.dataset)`."""
    counted = module.kinds.origin(divisor)
    if not isinstance(counted, cst.Call) or called_name(counted) != "len" or len(counted.args) != 1:
        return None
    held = counted.args[0].value
    is_of_loader = isinstance(held, cst.Attribute) and held.attr.value == "dataset"
    return held.value if isinstance(held, cst.Attribute) and is_of_loader else None


def _is_of_single_samples(loader: Node, module: FileFacts) -> bool:
    """Whether a batch has one sample, so that its mean is that of the sample."""
    made = module.loaders.behind(loader)
    sizes = [one.given("batch_size") for one in made]
    return bool(made) and all(
        one.spreads or size is None or module.number(size) == 1 for one, size in zip(made, sizes, strict=True)
    )


def _fix(divisor: Node, loader: Node, module: FileFacts) -> ProposedFix | None:
    """Divides by the number of batches, unless the number of samples has a name."""
    if not isinstance(divisor, cst.Call) or is_name(loader, "self"):
        return None
    return ProposedFix(
        "divide by the number of batches",
        (replace_with_atom(divisor.args[0].value, module.verbatim(loader)),),
    )
