"""The words of a finding, as SARIF and the rule pages have them: how bad it is, what a run says of it, how safe its fix."""

from enum import StrEnum


class Severity(StrEnum):
    """How bad it is, in SARIF's words; `rank` orders them, the worst highest."""

    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"

    @property
    def rank(self) -> int:
        return list(Severity).index(self)


class Verdict(StrEnum):
    """What a run says of a suspicion: it measured the pitfall there, measured that it is not there, or saw nothing."""

    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    UNOBSERVED = "unobserved"


class Applicability(StrEnum):
    """Whether what the program computes stays the same under a fix."""

    SAFE = "safe"
    UNSAFE = "unsafe"
