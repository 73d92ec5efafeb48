"""One invariant: what it says, where it holds, and on what evidence."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

ATTRIBUTES = ("phase", "rank", "class", "autocast", "requires_grad")
"""What a precondition may be about: the phase; `first` or `other` rank; the name of a module event, or of the module that
holds a state; and two flags, `yes` or `no`. Never a step, a process or a thread."""


@dataclass(frozen=True)
class Invariant:
    """What always holds, of one template, under at most two conditions, all of which must be met."""

    template: str
    """The stem of a module of `templates`."""
    terms: Mapping[str, str | int | float]
    """What the template is filled with, such as `{"parent": "torch.optim.AdamW.step", "child": "parameter changed"}`."""
    where: Mapping[str, str]
    """Attributes of `ATTRIBUTES` and their values; empty: everywhere."""
    holds: int = 0
    """How often it was seen to hold; it was never seen to fail."""
    runs: int = 0
    suppressed: bool = False
    note: str = ""
    """For people: why it was suppressed, say."""
    covered_by: str = ""
    """A rule of the run that sees the same, to which it is left where that is on: of those that are shipped."""

    @cached_property
    def id(self) -> str:
        """Of what it says and where, so that it stays the same when it is learned again: `contain-3f9a2c51`."""
        said = json.dumps([self.template, dict(self.terms), dict(self.where)], sort_keys=True)
        return f"{self.template}-{hashlib.sha256(said.encode()).hexdigest()[:8]}"
