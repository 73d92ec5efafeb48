/** An editor without a window: a client of the protocol that drives the real `ta-lint server`. */

import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { once } from "node:events";
import { pathToFileURL } from "node:url";
import {
  CodeActionRequest,
  createProtocolConnection,
  DidOpenNotebookDocumentNotification,
  DidOpenTextDocumentNotification,
  DocumentDiagnosticRequest,
  ExitNotification,
  HoverRequest,
  InitializedNotification,
  InitializeRequest,
  NotebookCellKind,
  PublishDiagnosticsNotification,
  ShutdownRequest,
  type ClientCapabilities,
  type CodeAction,
  type Diagnostic,
  type Hover,
  type InitializeResult,
  type Position,
  type ProtocolConnection,
  type Range,
} from "vscode-languageserver-protocol/node";

import { findServer, type Command } from "../src/server";

/** The interpreter that has ta-lint; the Python test names its own. */
export const PYTHON = process.env["TA_LINT_PYTHON"] ?? "python3";

/** What of VS Code's capabilities matters to the server. */
const CAPABILITIES: ClientCapabilities = {
  notebookDocument: { synchronization: { executionSummarySupport: true } },
  textDocument: {
    codeAction: {
      codeActionLiteralSupport: { codeActionKind: { valueSet: ["quickfix", "source.fixAll"] } },
      resolveSupport: { properties: ["edit"] },
    },
    diagnostic: {},
    hover: { contentFormat: ["markdown"] },
  },
  workspace: { workspaceEdit: { documentChanges: true } },
};

export class Editor {
  private constructor(
    readonly initialized: InitializeResult,
    private readonly folder: string,
    private readonly server: ChildProcessWithoutNullStreams,
    private readonly connection: ProtocolConnection,
  ) {}

  /** Starts the server that the extension would start with this interpreter. */
  static async on(folder: string): Promise<Editor> {
    const call = await findServer({ path: "", interpreter: PYTHON, folder, environment: {} });
    return Editor.with(call, folder);
  }

  static async with({ command, args }: Command, folder: string): Promise<Editor> {
    const server = spawn(command, [...args, "server"], { cwd: folder });
    server.stderr.pipe(process.stderr);
    const connection = createProtocolConnection(server.stdout, server.stdin);
    connection.listen();
    const initialized = await connection.sendRequest(InitializeRequest.type, {
      processId: process.pid,
      rootUri: pathToFileURL(folder).href,
      capabilities: CAPABILITIES,
    });
    await connection.sendNotification(InitializedNotification.type, {});
    return new Editor(initialized, folder, server, connection);
  }

  uri(name: string): string {
    return `${pathToFileURL(this.folder).href}/${name}`;
  }

  /** Opens a file that holds this text; returns its diagnostics. */
  async open(name: string, text: string): Promise<Diagnostic[]> {
    const uri = this.uri(name);
    const textDocument = { uri, languageId: "python", version: 1, text };
    await this.connection.sendNotification(DidOpenTextDocumentNotification.type, { textDocument });
    const report = await this.connection.sendRequest(DocumentDiagnosticRequest.type, { textDocument: { uri } });
    return report.kind === "full" ? report.items : [];
  }

  /** Opens a notebook of these cells; returns the diagnostics of each cell. */
  async openNotebook(name: string, ...texts: string[]): Promise<Diagnostic[][]> {
    const cells = texts.map((text, index) => ({ uri: `${this.uri(name)}#${index}`, text }));
    const found = new Map<string, Diagnostic[]>();
    const all = new Promise<void>((done) => {
      this.connection.onNotification(PublishDiagnosticsNotification.type, ({ uri, diagnostics }) => {
        found.set(uri, diagnostics);
        if (cells.every((cell) => found.has(cell.uri))) done();
      });
    });
    await this.connection.sendNotification(DidOpenNotebookDocumentNotification.type, {
      notebookDocument: {
        uri: this.uri(name),
        notebookType: "jupyter-notebook",
        version: 1,
        cells: cells.map(({ uri }) => ({ kind: NotebookCellKind.Code, document: uri })),
      },
      cellTextDocuments: cells.map(({ uri, text }) => ({ uri, languageId: "python", version: 1, text })),
    });
    await all;
    return cells.map(({ uri }) => found.get(uri) ?? []);
  }

  async actions(name: string, range: Range, only?: string): Promise<CodeAction[]> {
    const context = { diagnostics: [], ...(only === undefined ? {} : { only: [only] }) };
    const params = { textDocument: { uri: this.uri(name) }, range, context };
    return ((await this.connection.sendRequest(CodeActionRequest.type, params)) ?? []) as CodeAction[];
  }

  async resolve(action: CodeAction): Promise<CodeAction> {
    return this.connection.sendRequest("codeAction/resolve", action);
  }

  hover(name: string, position: Position): Promise<Hover | null> {
    return this.connection.sendRequest(HoverRequest.type, { textDocument: { uri: this.uri(name) }, position });
  }

  /** Leaves as VS Code does; returns the exit status of the server. */
  async close(): Promise<number | null> {
    const exited = once(this.server, "exit");
    await this.connection.sendRequest(ShutdownRequest.type);
    await this.connection.sendNotification(ExitNotification.type);
    const [status] = (await exited) as [number | null];
    this.connection.dispose();
    return status;
  }
}
