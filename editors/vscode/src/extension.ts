/** The extension: starts `ta-lint server`, keeps it up to date with the settings, and adds three commands. */

import * as vscode from "vscode";
import { LanguageClient, type LanguageClientOptions } from "vscode-languageclient/node";

import { interpreterOf, type PythonApi } from "./python";
import { idOf, rulePage, rules } from "./rules";
import { findServer, NoServer, REMEDY, type Command } from "./server";

const ID = "ta-lint";
const PAGES = "ta-lint-rule";
const FIX_ALL = "source.fixAll.ta-lint";
const SELECTOR = [
  { scheme: "file", language: "python" },
  { scheme: "untitled", language: "python" },
  { scheme: "vscode-notebook-cell", language: "python" },
];

let session: Session | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const log = vscode.window.createOutputChannel(ID, { log: true });
  const python = pythonApi(log);
  const started = (session = new Session(log, python));
  context.subscriptions.push(
    log,
    vscode.commands.registerCommand("ta-lint.restart", () => started.restart()),
    vscode.commands.registerCommand("ta-lint.fixAll", fixAll),
    vscode.commands.registerCommand("ta-lint.showRule", () => showRule(started)),
    vscode.workspace.registerTextDocumentContentProvider(PAGES, {
      provideTextDocumentContent: async (uri) => rulePage(await started.call(), uri.path.split(".")[0] ?? ""),
    }),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (["enable", "path"].some((key) => change.affectsConfiguration(`${ID}.${key}`))) void started.restart();
    }),
  );
  const moved = (await python)?.environments.onDidChangeActiveEnvironmentPath(() => {
    if (setting("path", "") === "") void started.restart();
  });
  if (moved !== undefined) context.subscriptions.push(moved);
  await started.restart();
}

export async function deactivate(): Promise<void> {
  await session?.stop();
}

/** The server of this window. Starts and stops happen one after the other. */
class Session {
  private client: LanguageClient | undefined;
  private found: Command | undefined;
  private turn: Promise<void> = Promise.resolve();

  constructor(
    private readonly log: vscode.LogOutputChannel,
    private readonly python: Promise<PythonApi | undefined>,
  ) {}

  restart(): Promise<void> {
    return this.next(async () => {
      await this.end();
      if (setting("enable", true)) await this.start();
    });
  }

  stop(): Promise<void> {
    return this.next(() => this.end());
  }

  /** How `ta-lint` is called, whether or not its server runs. */
  async call(): Promise<Command> {
    await this.turn;
    return this.found ?? this.find();
  }

  private next(step: () => Promise<void>): Promise<void> {
    this.turn = this.turn.then(step).catch((error: unknown) => this.complain(error));
    return this.turn;
  }

  private async find(): Promise<Command> {
    const folder = vscode.workspace.workspaceFolders?.find(({ uri }) => uri.scheme === "file")?.uri;
    this.found = await findServer({
      path: setting("path", ""),
      interpreter: await interpreterOf(await this.python, folder),
      folder: folder?.fsPath,
      environment: process.env,
    });
    return this.found;
  }

  private async start(): Promise<void> {
    const { command, args } = await this.find();
    this.log.info(`starts ${[command, ...args, "server"].join(" ")}`);
    const options: LanguageClientOptions = { documentSelector: SELECTOR, outputChannel: this.log };
    this.client = new LanguageClient(ID, ID, { command, args: [...args, "server"] }, options);
    await this.client.start().catch((error: unknown) => this.log.error(String(error))); // the client shows it
  }

  private async end(): Promise<void> {
    const client = this.client;
    this.client = this.found = undefined;
    // one that never started, or does not answer, is no reason not to start another
    await client?.dispose().catch((error: unknown) => this.log.warn(String(error)));
  }

  private complain(error: unknown): void {
    this.log.error(error instanceof Error ? error : String(error));
    void showError(error, this.log);
  }
}

async function showError(error: unknown, log: vscode.LogOutputChannel): Promise<void> {
  const message = `ta-lint: ${error instanceof Error ? error.message : String(error)}`;
  const copy = "Copy the pip Command";
  const settings = "Open Settings";
  const actions = error instanceof NoServer ? [copy, settings] : ["Show Log"];
  const chosen = await vscode.window.showErrorMessage(message, ...actions);
  if (chosen === copy) await vscode.env.clipboard.writeText(REMEDY);
  else if (chosen === settings) await vscode.commands.executeCommand("workbench.action.openSettings", ID);
  else if (chosen !== undefined) log.show();
}

/** Makes what `ta-lint check --fix` would make of the file or notebook. */
async function fixAll(): Promise<void> {
  await vscode.commands.executeCommand("editor.action.codeAction", { kind: FIX_ALL, apply: "first" });
}

/** Shows the page of the rule at the cursor, or else of one that the user chooses. */
async function showRule(session: Session): Promise<void> {
  try {
    const id = ruleAtCursor() ?? (await chosenRule(await session.call()));
    if (id === undefined) return;
    const uri = vscode.Uri.from({ scheme: PAGES, path: `${id}.md` });
    await vscode.commands.executeCommand("markdown.showPreview", uri);
  } catch (error) {
    await vscode.window.showErrorMessage(`ta-lint: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** The rule of a finding at the cursor, or the id that a `# noqa` comment has there. */
function ruleAtCursor(): string | undefined {
  const editor = vscode.window.activeTextEditor;
  if (editor === undefined) return undefined;
  const { document, selection } = editor;
  const finding = vscode.languages
    .getDiagnostics(document.uri)
    .find(({ source, range }) => source === ID && range.contains(selection.active));
  const word = document.getWordRangeAtPosition(selection.active, /\bTA\d{3}\b/);
  return idOf(finding?.code) ?? (word && document.getText(word));
}

async function chosenRule(call: Command): Promise<string | undefined> {
  const items = rules(call).then((all) =>
    all.map(({ id, name, summary }) => ({ label: id, description: name, detail: summary.split("\n")[0] ?? "" })),
  );
  const options = { placeHolder: "Rule", matchOnDescription: true, matchOnDetail: true };
  return (await vscode.window.showQuickPick(items, options))?.label;
}

function setting<T>(key: string, fallback: T): T {
  return vscode.workspace.getConfiguration(ID).get(key, fallback);
}

/** The API of the Python extension, if it is installed. */
async function pythonApi(log: vscode.LogOutputChannel): Promise<PythonApi | undefined> {
  try {
    const api = await vscode.extensions.getExtension<PythonApi | undefined>("ms-python.python")?.activate();
    return api?.environments === undefined ? undefined : api; // old releases have none
  } catch (error) {
    log.warn(`the Python extension does not start: ${String(error)}`);
    return undefined;
  }
}
