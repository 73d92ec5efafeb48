"""What the findings of a document depend on besides its own text: files that may be saved, appear or go."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from ta_lint.engine import dependencies
from ta_lint.file import File
from ta_lint.project.around import ImportedBy
from ta_lint.project.layout import changed_names
from ta_lint.project.project import Project, project_of
from ta_lint.project.trail import Importers, Name, Surface, WholeText


@dataclass(frozen=True)
class Needs:
    """The leaves of a document's trail, with the answers that they stood for when it was linted."""

    file: File
    files: Mapping[str, str]
    """Those that were read or seen, with a digest of their content."""
    names: AbstractSet[Name]
    folders: Mapping[str, Mapping[str, bool]]
    """What was in the folders of these names."""
    importers: Mapping[str, ImportedBy]
    """The files that import a file, by its path."""

    def change_with(self, saved: AbstractSet[str]) -> bool:
        """Whether these files, other than the document itself, change what it depends on, now that the disk is looked at anew."""
        project = project_of(self.file.root)
        others = saved - {self.file.absolute}
        if any(_content(project, path) != self.files[path] for path in others & self.files.keys()):
            return True
        changed = {
            folder: changed_names(dict(before), project.layout.listed(folder))
            for folder, before in self.folders.items()
        }
        if any(leaf.name in changed[leaf.folder] for leaf in self.names):
            return True
        around = project.around
        return any(
            other in known.naming
            or other in known.using
            or other in known.launching
            or not around.packages(path).isdisjoint(around.imports(other))
            for other in others
            if other.endswith(".py")
            for path, known in self.importers.items()
        )


def needs_of(file: File, data: bytes) -> Needs:
    """Those of a file with this content, which was just linted."""
    project = project_of(file.root)
    leaves = dependencies(file, data)
    names = {leaf for leaf in leaves if isinstance(leaf, Name)}
    return Needs(
        file,
        {
            leaf.path: _content(project, leaf.path)
            for leaf in leaves
            if isinstance(leaf, (Surface, WholeText))
        },
        names,
        {leaf.folder: project.layout.listed(leaf.folder) for leaf in names},
        {leaf.path: project.around.imported_by(leaf.path) for leaf in leaves if isinstance(leaf, Importers)},
    )


def _content(project: Project, path: str) -> str:
    """A digest of a file, as the project read it."""
    if path not in project.around.contents:
        project.around.bytes_of(path)
    return project.around.contents[path].digest
