/** The server that the extension finds, asked for all that VS Code asks it for. */

import assert from "node:assert/strict";
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { CodeAction, MarkupContent, TextDocumentEdit, TextEdit } from "vscode-languageserver-protocol/node";

import manifest from "../package.json";
import { Editor } from "./editor";

const BUGGY = `import torch

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters())
optimizer.step
`;
const SAFE = `import torch

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def train():
    total = 0.0
    for batch in range(10):
        optimizer.zero_grad()
        loss = model(torch.randn(8, 4)).square().mean()
        loss.backward()
        optimizer.step()
        total += loss
    print(f"{total:.3f}")
`;
const AT = { line: 4, character: 3 };

const folder = realpathSync(mkdtempSync(join(tmpdir(), "ta-lint-")));
let editor: Editor;

before(async () => {
  editor = await Editor.on(folder);
});

after(async () => {
  assert.equal(await editor?.close(), 0);
  rmSync(folder, { recursive: true });
});

function edits(action: CodeAction | undefined): TextEdit[] {
  const changes = (action?.edit?.documentChanges ?? []) as TextDocumentEdit[];
  return changes.flatMap((change) => change.edits as TextEdit[]);
}

test("the server is of this release and offers what the commands need", () => {
  assert.deepEqual(editor.initialized.serverInfo, { name: "ta-lint", version: manifest.version });
  const { codeActionProvider, hoverProvider, notebookDocumentSync } = editor.initialized.capabilities;
  assert.ok(typeof codeActionProvider === "object");
  assert.ok(codeActionProvider.codeActionKinds?.includes("source.fixAll.ta-lint"));
  assert.ok(hoverProvider);
  assert.ok(notebookDocumentSync);
});

test("a bug is shown where it is, with a link to the page of its rule", async () => {
  const [finding, ...others] = await editor.open("train.py", BUGGY);
  assert.deepEqual(others, []);
  assert.equal(finding?.code, "TA603");
  assert.equal(finding.source, "ta-lint");
  assert.equal(finding.message, "`optimizer.step` is not called and does nothing: add `()`");
  assert.deepEqual(finding.range, { start: { line: 4, character: 0 }, end: { line: 4, character: 14 } });
  assert.match(finding.codeDescription?.href ?? "", /\/TA603-uncalled-method\.md$/);
});

test("its actions are the fix and a comment that ignores it", async () => {
  await editor.open("actions.py", BUGGY);
  const actions = await editor.actions("actions.py", { start: AT, end: AT }, "quickfix");
  assert.deepEqual(
    actions.map(({ title }) => title.replace(/^TA603: /, "")),
    ["call it (unsafe)", "ignore here"],
  );
  assert.deepEqual(
    actions.flatMap(edits).map(({ newText }) => newText),
    ["()", "  # noqa: TA603"],
  );
});

test("all safe fixes of a file are one action", async () => {
  await editor.open("safe.py", SAFE);
  const [action] = await editor.actions("safe.py", { start: AT, end: AT }, "source.fixAll.ta-lint");
  assert.equal(action?.kind, "source.fixAll.ta-lint");
  assert.deepEqual(
    edits(await editor.resolve(action)).map(({ newText }) => newText),
    ["        total += loss.detach()\n"],
  );
});

test("the pointer on a finding shows the page of its rule", async () => {
  await editor.open("hover.py", BUGGY);
  const hover = await editor.hover("hover.py", AT);
  const { kind, value } = hover?.contents as MarkupContent;
  assert.equal(kind, "markdown");
  assert.match(value, /TA603: uncalled-method/);
});

test("a notebook is one program", async () => {
  const cells = `${BUGGY}print("done")`.split(/(?=^optimizer\.step$)/m);
  const [first, second] = await editor.openNotebook("train.ipynb", ...cells);
  assert.deepEqual(first, []);
  assert.deepEqual(second?.map(({ code }) => code), ["TA603"]);
});
