"""TA702: code from a hub runs without a pinned revision."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.torch.hub import is_commit, ships_with_transformers
from ta_lint.facts.torch.unpickling import READS_PICKLE
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.tree import Node, argument, spreads

# Calls that trust remote code, calls of `torch.hub`, and downloads from the hub that may be unpickled.
KEYWORDS = (("trust_remote_code", "hub", "hf_hub_download", "snapshot_download", "cached_download"),)

# All three import the repository's `hubconf.py`.
_TORCH_HUB = ("torch.hub.load", "torch.hub.list", "torch.hub.help")

_GITHUB = regex(r"[\w-]+/[\w.-]+(?::(?P<ref>.+))?")
_VERSION = regex(r"\d")  # a tag; branches with a digit are rare, and change little

_LOADED_BY_CONFIG = "from_config"
_REVISIONS = ("revision", "code_revision")


def check(module: FileFacts) -> Iterator[Suspicion]:
    yield from _from_github(module)
    yield from _unpickled(module)
    for call in module.tree.all(cst.Call):
        trusted = module.flow.passed(call, "trust_remote_code")
        if trusted is None or module.boolean(trusted) is not True or _hides(call, module):
            continue
        repository = _repository(call, module)
        if repository is None or module.hub.is_pinned(call, *_REVISIONS):
            continue
        if ships_with_transformers(repository):
            message = f"transformers has the code of `{repository}` itself: drop `trust_remote_code`"
        else:
            message = (
                f"this runs whatever code `{repository}` has on the hub that day: set `revision` to a commit"
            )
        yield Suspicion(call, message, is_note=ships_with_transformers(repository))


def _hides(call: cst.Call, module: FileFacts) -> bool:
    """Whether a call may pass a revision in arguments that are not in sight."""
    return spreads(call) and not all(module.flow.lacks(call, name) for name in _REVISIONS)


def _from_github(module: FileFacts) -> Iterator[Suspicion]:
    for call in module.calls_to(*_TORCH_HUB):
        source = argument(call, "source")
        named = argument(call, "repo_or_dir" if called_name(call) == "load" else "github", 0)
        repository = module.string(named) if named is not None else None
        found = _GITHUB.fullmatch(repository) if repository is not None else None
        if found is None or (source is not None and module.string(source) != "github"):
            continue
        if found["ref"] is None or not (is_commit(found["ref"]) or _VERSION.search(found["ref"])):
            message = f"this runs the newest code of `{repository}`, which may change any day: pin a commit"
            yield Suspicion(call, message)


def _unpickled(module: FileFacts) -> Iterator[Suspicion]:
    for call, reader in module.calls_matching(READS_PICKLE):
        foreign = module.provenance.foreign(call.args[0].value) if call.args else None
        taken = module.hub.taken_by(foreign.node) if foreign is not None else None
        if taken is not None:
            what = f"`{reader.group(0)}` runs any code in a file of `{taken.repository}`"
            message = f"{what}, which may change any day: pin a commit"
            yield Suspicion(call, message, related=((taken.call, "from here"),))


def _repository(call: cst.Call, module: FileFacts) -> str | None:
    """The repository whose code a call trusts; None if the source does not name it."""
    taken = module.hub.taken_by(call)
    if taken is not None:
        return taken.repository
    if called_name(call) != _LOADED_BY_CONFIG or not call.args:
        return None
    config: Node = module.kinds.origin(call.args[0].value)
    made = module.hub.taken_by(config) if isinstance(config, cst.Call) else None
    return made.repository if made is not None else None
