"""A finding: one pitfall at one place, from the linter or a run."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ta_lint.core.terms import Applicability, Severity, Verdict

__all__ = [
    "Applicability",
    "Cell",
    "Finding",
    "Fix",
    "Holder",
    "Related",
    "Severity",
    "Site",
    "Suppression",
    "TextEdit",
    "Verdict",
]


@dataclass(frozen=True, slots=True)
class Cell:
    """The notebook cell of a place, numbered from 1 among all cells.

    `file_line` is the line in the notebook's JSON file, as a code host counts it.
    """

    number: int
    file_line: int


@dataclass(frozen=True, slots=True)
class Site:
    """A place in a source file, or in a cell of a notebook; lines then count from 1 within the cell.

    `path` is relative to the project root, with forward slashes; lines and columns count from 1 in Unicode
    code points, and `end_column` is exclusive. `name` is the enclosing qualified name (`Net.forward`), empty at
    module level.
    """

    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    name: str = ""
    cell: Cell | None = None

    @property
    def position(self) -> str:
        """The text after the path: `4:5`, or `cell 2:4:5` in a notebook."""
        cell = f"cell {self.cell.number}:" if self.cell is not None else ""
        return f"{cell}{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Suppression:
    """Why a finding does not count: a comment if `in_source`, otherwise a setting outside the file."""

    in_source: bool
    justification: str


@dataclass(frozen=True, slots=True)
class Holder:
    """A function or class around a finding that nothing in its file runs.

    It runs if code elsewhere has one of `names`. `public` says that the name of it, and of what it is in, begins with no underscore;
    `in_script` that its file does something when it runs.
    """

    name: str
    site: Site
    names: tuple[str, ...]
    public: bool
    in_script: bool


@dataclass(frozen=True, slots=True)
class Related:
    """Another place that explains a finding.

    `fingerprint` is how the finding's own would begin at this place. It matches reports of the linter and of a run that
    put one pitfall at different places.
    """

    site: Site
    message: str
    fingerprint: str = ""


@dataclass(frozen=True, slots=True)
class TextEdit:
    """Replaces what stands between two positions, counted as in a `Site`, with `text`; equal positions insert it.

    `shared` marks an import: fixes that need the same one add it once. `cell` is the number of the cell in a notebook.
    """

    line: int
    column: int
    end_line: int
    end_column: int
    text: str
    shared: bool = False
    cell: int | None = None


@dataclass(frozen=True, slots=True)
class Fix:
    """The fix of a finding: edits in order of place that do not overlap and must be applied together."""

    title: str
    edits: tuple[TextEdit, ...]
    applicability: Applicability = Applicability.SAFE


@dataclass(frozen=True, slots=True)
class Finding:
    """One pitfall at one place.

    `observer` is `static`, `runtime`, or `both` for a suspicion that a run confirms or refutes.
    `message` is lower case, present tense, without a full stop. `evidence` holds numbers with their units, as the
    run measured them. `fingerprint` identifies the finding across edits (see `core.fingerprint`). Suppression and
    baseline mark a finding and never drop it.
    """

    rule: str
    message: str
    severity: Severity
    site: Site
    observer: str = "static"
    related: tuple[Related, ...] = ()
    evidence: Mapping[str, float | int | str] = field(default_factory=dict)
    fingerprint: str = ""
    fix: Fix | None = None
    suppression: Suppression | None = None
    baselined: bool = False
    verdict: Verdict | None = None
    """None as long as no run has looked."""
    held_by: tuple[Holder, ...] = ()
    """The definitions around it that may be unused: see `project.reach`."""
    because: str = ""
    """Of a refuted finding what the run looked at, of an unobserved one why it could not look, in a few words."""
    scopes: tuple[tuple[str, str], ...] = ()
    """Of a run's finding that shows elsewhere than where it is caused: path and name of the functions and classes that took
    part."""

    @property
    def counts(self) -> bool:
        """Whether the finding is shown and can fail a run."""
        return self.suppression is None and not self.baselined
