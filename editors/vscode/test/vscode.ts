/** As much of VS Code's API as the extension needs to show findings: one workspace with one open Python file. */

import { EventEmitter } from "node:events";
import { basename } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

export class Position {
  constructor(
    readonly line: number,
    readonly character: number,
  ) {}
}

export class Range {
  readonly start: Position;
  readonly end: Position;

  constructor(line: number, character: number, endLine: number, endCharacter: number) {
    this.start = new Position(line, character);
    this.end = new Position(endLine, endCharacter);
  }

  contains({ line, character }: Position): boolean {
    const { start, end } = this;
    const isAfter = line > start.line || (line === start.line && character >= start.character);
    return isAfter && (line < end.line || (line === end.line && character <= end.character));
  }
}

class Uri {
  constructor(private readonly text: string) {}
  static file = (path: string) => new Uri(pathToFileURL(path).href);
  static parse = (text: string) => new Uri(text);
  static from = ({ scheme, path }: { scheme: string; path: string }) => new Uri(`${scheme}:${path}`);
  get scheme() {
    return this.text.slice(0, this.text.indexOf(":"));
  }
  get path() {
    return new URL(this.text).pathname;
  }
  get fsPath() {
    return fileURLToPath(this.text);
  }
  toString() {
    return this.text;
  }
}

class Emitter<T> {
  private readonly events = new EventEmitter();
  event = (listener: (value: T) => void) => {
    this.events.on("event", listener);
    return { dispose: () => this.events.off("event", listener) };
  };
  fire = (value: T) => this.events.emit("event", value);
  dispose = () => this.events.removeAllListeners();
}

class CancellationTokenSource {
  readonly token = { isCancellationRequested: false, onCancellationRequested: () => ({ dispose: () => {} }) };
  cancel = () => (this.token.isCancellationRequested = true);
  dispose = () => {};
}

class Disposable {
  constructor(readonly dispose: () => void) {}
  static from = (...all: Disposable[]) => new Disposable(() => all.forEach((one) => one.dispose()));
}

class Diagnostic {
  source?: string;
  code?: { value: string } | string;
  constructor(
    readonly range: Range,
    readonly message: string,
    readonly severity: number,
  ) {}
}

class TabInputText {
  constructor(readonly uri: Uri) {}
}

/** Whatever else the client asks for: a class for a name in capitals, and a function that makes such a thing again. */
function withDefaults<T extends object>(known: T): T {
  const made = new Map<string | symbol, unknown>();
  return new Proxy(known, {
    get(target, name) {
      if (Reflect.has(target, name) || typeof name === "symbol") return Reflect.get(target, name);
      if (!made.has(name)) made.set(name, fallback(name));
      return made.get(name);
    },
  });
}

function fallback(name: string): unknown {
  if (/^[A-Z]/.test(name)) return withDefaults(class {});
  return name === "then" ? undefined : () => withDefaults({}); // with a `then` it would be a promise
}

/** A window in which a file is open, and what has been shown and asked in it. */
export function openWindow(folder: string, file: string, text: string, settings: Record<string, unknown>) {
  const collections = new Set<Map<string, Diagnostic[]>>();
  const commands = new Map<string, (...values: unknown[]) => unknown>();
  const executed: unknown[][] = [];
  const errors: string[] = [];
  const pages: { provideTextDocumentContent(uri: Uri): Promise<string> }[] = [];
  const news = new EventEmitter();
  const changed = new Emitter<{ affectsConfiguration(key: string): boolean }>();
  const uri = Uri.file(file);
  const document = {
    uri,
    fileName: file,
    languageId: "python",
    version: 1,
    isClosed: false,
    getText: () => text,
    getWordRangeAtPosition: () => undefined,
  };
  const editor = { document, selection: { active: new Position(0, 0) } };

  const api = withDefaults({
    version: "1.91.0",
    Position,
    Range,
    Uri,
    Diagnostic,
    TabInputText,
    CancellationTokenSource,
    EventEmitter: Emitter,
    CancellationError: class extends Error {},
    Disposable,
    LogLevel: { Trace: 1, Info: 3 },
    DiagnosticSeverity: { Error: 0, Warning: 1, Information: 2, Hint: 3 },
    commands: withDefaults({
      registerCommand: (name: string, command: () => unknown) => (commands.set(name, command), { dispose: () => {} }),
      executeCommand: (...command: unknown[]) => Promise.resolve(void executed.push(command)),
    }),
    env: withDefaults({ language: "en", appName: "tests", clipboard: withDefaults({}) }),
    extensions: { getExtension: () => undefined },
    languages: withDefaults({
      match: (selector: { scheme?: string; language?: string }[] | { scheme?: string; language?: string }) =>
        [selector].flat().some(({ scheme, language }) => scheme === uri.scheme && language === "python") ? 10 : 0,
      getDiagnostics: () => findings(),
      createDiagnosticCollection: () => {
        const shown = new Map<string, Diagnostic[]>();
        collections.add(shown);
        return {
          set: (at: Uri, found: Diagnostic[]) => (shown.set(at.toString(), found), news.emit("news")),
          delete: (at: Uri) => (shown.delete(at.toString()), news.emit("news")),
          dispose: () => (collections.delete(shown), news.emit("news")),
        };
      },
    }),
    window: withDefaults({
      activeTextEditor: editor,
      visibleTextEditors: [editor],
      tabGroups: withDefaults({ all: [{ tabs: [{ input: new TabInputText(uri) }] }] }),
      createOutputChannel: () => withDefaults({ logLevel: 3 }),
      showErrorMessage: (message: string) => Promise.resolve(void (errors.push(message), news.emit("news"))),
    }),
    workspace: withDefaults({
      workspaceFolders: [{ uri: Uri.file(folder), name: basename(folder), index: 0 }],
      textDocuments: [document],
      notebookDocuments: [],
      onDidChangeConfiguration: changed.event,
      getConfiguration: () => ({ get: (key: string, other: unknown) => settings[key] ?? other }),
      registerTextDocumentContentProvider: (_: string, provider: (typeof pages)[number]) => void pages.push(provider),
    }),
  });

  /** Waits until something is so. */
  async function until(isSo: () => boolean): Promise<void> {
    while (!isSo()) await new Promise((done) => news.once("news", done));
  }

  /** Changes a setting, as the user does. */
  function set(key: string, value: unknown): void {
    settings[key] = value;
    changed.fire({ affectsConfiguration: (name) => name === `ta-lint.${key}` });
  }

  const findings = () => [...collections].flatMap((shown) => shown.get(uri.toString()) ?? []);
  return { api, commands, editor, errors, executed, findings, pages, set, until };
}
