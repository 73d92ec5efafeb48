"""TA708: a token, key or password is in the source, where everyone who reads the code can take it."""

import re
from collections import Counter
from collections.abc import Iterator
from math import log2

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.tree import Node, dotted, evaluated, literal_key, literal_text

# Tokens recognised by their prefix, and the service that they belong to.
_FORMATS = (
    ("Hugging Face token", r"(?:hf|api_org)_[A-Za-z0-9]{30,}"),
    ("OpenAI or Anthropic key", r"sk-[A-Za-z0-9_-]{20,}"),
    ("GitHub token", r"(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{40,})"),
    ("GitLab token", r"glpat-[A-Za-z0-9_-]{20,}"),
    ("AWS access key", r"(?:AKIA|ASIA)[A-Z0-9]{16}"),
    ("Google API key", r"AIza[A-Za-z0-9_-]{35}"),
    ("Slack token", r"xox[abprs]-[A-Za-z0-9-]{20,}"),
    ("NVIDIA API key", r"nvapi-[A-Za-z0-9_-]{40,}"),
    ("Replicate token", r"r8_[A-Za-z0-9]{30,}"),
)
_FORMAT = regex(
    "|".join(rf"(?P<f{index}>(?<![\w-]){pattern}(?![\w-]))" for index, (_, pattern) in enumerate(_FORMATS))
)

# Names of credentials. A bare `*_token` is usually a word of a vocabulary.
_HOLDS = regex(
    r"(\w*_)?(api_?key|access_?key(_id)?|secret_?key|private_?key|(client|app|api)_?secret|password|passwd)|"
    r"((hf|hub|huggingface(_hub)?|hugging_face_hub|auth|use_auth|access|api|bearer|github|gitlab|slack|telegram|bot|"
    r"wandb|comet|neptune|neptune_api|replicate|session|refresh)_)*token",
    re.IGNORECASE,
)
_VALUE = r"[A-Za-z0-9_+/.-]{16,}=*"
KEYWORDS = (
    tuple(
        "*key* *token* *secret* *password* *passwd* *login* hf_* api_org_* sk- ghp_* gho_* ghu_* ghr_* ghs_* "
        "github_pat_* glpat- AKIA* ASIA* AIza* xox* nvapi- r8_*".split()
    ),
)

_WHOLE_VALUE = regex(_VALUE)
_PLACEHOLDER = regex(
    r"your|my[_-]|example|xxx|placeholder|change|dummy|fake|test|insert|replace|todo|token|secret|passw|sample|here|"
    r"api_?key|abcdef|12345|dev|default|\.\.\.|(.)\1{4}",
    re.IGNORECASE,
)
# Bits per character: about 3.7 for 40 random hexadecimal digits, more for other random text, less for words.
_LEAST_ENTROPY = 3.0


def check(module: FileFacts) -> Iterator[Suspicion]:
    for text in module.tree.all(cst.SimpleString, cst.FormattedStringText):
        value = text.value if isinstance(text, cst.FormattedStringText) else evaluated(text)
        if not isinstance(value, str):
            continue
        if (known := _known(value)) is not None:
            yield Suspicion(
                text, f"a {known} is in the source, where readers can copy it: read it from the environment"
            )
        elif _is_random(value) and (holder := _holder(text, module)) is not None:
            yield Suspicion(
                text,
                f"the credential for `{holder}` is in the source, where readers can copy it: read it from the environment",
                in_tests=False,
            )


def _known(text: str) -> str | None:
    """The service that a token in a text belongs to, by its format."""
    for found in _FORMAT.finditer(text):
        token = found.group()
        random = any(character.isdigit() or character.isupper() for character in token)
        if random and not _PLACEHOLDER.search(token) and _entropy(token) >= _LEAST_ENTROPY:
            return next(name for index, (name, _) in enumerate(_FORMATS) if found[f"f{index}"] is not None)
    return None


def _is_random(text: str) -> bool:
    """Whether a text is long enough, consists of letters and digits, and is not made of words."""
    return (
        _WHOLE_VALUE.fullmatch(text) is not None
        and any(character.isdigit() for character in text)
        and any(character.isalpha() for character in text)
        and not _PLACEHOLDER.search(text)
        and _entropy(text) >= _LEAST_ENTROPY
    )


def _entropy(text: str) -> float:
    """Shannon entropy in bits per character."""
    return -sum(count / len(text) * log2(count / len(text)) for count in Counter(text).values())


def _holder(text: Node, module: FileFacts) -> str | None:
    """The variable, parameter, key or environment variable that gets a text, if its name is that of a credential."""
    above = module.tree.parent[text]
    name: str | None = None
    if isinstance(above, cst.Arg):
        name = _parameter(above, module)
    elif isinstance(above, cst.Assign) and len(above.targets) == 1:
        name = _target(above.targets[0].target)
    elif isinstance(above, cst.AnnAssign):
        name = _target(above.target)
    elif isinstance(above, cst.DictElement) and above.value is text:
        name = literal_text(above.key)
    elif isinstance(above, cst.Param):
        name = above.name.value
    return name if name is not None and _HOLDS.fullmatch(name) else None


def _parameter(arg: cst.Arg, module: FileFacts) -> str | None:
    call = module.tree.parent[arg]
    if not isinstance(call, cst.Call):
        return None
    if module.qualified(call.func) == "wandb.login":
        return "WANDB_API_KEY"
    if arg.keyword is not None:
        return arg.keyword.value
    sets = called_name(call) in ("get", "setdefault", "getenv", "putenv") and len(call.args) > 1
    return literal_text(call.args[0].value) if sets and arg is call.args[1] else None


def _target(target: Node) -> str | None:
    """The last name of a target: `api_key` for `openai.api_key`, `HF_TOKEN` for `os.environ["HF_TOKEN"]`."""
    if isinstance(target, cst.Subscript):
        return literal_key(target)
    name = dotted(target)
    return name.rpartition(".")[2] if name is not None else None
