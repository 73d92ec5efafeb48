"""The enums of findings and settings, in the words of SARIF and the rule pages: severity, verdict of a run, safety of a fix, tests."""

from enum import StrEnum


class Severity(StrEnum):
    """The severity, in SARIF's words; `rank` orders them, the worst highest."""

    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"

    @property
    def rank(self) -> int:
        return list(Severity).index(self)


class Verdict(StrEnum):
    """The verdict of a run on a suspicion: it measured the pitfall, measured its absence, or did not observe the place."""

    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    UNOBSERVED = "unobserved"


class Applicability(StrEnum):
    """Whether a fix preserves what the program computes."""

    SAFE = "safe"
    UNSAFE = "unsafe"


class InTests(StrEnum):
    """What is done in test files about the rules that are about other code (`tests = false` on their pages)."""

    SKIP = "skip"
    """They are not looked for."""
    NOTE = "note"
    """What they find is a note."""
    LINT = "lint"
    """They are looked for as in any other file."""
