"""The state of an open file in the client: its text, or the cells of a notebook."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

from lsprotocol import types
from pygls.uris import to_fs_path
from pygls.workspace import TextDocument, Workspace

from ta_lint.core.lines import LINE_END
from ta_lint.core.source import NOTEBOOK, source_of
from ta_lint.discovery import SUFFIXES
from ta_lint.texts import bytes_of_text

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


@dataclass(frozen=True)
class TextPart:
    """One text: a file, or a cell of a notebook."""

    uri: str
    version: int | None
    text: str
    language: str | None
    is_code: bool = True

    @cached_property
    def lines(self) -> list[str]:
        """The lines without line ends."""
        return LINE_END.split(self.text)


@dataclass(frozen=True)
class Document:
    """A file, which is one part, or a notebook, whose parts are all its cells."""

    uri: str
    path: Path
    parts: tuple[TextPart, ...]
    has_cells: bool = False

    @cached_property
    def data(self) -> bytes:
        """The bytes of the file if it were saved; of a notebook only what matters to the linter."""
        if not self.has_cells:
            return bytes_of_text(self.parts[0].text)
        return json.dumps({"cells": [_cell(part) for part in self.parts], "metadata": {}}).encode()

    def texts(self, data: bytes) -> list[str]:
        """The text of each part in other `data` of the same file.

        Raises:
            Unreadable: `data` is not text.
        """
        if self.has_cells:
            return [cell["source"] for cell in json.loads(data)["cells"]]
        if self.path.suffix == NOTEBOOK:
            return [data.decode("utf-8")]
        return [source_of(self.path.name, data).text]


def _cell(part: TextPart) -> dict[str, object]:
    kind = "code" if part.is_code else "markdown"
    metadata = {"vscode": {"languageId": part.language}} if part.language else {}
    return {"cell_type": kind, "metadata": metadata, "source": part.text}


def lines_with_ends(text: str) -> list[str]:
    """The lines of a text as the protocol counts them, without an empty last one."""
    return _LINE.findall(text)


class _TextDocument(TextDocument):
    """A text document with the protocol's line ends. pygls also ends lines at form feeds and others."""

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(lines_with_ends(self.source))


class Documents(Workspace):
    """All open documents."""

    def _create_text_document(
        self,
        doc_uri: str,
        source: str | None = None,
        version: int | None = None,
        language_id: str | None = None,
    ) -> TextDocument:
        codec, kind = self.position_codec, types.TextDocumentSyncKind.Incremental
        return _TextDocument(doc_uri, source, version, language_id, sync_kind=kind, position_codec=codec)

    def at(self, uri: str) -> Document | None:
        """The open document with this URI, or the notebook of the cell; None if ta-lint does not lint it."""
        notebook = self.get_notebook_document(notebook_uri=uri) or self.get_notebook_document(cell_uri=uri)
        if notebook is not None:
            return self._notebook(notebook)
        return next((self._file(text) for text in self.text_documents.values() if text.uri == uri), None)

    def uris(self) -> Iterator[str]:
        """The URIs of open files and notebooks."""
        for text in self.text_documents.values():
            if self.get_notebook_document(cell_uri=text.uri) is None:
                yield text.uri
        yield from (notebook.uri for notebook in self.notebook_documents.values())

    def _file(self, text: TextDocument) -> Document | None:
        path = self._path(text.uri)
        if path is None or not (path.suffix in SUFFIXES or text.language_id == "python"):
            return None
        return Document(text.uri, path, (_part(text),))

    def _notebook(self, notebook: types.NotebookDocument) -> Document | None:
        path = self._path(notebook.uri)
        if path is None:
            return None
        texts: Mapping[str, TextDocument] = {text.uri: text for text in self.text_documents.values()}
        cells: Iterable[TextPart | None] = (
            _part(texts[cell.document], is_code=cell.kind == types.NotebookCellKind.Code)
            if cell.document in texts
            else None
            for cell in notebook.cells
        )
        parts = tuple(cell for cell in cells if cell is not None)
        return Document(notebook.uri, path.with_suffix(NOTEBOOK), parts, has_cells=True)

    def _path(self, uri: str) -> Path | None:
        """The path of a document, assumed if it was never saved; None if it is not a file, such as an old revision."""
        scheme = urlsplit(uri).scheme
        if scheme == "file":
            path = to_fs_path(uri)
            return Path(path) if path else None
        name = Path(urlsplit(uri).path).name
        return Path(self.root_path or Path.cwd()) / name if scheme == "untitled" and name else None


def _part(text: TextDocument, *, is_code: bool = True) -> TextPart:
    return TextPart(text.uri, text.version, text.source, text.language_id, is_code)
