"""Models, data sets and code on hubs: which repository a call names, and whether a revision pins it."""

import re
from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.kinds import Kinds
from ta_lint.facts.values.names import Names
from ta_lint.syntax.tree import Node, Tree, argument, is_name

_COMMIT = regex(r"[0-9a-f]{7,64}", re.IGNORECASE)

# `owner/name`, or the name of one of the hub's own: `gpt2`. What starts with a dot or a slash is a path.
_REPOSITORY = regex(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
_FOLDER = regex(
    r"((my_)?(saved_?)?(models?|checkpoints?|ckpts?|weights)|outputs?|out|results?|runs?|tmp|temp|data|"
    r"cache|path|pretrained)/.*|"
    r".*(^|/)(checkpoint-\w+|(path|dir|folder)([_-]\w+)?|\w+[_-](path|dir|folder|script))$",
    re.IGNORECASE,
)
_WRITERS = frozenset("save_pretrained save_model save_to_disk makedirs mkdir isdir exists".split())

# What takes a repository of the Hugging Face hub, and the argument that names it.
_TAKERS = (
    (regex(r"(transformers|diffusers|peft|optimum|auto_gptq|trl)(\.\w+)*\.from_pretrained"),
     ("pretrained_model_name_or_path", 0)),
    (regex(r"datasets(\.\w+)*\.(load_dataset|load_dataset_builder|get_dataset_config_names|"
                r"get_dataset_split_names|load_metric)"), ("path", 0)),
    (regex(r"evaluate(\.\w+)*\.load"), ("path", 0)),
    (regex(r"huggingface_hub(\.\w+)*\.(hf_hub_download|snapshot_download|cached_download)"),
     ("repo_id", 0)),
    (regex(r"transformers(\.\w+)*\.pipeline"), ("model", 1)),
    (regex(r"sentence_transformers(\.\w+)*\.(SentenceTransformer|CrossEncoder)"),
     ("model_name_or_path", 0)),
    (regex(r"vllm(\.\w+)*\.LLM"), ("model", 0)),
)  # fmt: skip

# Any class may have this method, but only those of the hub are asked to trust its code.
_ANY_FROM_PRETRAINED = ("pretrained_model_name_or_path", 0)

# Loaders that `datasets` brings along: what they read is no repository.
_PACKAGED = frozenset(
    "arrow audiofolder csv imagefolder json pandas parquet pdffolder sql text videofolder webdataset "
    "xml".split()
)


@dataclass(frozen=True, eq=False)
class HubCall:
    """A call that takes something from a repository of the hub."""

    call: cst.Call
    repository: str


def is_commit(revision: str) -> bool:
    """Whether a revision is the hash of a commit, whole or shortened, and so names one content for ever."""
    return _COMMIT.fullmatch(revision) is not None


class Hub:
    """Calls that take from the Hugging Face hub."""

    def __init__(self, tree: Tree, names: Names, kinds: Kinds) -> None:
        self._tree = tree
        self._names = names
        self._kinds = kinds

    def taken_by(self, call: Node) -> HubCall | None:
        """What a call takes from the hub; None where it names none, or may name a path."""
        if not isinstance(call, cst.Call):
            return None
        called = self._names.qualified(call.func) or ""
        place = next((place for pattern, place in _TAKERS if pattern.fullmatch(called)), None)
        if (
            place is None
            and isinstance(call.func, cst.Attribute)
            and call.func.attr.value == "from_pretrained"
        ):
            place = _ANY_FROM_PRETRAINED if argument(call, "trust_remote_code") is not None else None
        named = argument(call, *place) if place is not None else None
        repository = self._kinds.string(named) if named is not None else None
        if repository is None or not _REPOSITORY.fullmatch(repository) or self._is_folder(repository):
            return None
        if called.startswith("datasets.") and repository in _PACKAGED:
            return None
        if is_name(argument(call, "local_files_only"), "True"):
            return None
        return HubCall(call, repository)

    def _is_folder(self, repository: str) -> bool:
        """Whether a name is a folder by its look, or as the file writes to it or asks for it."""
        return _FOLDER.fullmatch(repository) is not None or repository in self._folders

    @cached_property
    def _folders(self) -> frozenset[str]:
        """The strings that this file gives to what writes or looks for a folder."""
        calls = (call for call in self._tree.all(cst.Call) if called_name(call) in _WRITERS)
        named = (self._kinds.string(arg.value) for call in calls for arg in call.args)
        return frozenset(name for name in named if name is not None)

    def is_pinned(self, call: cst.Call, *keywords: str) -> bool:
        """Whether one of the arguments gives the hash of a commit, or something that cannot be seen."""
        return any(
            self._pins(given) for keyword in keywords if (given := argument(call, keyword)) is not None
        )

    def _pins(self, given: Node) -> bool:
        value = self._kinds.origin(given)
        if is_name(value, "None"):
            return False
        revision = self._kinds.string(value)
        return revision is None or is_commit(revision)
