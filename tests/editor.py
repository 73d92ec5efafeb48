"""An editor without a window: pygls's own client, which drives `ta-lint server` over its standard input and output."""

import asyncio
import os
import sys
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types
from pygls.lsp.client import LanguageClient

T = TypeVar("T")

PATIENCE = 60  # seconds until a test gives up


class Editor:
    """What the user of an editor sees. Each call waits for the server."""

    def __init__(self, folder: Path, capabilities: dict[str, Any]) -> None:
        self.folder = folder
        self.messages: list[str] = []
        self.registered: list[types.Registration] = []
        self.refreshed = 0
        self.published: dict[str, types.PublishDiagnosticsParams] = {}
        self._news = threading.Condition()
        self._versions: dict[str, int] = {}
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self.client = self._do(self._started())
        self._listen()
        converter = self.client.protocol._converter
        self.initialized = self._do(
            self.client.initialize_async(
                types.InitializeParams(
                    capabilities=converter.structure(capabilities, types.ClientCapabilities),
                    root_uri=folder.as_uri(),
                    process_id=os.getpid(),
                )
            )
        )
        self._tell(lambda: self.client.initialized(types.InitializedParams()))

    def turn_to(self, folder: Path) -> None:
        """Go on in another folder, with nothing shown yet."""
        self.folder = folder
        self.messages.clear()
        self.published.clear()

    @property
    def process(self) -> asyncio.subprocess.Process:
        assert self.client._server is not None
        return self.client._server

    def open(self, name: str, text: str, language: str = "python") -> list[types.Diagnostic]:
        """Open a file that holds this; nothing of it is on disk. Returns its diagnostics."""
        self.open_unanswered(name, text, language)
        return self.shown(name)

    def open_unanswered(self, name: str, text: str, language: str = "python") -> None:
        uri = self.uri(name)
        self._versions[uri] = 1
        item = types.TextDocumentItem(uri, language, 1, text)
        self._tell(lambda: self.client.text_document_did_open(types.DidOpenTextDocumentParams(item)))

    def write(self, name: str, text: str) -> list[types.Diagnostic]:
        """Replace all of a file's text; returns its diagnostics."""
        self.change(name, types.TextDocumentContentChangeWholeDocument(text))
        return self.shown(name)

    def change(self, name: str, *changes: types.TextDocumentContentChangeEvent) -> None:
        uri = self.uri(name)
        self._versions[uri] += 1
        which = types.VersionedTextDocumentIdentifier(self._versions[uri], uri)
        params = types.DidChangeTextDocumentParams(which, list(changes))
        self._tell(lambda: self.client.text_document_did_change(params))

    def change_unknown(self, name: str) -> None:
        """Change a file that was never opened."""
        self._versions[self.uri(name)] = 1
        self.change(name, types.TextDocumentContentChangeWholeDocument("x"))

    def save(self, name: str) -> None:
        params = types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(self.uri(name)))
        self._tell(lambda: self.client.text_document_did_save(params))

    def close(self, name: str) -> None:
        params = types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(self.uri(name)))
        self._tell(lambda: self.client.text_document_did_close(params))

    def open_notebook(self, name: str, *cells: str, languages: dict[int, str] | None = None) -> None:
        """Open a notebook of these code cells, whose URIs are `cell(name, number)`."""
        uri = self.uri(name)
        which = [
            types.NotebookCell(types.NotebookCellKind.Code, self.cell(name, i)) for i in range(len(cells))
        ]
        texts = [
            types.TextDocumentItem(self.cell(name, i), (languages or {}).get(i, "python"), 1, text)
            for i, text in enumerate(cells)
        ]
        self._versions.update({item.uri: 1 for item in texts} | {uri: 1})
        notebook = types.NotebookDocument(uri, "jupyter-notebook", 1, which)
        params = types.DidOpenNotebookDocumentParams(notebook, texts)
        self._tell(lambda: self.client.notebook_document_did_open(params))

    def write_cell(self, name: str, number: int, text: str) -> None:
        uri, cell = self.uri(name), self.cell(name, number)
        self._versions[uri] += 1
        self._versions[cell] += 1
        content = types.NotebookDocumentCellContentChanges(
            types.VersionedTextDocumentIdentifier(self._versions[cell], cell),
            [types.TextDocumentContentChangeWholeDocument(text)],
        )
        cells = types.NotebookDocumentCellChanges(text_content=[content])
        which = types.VersionedNotebookDocumentIdentifier(self._versions[uri], uri)
        params = types.DidChangeNotebookDocumentParams(which, types.NotebookDocumentChangeEvent(cells=cells))
        self._tell(lambda: self.client.notebook_document_did_change(params))

    def shown(self, name: str) -> list[types.Diagnostic]:
        """The diagnostics of a file, or of a cell by its URI, as it is now."""
        uri = self.uri(name)
        version = self._versions[uri]
        with self._news:
            arrived = self._news.wait_for(
                lambda: uri in self.published and self.published[uri].version == version, PATIENCE
            )
        if not arrived:
            self.process.kill()
            raise AssertionError(f"no diagnostics of {name}: {self.logged()}")
        return list(self.published[uri].diagnostics)

    def wait(self, condition: Any) -> None:
        """Until something holds of what the server has sent."""
        with self._news:
            assert self._news.wait_for(condition, PATIENCE)

    def pulled(self, name: str) -> list[types.Diagnostic]:
        params = types.DocumentDiagnosticParams(types.TextDocumentIdentifier(self.uri(name)))
        report = self._do(self.client.text_document_diagnostic_async(params))
        assert isinstance(report, types.RelatedFullDocumentDiagnosticReport)
        return list(report.items)

    def actions(
        self, name: str, where: types.Range | None = None, only: list[str] | None = None
    ) -> dict[str, types.CodeAction]:
        """The actions for a range, by title."""
        params = types.CodeActionParams(
            types.TextDocumentIdentifier(self.uri(name)),
            where or types.Range(types.Position(0, 0), types.Position(0, 0)),
            types.CodeActionContext([], only),
        )
        found = self._do(self.client.text_document_code_action_async(params)) or []
        actions = [action for action in found if isinstance(action, types.CodeAction)]
        assert len(actions) == len(found)
        return {action.title: action for action in actions}

    def resolve(self, action: types.CodeAction) -> types.CodeAction:
        return self._do(self.client.code_action_resolve_async(action))

    def hover(self, name: str, line: int, character: int) -> str | None:
        """What is shown where the pointer rests, as its text."""
        params = types.HoverParams(
            types.TextDocumentIdentifier(self.uri(name)), types.Position(line, character)
        )
        shown = self._do(self.client.text_document_hover_async(params))
        if shown is None:
            return None
        assert isinstance(shown.contents, types.MarkupContent)
        return shown.contents.value

    def files_changed(self, *names: str) -> None:
        """Tell that files on disk have changed, as one who was asked to watch them does."""
        events = [types.FileEvent(self.uri(name), types.FileChangeType.Changed) for name in names]
        params = types.DidChangeWatchedFilesParams(events)
        self._tell(lambda: self.client.workspace_did_change_watched_files(params))

    def send_bytes(self, data: bytes) -> None:
        def send() -> None:
            assert self.process.stdin is not None
            self.process.stdin.write(data)

        self._tell(send)

    def leave(self, how: str = "shutdown") -> int:
        """End the server: by `shutdown` and exit, by `exit` alone, or by closing its input (`eof`); its exit status."""
        if how == "shutdown":
            self._do(self.client.shutdown_async(None))
        if how == "eof":
            self._tell(lambda: self.process.stdin.close() if self.process.stdin is not None else None)
        else:
            self._tell(lambda: self.client.exit(None))
        return self._do(self.process.wait())

    def uri(self, name: str) -> str:
        return name if ":" in name else (self.folder / name).as_uri()

    def cell(self, name: str, number: int) -> str:
        return f"vscode-notebook-cell:{(self.folder / name).as_uri().removeprefix('file:')}#W{number}"

    def logged(self) -> str:
        """What the server wrote to its standard error, until it ended."""

        async def read() -> bytes:
            return await self._reading

        return self._do(read()).decode()

    def end(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
            self._do(self.process.wait())
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _do(self, what: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(what, self._loop).result(PATIENCE)

    def _tell(self, what: Any) -> None:
        async def tell() -> None:
            what()

        self._do(tell())

    async def _started(self) -> LanguageClient:
        client = LanguageClient("tests", "1")
        await client.start_io(sys.executable, "-m", "ta_lint", "server", cwd=self.folder)
        assert client._server is not None
        assert client._server.stderr is not None
        self._reading = asyncio.ensure_future(client._server.stderr.read())
        return client

    def _listen(self) -> None:
        @self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)  # type: ignore[untyped-decorator]
        def publish(params: types.PublishDiagnosticsParams) -> None:
            with self._news:
                self.published[params.uri] = params
                self._news.notify_all()

        @self.client.feature(types.WINDOW_SHOW_MESSAGE)  # type: ignore[untyped-decorator]
        def show(params: types.ShowMessageParams) -> None:
            with self._news:
                self.messages.append(params.message)
                self._news.notify_all()

        @self.client.feature(types.CLIENT_REGISTER_CAPABILITY)  # type: ignore[untyped-decorator]
        def register(params: types.RegistrationParams) -> None:
            with self._news:
                self.registered += params.registrations
                self._news.notify_all()

        @self.client.feature(types.WORKSPACE_DIAGNOSTIC_REFRESH)  # type: ignore[untyped-decorator]
        def refresh(_: None) -> None:
            with self._news:
                self.refreshed += 1
                self._news.notify_all()


@contextmanager
def opened(folder: Path, **capabilities: Any) -> Iterator[Editor]:
    """An editor on a folder, of a client with these capabilities."""
    editor = Editor(folder, capabilities)
    try:
        yield editor
    finally:
        editor.end()


def edited(text: str, edits: list[types.TextEdit], units: str = "utf-16-le") -> str:
    """A text after edits, whose columns count units of an encoding; as an editor makes them, from the last one."""
    size = {"utf-8": 1, "utf-16-le": 2, "utf-32-le": 4}[units]
    lines = text.split("\n")

    def offset(place: types.Position) -> int:
        line = lines[place.line].encode(units)[: place.character * size].decode(units)
        return sum(len(line) + 1 for line in lines[: place.line]) + len(line)

    for edit in sorted(edits, key=lambda edit: offset(edit.range.start), reverse=True):
        text = text[: offset(edit.range.start)] + edit.new_text + text[offset(edit.range.end) :]
    return text
