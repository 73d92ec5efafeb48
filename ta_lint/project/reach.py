"""Whether anything in a project names a definition: in code, in a notebook, in settings, in a command."""

import os
import re
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from ta_lint.core.catalogue import rule_of
from ta_lint.core.errors import Unreadable
from ta_lint.core.finding import Finding, Holder, Related, Severity
from ta_lint.core.reading import read
from ta_lint.project.layout import PACKAGE

if TYPE_CHECKING:
    from ta_lint.project.around import Around

# Files that may name a function of the project.
_NAMING = re.compile(
    r".*\.(py|pyi|ipynb|sh|bash|bat|ps1|slurm|sbatch|ya?ml|toml|json|jsonnet|cfg|ini|gin|conf|md|rst|txt)|"
    r"Makefile|Dockerfile.*|Snakefile|Jenkinsfile|README.*|[^.]*"
)
# Code that finds definitions by names which it computes, or all there are.
LOOKS_UP = re.compile(
    rb"\bglobals\(|\blocals\(|\bvars\([^()]*\)\[|__dict__\[|(?<![\w.])(?:eval|exec)\(|\bimport_module\b|\b__import__\(|"
    rb"\bspec_from_file_location\b|\bSourceFileLoader\b|\brun_(?:path|module)\b|\bgetmembers\(|\b__subclasses__\b|"
    rb"\b__init_subclass__\b|\bsys\.modules\[|\bFire\(|\bLightningCLI\(|\bCLI\(\)|\b(?:hydra\.utils\.|hydra_)?instantiate\(|"
    rb"\bgetattr\(\s*(?!self\b|cls\b|args?\b|opt\b|cfg\b|config\b|hparams\b|torch\b|nn\b|optim\b)[\w.]+\s*,\s*(?![\"'])"
)

_SKIPPED = frozenset(
    "site-packages dist-packages node_modules __pycache__ __pypackages__ venv env build dist".split()
)
_INSTALLS = ("setup.py", "setup.cfg", "pyproject.toml", "PKG-INFO")
_MOST_FILES = 3_000
_MOST_BYTES = 48 << 20
_LARGEST = 1 << 20  # of one file, other than a notebook: data


class Reach:
    """The texts of one project, and what they name."""

    def __init__(self, root: str, around: "Around") -> None:
        """`root` is the outermost folder of the project."""
        self._root = root
        self._around = around
        self._naming: dict[str, frozenset[str]] = {}

    def judged(self, finding: Finding, path: str) -> Finding:
        """A finding of a file: a note, which says why, if nothing can run the code that it is in; else of its own severity."""
        if not finding.held_by:
            return finding
        reasons = {holder: _reason(holder) for holder in finding.held_by}
        related = tuple(other for other in finding.related if other not in reasons.values())
        holder = next((one for one in finding.held_by if not self._may_run(one, path)), None)
        if holder is None:
            return replace(finding, severity=rule_of(finding.rule).severity, related=related)
        return replace(finding, severity=Severity.NOTE, related=(*related, reasons[holder]))

    def _may_run(self, holder: Holder, path: str) -> bool:
        """Whether code in other files may run a definition, or nobody can tell."""
        texts = self._texts
        if texts is None or any(self._files_that_name(name) - {path} for name in holder.names):
            return True
        if holder.public and self._is_installed(path):
            return True
        is_imported = path in self._imported
        if is_imported and self._looks_up:
            return True
        return not (holder.in_script or is_imported or os.path.dirname(path) in self._folders_imported_from)

    def _files_that_name(self, name: str) -> frozenset[str]:
        """The files with a use of a name."""
        if name not in self._naming:
            word = re.compile(rb"(?<![A-Za-z0-9_])" + re.escape(name.encode()) + rb"(?![A-Za-z0-9_])")
            texts = (self._texts or {}).items()
            self._naming[name] = frozenset(path for path, data in texts if _uses(path, data, name, word))
        return self._naming[name]

    def _is_installed(self, path: str) -> bool:
        """Whether a file is in a package that others install: they call what is public in it."""
        folder = os.path.dirname(path)
        if not os.path.isfile(os.path.join(folder, PACKAGE)):
            return False
        return any(os.path.isfile(os.path.join(self._root, name)) for name in _INSTALLS)

    @cached_property
    def _looks_up(self) -> bool:
        """Whether any code finds definitions by names that it computes."""
        texts = (self._texts or {}).items()
        return any(path.endswith((".py", ".ipynb")) and LOOKS_UP.search(data) for path, data in texts)

    @cached_property
    def _imported(self) -> frozenset[str]:
        """The files that other files import."""
        code = (path for path in self._texts or {} if path.endswith(".py"))
        return frozenset[str]().union(*(self._around.imports(path) - {path} for path in code))

    @cached_property
    def _folders_imported_from(self) -> frozenset[str]:
        return frozenset(map(os.path.dirname, self._imported))

    @cached_property
    def _texts(self) -> dict[str, bytes] | None:
        """The files that may name something, by path; None if they are too many to tell."""
        found: dict[str, bytes] = {}
        left = _MOST_BYTES
        for folder, folders, names in os.walk(self._root):
            folders[:] = sorted(name for name in folders if name[0] != "." and name not in _SKIPPED)
            for name in sorted(names):
                if not _NAMING.fullmatch(name) or name.startswith("."):
                    continue
                path = os.path.join(folder, name)
                data = _read(path)
                left -= len(data)
                if left < 0 or len(found) >= _MOST_FILES:
                    return None
                found[path] = data
        return found


def _reason(holder: Holder) -> Related:
    return Related(holder.site, f"nothing in this project calls `{holder.name}`")


def _read(path: str) -> bytes:
    code = path.endswith((".py", ".ipynb"))
    try:
        data = read(path, None if code else _LARGEST + 1)
    except Unreadable:
        return b""
    return data if code or len(data) <= _LARGEST else b""


def _uses(path: str, data: bytes, name: str, word: re.Pattern[bytes]) -> bool:
    """Whether a file uses a name. In code a comment does not, nor what means a definition of the file's own."""
    if name.encode() not in data:
        return False
    if not path.endswith(".py"):
        return word.search(data) is not None
    own = re.search(rb"\b(?:def|class)[ \t]+" + re.escape(name.encode()) + rb"\b", data) is not None
    for match in word.finditer(data):
        before = data[data.rfind(b"\n", 0, match.start()) + 1 : match.start()]
        comment = before.find(b"#")
        if comment >= 0 and not re.search(rb"[\"']", before[:comment]):
            continue
        is_import = re.match(rb"[ \t]*(?:from|import)\b", before) is not None
        if not own or is_import or before.endswith(b".") or re.search(rb"[\"'][\w.]*\Z", before):
            return True
    return False
