"""The server: handles the messages of the client."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import BinaryIO, TypeVar

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from ta_lint import __version__
from ta_lint.core.settings import FILES
from ta_lint.server.actions import KINDS, actions, resolved
from ta_lint.server.client import Client, client_of
from ta_lint.server.diagnostics import SOURCE, diagnostics
from ta_lint.server.documents import Document, Documents
from ta_lint.server.hover import hover, hover_in_comment
from ta_lint.server.linting import Linted, Linter, Worker, root_of

PAUSE = 0.2  # seconds without a change before the text is linted; pylsp waits 0.5, ruff not at all

T = TypeVar("T")

_logger = logging.getLogger(__name__)


class Server(LanguageServer):
    """One client, its open documents, and the lints in progress."""

    def __init__(self) -> None:
        cells = types.NotebookDocumentFilterWithCells(
            cells=[types.NotebookCellLanguage("python")],
            notebook=types.NotebookDocumentFilterNotebookType("jupyter-notebook"),
        )
        notebooks = types.NotebookDocumentSyncOptions([cells], save=True)
        super().__init__(SOURCE, __version__, notebook_document_sync=notebooks)
        self.was_shut_down = False
        self.exited_rudely = False
        self._worker = Worker()
        self._linter = Linter()
        self._publishing: dict[str, asyncio.Task[None]] = {}
        self._complaints: dict[Path, str] = {}
        self._checking: asyncio.Future[None] | None = None
        for name, handler, options in _FEATURES:
            self.feature(name, options)(handler)

    @property
    def client(self) -> Client:
        return client_of(self.client_capabilities, self.documents.position_codec)

    @property
    def documents(self) -> Documents:
        documents = self.workspace
        assert isinstance(documents, Documents)
        return documents

    async def about(self, document: Document, compute: Callable[[Linted], T]) -> T:
        """Lint a document and compute something from the result, both in the worker thread."""
        linted, result = await asyncio.wrap_future(
            self._worker.submit(lambda: _computed(self._linter.lint(document), compute))
        )
        self._complain(linted)
        return result

    def publish(self, uri: str, pause: float = 0) -> None:
        """Send the diagnostics of a document after a pause; cancel an earlier request, which is for an older text."""
        document = self.documents.at(uri)
        if document is None or (self.client.pulls and not document.has_cells):
            return
        uri = document.uri  # of a cell, the notebook's
        if (older := self._publishing.get(uri)) is not None:
            older.cancel()
        self._publishing[uri] = asyncio.ensure_future(self._published(uri, pause))

    async def _published(self, uri: str, pause: float) -> None:
        await asyncio.sleep(pause)
        document = self.documents.at(uri)
        if document is None:
            return
        try:
            found = await self.about(document, partial(diagnostics, client=self.client))
        except Exception as error:
            _logger.exception("%s was not linted", document.path)
            self._say(
                f"{type(error).__name__}, a defect of ta-lint: please report what its log has", document
            )
            return
        for part in document.parts:
            self._send(part.uri, part.version, found[part.uri])

    def saved(self, uris: Iterable[str]) -> None:
        """Lint the other open documents again whose findings depend on these files."""
        paths = frozenset(path for uri in uris if (path := to_fs_path(uri)))
        self._checking = asyncio.ensure_future(self._after(paths, self._checking))

    async def _after(self, saved: frozenset[str], before: asyncio.Future[None] | None) -> None:
        if before is not None:
            await asyncio.wait([before])
        outdated = await asyncio.wrap_future(self._worker.submit(partial(self._linter.outdated, saved)))
        for uri in outdated:
            self.publish(uri)
        if outdated:
            self._ask_to_refresh()

    def close(self, uri: str, parts: list[str]) -> None:
        """Clear the diagnostics of a closed document."""
        if (task := self._publishing.pop(uri, None)) is not None:
            task.cancel()
        self._worker.submit(partial(self._linter.forget, uri))
        for part in parts:
            self._send(part, None, [])

    def lint_again(self) -> None:
        """Lint all open documents again."""
        for uri in list(self.documents.uris()):
            self.publish(uri)
        self._ask_to_refresh()

    def _ask_to_refresh(self) -> None:
        if self.client.pulls and self.client.refreshes:
            self.workspace_diagnostic_refresh(None)

    def _send(self, uri: str, version: int | None, found: list[types.Diagnostic]) -> None:
        params = types.PublishDiagnosticsParams(uri, found, version)
        self.text_document_publish_diagnostics(params)

    def _complain(self, linted: Linted) -> None:
        """Show an error in the settings of a project."""
        if linted.complaint is None:
            self._complaints.pop(root_of(linted.document), None)
        else:
            self._say(linted.complaint, linted.document)

    def _say(self, complaint: str, document: Document) -> None:
        """Show a complaint about a project, once until it changes or is resolved."""
        root = root_of(document)
        if self._complaints.get(root) != complaint:
            self._complaints[root] = complaint
            message = f"ta-lint: {complaint}"
            self.window_show_message(types.ShowMessageParams(types.MessageType.Error, message))


def serve(stdin: BinaryIO, stdout: BinaryIO) -> bool:
    """Serve a client until it leaves; return whether it asked for a shutdown before `exit`."""
    server = Server()
    server.start_io(stdin, stdout)
    return not server.exited_rudely


def _computed(linted: Linted, compute: Callable[[Linted], T]) -> tuple[Linted, T]:
    return linted, compute(linted)


def _initialize(ls: Server, params: types.InitializeParams) -> None:
    workspace = ls.workspace
    folders = list(workspace.folders.values())
    incremental = types.TextDocumentSyncKind.Incremental
    ls.protocol._workspace = Documents(workspace.root_uri, incremental, folders, workspace.position_encoding)


def _initialized(ls: Server, _: types.InitializedParams) -> None:
    if ls.client.watches:
        watchers = [types.FileSystemWatcher(f"**/{name}") for name in (*FILES, "*.py", "*.ipynb")]
        options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
        watching = types.Registration("settings", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)
        ls.client_register_capability(types.RegistrationParams([watching]))


def _shutdown(ls: Server, _: None) -> None:
    ls.was_shut_down = True


def _exit(ls: Server, _: None) -> None:
    ls.exited_rudely = not ls.was_shut_down


def _did_open(ls: Server, params: types.DidOpenTextDocumentParams) -> None:
    ls.publish(params.text_document.uri)


def _did_change(ls: Server, params: types.DidChangeTextDocumentParams) -> None:
    ls.publish(params.text_document.uri, PAUSE)


def _did_save(ls: Server, params: types.DidSaveTextDocumentParams) -> None:
    ls.publish(params.text_document.uri)
    ls.saved([params.text_document.uri])


def _did_close(ls: Server, params: types.DidCloseTextDocumentParams) -> None:
    ls.close(params.text_document.uri, [params.text_document.uri])


def _did_open_notebook(ls: Server, params: types.DidOpenNotebookDocumentParams) -> None:
    ls.publish(params.notebook_document.uri)


def _did_change_notebook(ls: Server, params: types.DidChangeNotebookDocumentParams) -> None:
    structure = params.change.cells.structure if params.change.cells is not None else None
    for cell in (structure.did_close or []) if structure is not None else []:
        ls.text_document_publish_diagnostics(types.PublishDiagnosticsParams(cell.uri, []))
    ls.publish(params.notebook_document.uri, PAUSE)


def _did_save_notebook(ls: Server, params: types.DidSaveNotebookDocumentParams) -> None:
    ls.publish(params.notebook_document.uri)
    ls.saved([params.notebook_document.uri])


def _did_close_notebook(ls: Server, params: types.DidCloseNotebookDocumentParams) -> None:
    ls.close(params.notebook_document.uri, [cell.uri for cell in params.cell_text_documents])


def _did_change_watched_files(ls: Server, params: types.DidChangeWatchedFilesParams) -> None:
    changed = [event.uri for event in params.changes]
    if any(uri.rpartition("/")[2] in FILES for uri in changed):
        ls.lint_again()
    ls.saved(changed)


async def _diagnostic(
    ls: Server, params: types.DocumentDiagnosticParams
) -> types.RelatedFullDocumentDiagnosticReport:
    document = ls.documents.at(params.text_document.uri)
    items: list[types.Diagnostic] = []
    if (
        document is not None and not document.has_cells
    ):  # diagnostics of cells are pushed, as not every client asks for them
        items = (await ls.about(document, partial(diagnostics, client=ls.client)))[document.uri]
    return types.RelatedFullDocumentDiagnosticReport(items)


async def _code_action(ls: Server, params: types.CodeActionParams) -> list[types.CodeAction]:
    document = ls.documents.at(params.text_document.uri)
    if document is None:
        return []
    return await ls.about(document, partial(actions, params=params, client=ls.client))


async def _resolve(ls: Server, action: types.CodeAction) -> types.CodeAction:
    document = ls.documents.at(action.data) if isinstance(action.data, str) else None
    if document is None:
        return action
    return await ls.about(document, partial(resolved, action, client=ls.client))


async def _hover(ls: Server, params: types.HoverParams) -> types.Hover | None:
    uri, at = params.text_document.uri, params.position
    document = ls.documents.at(uri)
    if document is None:
        return None
    shown = hover_in_comment(document, uri, at, ls.client)
    return shown or await ls.about(document, partial(hover, uri=uri, at=at, client=ls.client))


_FEATURES = (
    (types.INITIALIZE, _initialize, None),
    (types.INITIALIZED, _initialized, None),
    (types.SHUTDOWN, _shutdown, None),
    (types.EXIT, _exit, None),
    (types.TEXT_DOCUMENT_DID_OPEN, _did_open, None),
    (types.TEXT_DOCUMENT_DID_CHANGE, _did_change, None),
    (types.TEXT_DOCUMENT_DID_SAVE, _did_save, None),
    (types.TEXT_DOCUMENT_DID_CLOSE, _did_close, None),
    (types.NOTEBOOK_DOCUMENT_DID_OPEN, _did_open_notebook, None),
    (types.NOTEBOOK_DOCUMENT_DID_CHANGE, _did_change_notebook, None),
    (types.NOTEBOOK_DOCUMENT_DID_SAVE, _did_save_notebook, None),
    (types.NOTEBOOK_DOCUMENT_DID_CLOSE, _did_close_notebook, None),
    (types.WORKSPACE_DID_CHANGE_WATCHED_FILES, _did_change_watched_files, None),
    (types.TEXT_DOCUMENT_DIAGNOSTIC, _diagnostic,
     types.DiagnosticOptions(inter_file_dependencies=False, workspace_diagnostics=False, identifier=SOURCE)),
    (types.TEXT_DOCUMENT_CODE_ACTION, _code_action,
     types.CodeActionOptions(code_action_kinds=KINDS, resolve_provider=True)),
    (types.CODE_ACTION_RESOLVE, _resolve, None),
    (types.TEXT_DOCUMENT_HOVER, _hover, None),
)  # fmt: skip
