"""TA856: a script trains on its own dataset, which nothing validates."""

import re
from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.calls import called_name

KEYWORDS = ("__getitem__",)
AROUND = (
    "*backward",
    "step",
)

# Code that checks values, or filters some out.
_CHECKS = regex(
    r"isnan|isnull|isna|notna|notnull|isfinite|isinf|nan_to_num|dropna|fillna|unique|drop_duplicates|duplicated|verify|"
    r"\w*(valid|check|clean|filter|sanit|dedup|assert)\w*",
    re.IGNORECASE,
)
_OTHER_CHECKS = regex(
    r"\w*(checkpoint|valid_?(loader|loss|acc|ep|data|iter|step))\w*|valid|\w*validat(e|ion)\w*", re.IGNORECASE
)
_COLLECTIONS = regex(r"((torchvision|torchaudio|torchtext)\.)?datasets\.\w+|tensorflow_datasets\.\w+")


def check(module: FileFacts) -> Iterator[Suspicion]:
    if _uses_a_known_collection(module):
        return
    datasets = [
        klass
        for klass in module.classes.all()
        if module.classes.derives(klass, "torch.utils.data.Dataset")
        and "__getitem__" in module.classes.methods(klass)
    ]
    if datasets and not _is_checked(module, datasets) and _trains_alone(module):
        name = datasets[0].name
        yield Suspicion(
            name,
            f"nothing checks the samples of `{name.value}`: look for NaN, duplicates and values out of range",
        )


def _trains_alone(module: FileFacts) -> bool:
    """Whether the files of the script train, and nothing in them checks values."""
    others = module.script[1:]
    return any(file.scripts.entry is not None for file in module.script) and not any(
        _uses_a_known_collection(file) or _is_checked(file, []) for file in others
    )


def _uses_a_known_collection(module: FileFacts) -> bool:
    """Whether the samples may come from a published data set, which others have validated."""
    named = (module.qualified(call.func) or "" for call in module.tree.all(cst.Call))
    return any(_COLLECTIONS.match(name) for name in named)


def _is_checked(module: FileFacts, datasets: list[cst.ClassDef]) -> bool:
    """Whether a dataset rejects anything, or any code of the file checks values."""
    if any(module.tree.within(klass, cst.Assert, cst.Raise, cst.Try) for klass in datasets):
        return True
    called = (called_name(call) or "" for call in module.tree.all(cst.Call))
    return any(_CHECKS.fullmatch(name) and not _OTHER_CHECKS.fullmatch(name) for name in called)
