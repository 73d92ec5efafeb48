"""Finds the tokenizers of transformers that a script has built, and the ids that begin, end and pad a row."""

import gc
import sys
import weakref
from itertools import islice
from typing import Any

from torch import nn

from ta_runtime.facts import SpecialTokens

_LIBRARY = "transformers.tokenization_utils_base"
_MARKERS = 16  # that are counted; a chat template has two to six
_LOOKS = 3  # at all objects of the process, until a tokenizer is among them


class Tokenizers:
    """The tokenizers of the process. They are looked for among all objects, once a session: nothing tells when one is built."""

    def __init__(self) -> None:
        self._found: list[weakref.ref[Any]] = []
        self._looks = 0

    def special(self, model: nn.Module) -> SpecialTokens:
        """The special tokens of a model: those that the tokenizers agree on, or, where there is none, of its settings."""
        self._look()
        found = {special_of(tokenizer) for tokenizer in self.living} or {
            special_of(getattr(model, "config", None))
        }
        return found.pop() if len(found) == 1 else SpecialTokens()

    def reader(self, model: nn.Module, row: list[int]) -> Any:
        """The tokenizer that says what the ids of a model mean; None where several would read this row in different ways."""
        self._look()
        known = [tokenizer for tokenizer in self.living if max(row) < len(tokenizer)] or self.living
        name = getattr(model, "name_or_path", "")
        of_model = [tokenizer for tokenizer in known if name and tokenizer.name_or_path == name]
        readers = {decoded(tokenizer, row): tokenizer for tokenizer in of_model or known}
        return readers.popitem()[1] if len(readers) == 1 else None

    def _look(self) -> None:
        if not self.living and self._looks < _LOOKS:
            self._looks += 1
            self._found = [weakref.ref(tokenizer) for tokenizer in _tokenizers()]

    @property
    def markers(self) -> dict[int, str]:
        """The special tokens that may frame a turn, by id; none where the tokenizers do not agree."""
        found = [_markers(tokenizer) for tokenizer in self.living]
        return found[0] if found and all(other == found[0] for other in found) else {}

    @property
    def living(self) -> list[Any]:
        return [tokenizer for reference in self._found if (tokenizer := reference()) is not None]


def _tokenizers() -> list[Any]:
    base = getattr(sys.modules.get(_LIBRARY), "PreTrainedTokenizerBase", None)
    if base is None:
        return []
    kinds = _below(base)
    return [instance for instance in gc.get_objects() if type(instance) in kinds]


def _below(kind: type) -> set[type]:
    found = {kind}
    derived: type
    for derived in kind.__subclasses__():
        found |= _below(derived)
    return found


def _markers(tokenizer: Any) -> dict[int, str]:
    """The special tokens, but some keep hundreds in reserve: of those, the ones with a name, or a place in the chat template."""
    known = set(tokenizer.all_special_ids)
    template = str(getattr(tokenizer, "chat_template", None) or "")
    others = {getattr(tokenizer, f"{name}_token_id", None) for name in ("eos", "pad", "unk")}
    found = {
        number: str(token)
        for number, token in getattr(tokenizer, "added_tokens_decoder", {}).items()
        if number not in others and (number in known or token.special)
    }
    if len(found) > _MARKERS:
        found = {number: token for number, token in found.items() if number in known or token in template}
    return dict(islice(found.items(), _MARKERS))


def decoded(tokenizer: Any, ids: list[int]) -> str:
    """Ids as text, as they are; an id that the tokenizer does not know as its number."""
    if ids and not 0 <= min(ids) <= max(ids) < len(tokenizer):
        return " ".join(f"#{number}" for number in ids)
    return str(tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False))


def special_of(source: Any) -> SpecialTokens:
    """The special tokens that a tokenizer, or the settings of a model, name."""
    ids = (getattr(source, f"{name}_token_id", None) for name in ("bos", "eos", "pad"))
    return SpecialTokens(*(number if isinstance(number, int) else None for number in ids))
