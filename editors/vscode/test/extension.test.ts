/** The bundle as it is shipped, in a window that is not drawn, with the real server. */

import assert from "node:assert/strict";
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import Module, { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";

import { PYTHON } from "./editor";
import { openWindow, Position } from "./vscode";

const BUNDLE = join(__dirname, "..", "dist", "extension.js");
const BUGGY = `import torch

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters())
optimizer.step
`;

interface Extension {
  activate(context: { subscriptions: unknown[] }): Promise<void>;
  deactivate(): Promise<void>;
}

const load = createRequire(__filename);
let folder: string;
let extension: Extension | undefined;

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "ta-lint-")));
});

afterEach(async () => {
  await extension?.deactivate();
  rmSync(folder, { recursive: true });
});

/** A window with a buggy file in which the extension has been activated. */
async function activated(settings: Record<string, unknown>) {
  const window = openWindow(folder, join(folder, "train.py"), BUGGY, settings);
  const modules = Module as unknown as { _load(name: string, ...rest: unknown[]): unknown };
  const original = modules._load;
  modules._load = (name, ...rest) => (name === "vscode" ? window.api : original(name, ...rest));
  delete load.cache[BUNDLE];
  extension = load(BUNDLE) as Extension;
  modules._load = original;
  await extension.activate({ subscriptions: [] });
  return window;
}

/** The `ta-lint` beside the interpreter that has it. */
const PATH = join(PYTHON, "..", "ta-lint");

test("findings are shown, with the page of the rule at the cursor, until the extension is disabled", async () => {
  const window = await activated({ path: PATH });
  await window.until(() => window.findings().length > 0);
  assert.deepEqual(
    window.findings().map(({ source, message }) => ({ source, message })),
    [{ source: "ta-lint", message: "`optimizer.step` is not called and does nothing: add `()`" }],
  );
  window.editor.selection.active = new Position(4, 3);
  await window.commands.get("ta-lint.showRule")?.();
  const [command, uri] = window.executed.at(-1) ?? [];
  assert.equal(command, "markdown.showPreview");
  assert.equal(String(uri), "ta-lint-rule:TA603.md");
  assert.match((await window.pages[0]?.provideTextDocumentContent(uri as never)) ?? "", /^# TA603: uncalled-method\n/);
  await window.commands.get("ta-lint.restart")?.();
  await window.until(() => window.findings().length > 0);
  window.set("enable", false);
  await window.until(() => window.findings().length === 0);
  assert.deepEqual(window.errors, []);
});

test("all fixes are asked of VS Code by their kind", async () => {
  const window = await activated({ enable: false });
  await window.commands.get("ta-lint.fixAll")?.();
  assert.deepEqual(window.executed, [
    ["editor.action.codeAction", { kind: "source.fixAll.ta-lint", apply: "first" }],
  ]);
});

test("without a server, a message says what to install, and a better path is taken up", async () => {
  const window = await activated({ path: join(folder, "ta-lint") });
  assert.equal(window.errors.length, 1);
  assert.match(window.errors[0] ?? "", /^ta-lint: .*ta-lint\.path does not start.*pip install 'ta-lint\[server\]'/);
  window.set("path", PATH);
  await window.until(() => window.findings().length > 0);
  assert.equal(window.errors.length, 1);
});
