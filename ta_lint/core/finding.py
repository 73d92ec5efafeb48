"""A finding: one pitfall at one place, whoever saw it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ta_lint.core.terms import Applicability, Severity, Verdict

__all__ = [
    "Applicability",
    "Cell",
    "Finding",
    "Fix",
    "Related",
    "Severity",
    "Site",
    "Suppression",
    "TextEdit",
    "Verdict",
]


@dataclass(frozen=True, slots=True)
class Cell:
    """The cell of a notebook that a place is in: its number among all cells, from 1.

    `file_line` is the line of the notebook's own file, as a code host counts, that holds the line of the place.
    """

    number: int
    file_line: int


@dataclass(frozen=True, slots=True)
class Site:
    """A place in a source file, or in a cell of a notebook, whose lines then count from 1.

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
        """What follows the path of a place: `4:5`, and in a notebook `cell 2:4:5`."""
        cell = f"cell {self.cell.number}:" if self.cell is not None else ""
        return f"{cell}{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Suppression:
    """Why a finding does not count: `in_source` for a comment, otherwise a setting outside the file."""

    in_source: bool
    justification: str


@dataclass(frozen=True, slots=True)
class Related:
    """Another place that explains a finding.

    `fingerprint` is what the finding's would begin with if it stood there: by it what two observers say of one pitfall at
    different places of it is brought together.
    """

    site: Site
    message: str
    fingerprint: str = ""


@dataclass(frozen=True, slots=True)
class TextEdit:
    """`text` in the place of what stands between two positions, as a `Site` counts them; where they are equal it is
    inserted.

    `shared` marks an import: fixes that bring the same one add it once. `cell` is the number of the cell, in a notebook.
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
    """How a finding can be put right: edits in order of place, which do not overlap and make sense only together."""

    title: str
    edits: tuple[TextEdit, ...]
    applicability: Applicability = Applicability.SAFE


@dataclass(frozen=True, slots=True)
class Finding:
    """One pitfall at one place.

    `observer` is `static`, `runtime`, or, of a suspicion that a run confirms or refutes, `both`.
    `message` is lower case, present tense, without a full stop. `evidence` holds numbers with their units, as the
    run measured them. `fingerprint` names the finding across edits (see `core.fingerprint`); suppression and
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
    """None until a run was asked."""

    @property
    def counts(self) -> bool:
        """Whether it is shown and can fail a run."""
        return self.suppression is None and not self.baselined
