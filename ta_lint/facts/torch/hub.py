"""Models, data sets and code on hubs: the repository that a call names, and whether a revision pins it."""

import re
from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.flow import ValueFlow
from ta_lint.facts.values.kinds import Kinds
from ta_lint.facts.values.names import Names
from ta_lint.syntax.tree import Node, Tree, is_name

_COMMIT = regex(r"[0-9a-f]{7,64}", re.IGNORECASE)

# `owner/name`, or the hub's own models such as `gpt2`. A name that starts with a dot or slash is a path.
_REPOSITORY = regex(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
_FOLDER = regex(
    r"((my_)?(saved_?)?(models?|checkpoints?|ckpts?|weights)|outputs?|out|results?|runs?|tmp|temp|data|"
    r"cache|path|pretrained)/.*|"
    r".*(^|/)(checkpoint-\w+|(path|dir|folder)([_-]\w+)?|\w+[_-](path|dir|folder|script))$",
    re.IGNORECASE,
)
_WRITERS = frozenset("save_pretrained save_model save_to_disk makedirs mkdir isdir exists".split())

# Functions that take a repository of the Hugging Face hub, and the argument that names it.
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

# Any class may define this method, but only those of the hub have `trust_remote_code`.
_ANY_FROM_PRETRAINED = ("pretrained_model_name_or_path", 0)

# Models whose code ships with transformers, of any version that people install today: their repositories hold none.
_SHIPPED = regex(
    r"meta-llama/.*|codellama/.*|mistralai/(mistral|mixtral|ministral|codestral).*|qwen/(code)?qwen(1\.5|2|3).*|"
    r"deepseek-ai/deepseek-(coder|llm|math)-(?!v2).*|google/(gemma|flan|t5|mt5|bert|vit|electra|siglip).*|"
    r"(openai-community/)?gpt2(-\w+)?|openai/(whisper|clip|gpt-oss).*|huggingfacetb/smollm.*|tinyllama/.*|"
    r"eleutherai/(pythia|gpt-neo|gpt-j).*|facebook/(opt|bart|esm2|wav2vec2|hubert|dinov2)[-_].*|facebookai/.*|"
    r"bigscience/bloom.*|(unsloth|nousresearch)/(meta-)?(llama|codellama|qwen[23]|mistral|gemma|smollm|tinyllama).*",
    re.IGNORECASE,
)

# Builders that come with `datasets`: these names are not repositories.
_PACKAGED = frozenset(
    "arrow audiofolder csv imagefolder json pandas parquet pdffolder sql text videofolder webdataset "
    "xml".split()
)


@dataclass(frozen=True, eq=False)
class HubCall:
    """A call that loads from a repository of the hub."""

    call: cst.Call
    repository: str


def is_commit(revision: str) -> bool:
    """Whether a revision is a commit hash, full or abbreviated, which always names the same content."""
    return _COMMIT.fullmatch(revision) is not None


def ships_with_transformers(repository: str) -> bool:
    """Whether transformers has the code of a model itself, so that its repository needs none."""
    return _SHIPPED.fullmatch(repository) is not None


class Hub:
    """Calls that load from the Hugging Face hub."""

    def __init__(self, tree: Tree, names: Names, kinds: Kinds, flow: ValueFlow) -> None:
        self._tree = tree
        self._names = names
        self._kinds = kinds
        self._flow = flow

    def taken_by(self, call: Node) -> HubCall | None:
        """The repository that a call loads from; None if it names none, or may name a path."""
        if not isinstance(call, cst.Call):
            return None
        called = self._names.qualified(call.func) or ""
        place = next((place for pattern, place in _TAKERS if pattern.fullmatch(called)), None)
        if (
            place is None
            and isinstance(call.func, cst.Attribute)
            and call.func.attr.value == "from_pretrained"
        ):
            place = _ANY_FROM_PRETRAINED if self._flow.passed(call, "trust_remote_code") is not None else None
        named = self._flow.passed(call, *place) if place is not None else None
        repository = self._flow.constant(named, self._kinds.string) if named is not None else None
        if repository is None or not _REPOSITORY.fullmatch(repository) or self._is_folder(repository):
            return None
        if called.startswith("datasets.") and repository in _PACKAGED:
            return None
        if is_name(self._flow.passed(call, "local_files_only"), "True"):
            return None
        return HubCall(call, repository)

    def _is_folder(self, repository: str) -> bool:
        """Whether a name looks like a folder, or the file writes to it or checks for it."""
        return _FOLDER.fullmatch(repository) is not None or repository in self._folders

    @cached_property
    def _folders(self) -> frozenset[str]:
        """The strings that this file passes to functions that write or look for a folder."""
        calls = (call for call in self._tree.all(cst.Call) if called_name(call) in _WRITERS)
        named = (self._kinds.string(arg.value) for call in calls for arg in call.args)
        return frozenset(name for name in named if name is not None)

    def is_pinned(self, call: cst.Call, *keywords: str) -> bool:
        """Whether one of the arguments is a commit hash, or a value that the file does not show."""
        return any(
            self._pins(given)
            for keyword in keywords
            if (given := self._flow.passed(call, keyword)) is not None
        )

    def _pins(self, given: Node) -> bool:
        value = self._kinds.origin(given)
        if is_name(value, "None"):
            return False
        revision = self._kinds.string(value)
        return revision is None or is_commit(revision)
