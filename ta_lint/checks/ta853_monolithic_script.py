"""TA853: one script contains model, data and training loop."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.loops.scripts import header

KEYWORDS = ("*backward", "step", "forward", ("DataLoader", "*Dataset*"))


def check(module: FileFacts) -> Iterator[Suspicion]:
    entry = module.scripts.entry
    if entry is None or module.scripts.is_one_of_several:
        return
    model = next(
        (klass for klass in module.classes.modules() if module.classes.methods(klass).get("forward")), None
    )
    data = _data(module)
    if model is not None and data is not None:
        message = (
            f"training, data and `{model.name.value}` share a file, which is hard to reuse: split the file"
        )
        related = ((model.name, "the model is defined here"), (data, "the data is made here"))
        yield Suspicion(header(entry), message, related=related)


def _data(module: FileFacts) -> cst.CSTNode | None:
    """A dataset that the file defines, else a loader that it builds."""
    datasets = (
        klass for klass in module.classes.all() if module.classes.derives(klass, "torch.utils.data.Dataset")
    )
    dataset = next(datasets, None)
    if dataset is not None:
        return dataset.name
    return module.loaders.all[0].call if module.loaders.all else None
