/** Which `ta-lint` the extension starts, and what it says if there is none. */

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { after, test } from "node:test";

import { interpreterOf, type PythonApi } from "../src/python";
import { idOf, rulePage, rules } from "../src/rules";
import { candidates, findServer, NoServer, type Places } from "../src/server";
import { PYTHON } from "./editor";

const folder = realpathSync(mkdtempSync(join(tmpdir(), "ta-lint-")));
after(() => rmSync(folder, { recursive: true }));

const NOTHING: Places = { path: "", folder, environment: {} };
const CALL = { command: PYTHON, args: ["-P", "-m", "ta_lint"] };

/** A command in a folder of its own. */
function command(name: string, script: string): string {
  const bin = mkdtempSync(join(folder, "bin-"));
  writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  return join(bin, name);
}

function onPath(...paths: string[]): NodeJS.ProcessEnv {
  return { PATH: paths.map((path) => join(path, "..")).join(delimiter) };
}

async function complaint(places: Places): Promise<string> {
  const error: unknown = await findServer(places).catch((error: unknown) => error);
  assert.ok(error instanceof NoServer);
  return error.message;
}

test("a set path is the only candidate", () => {
  const environment = onPath(command("ta-lint", ""));
  const path = "/opt/bin/ta-lint";
  assert.deepEqual(candidates({ ...NOTHING, path, interpreter: PYTHON, environment }), [{ command: path, args: [] }]);
});

test("a set path may be relative, begin at home or in the workspace, or be a name", () => {
  const environment = onPath(command("ta-lint-2", ""));
  const set = (path: string) => candidates({ ...NOTHING, path, environment })[0]?.command;
  assert.equal(set(".venv/bin/ta-lint"), join(folder, ".venv/bin/ta-lint"));
  assert.equal(set("${workspaceFolder}/.venv/bin/ta-lint"), join(folder, ".venv/bin/ta-lint"));
  assert.equal(set("~/bin/ta-lint"), join(homedir(), "bin/ta-lint"));
  assert.equal(set("ta-lint-2"), join(environment.PATH ?? "", "ta-lint-2"));
});

test("the selected environment comes before the PATH", () => {
  const found = command("ta-lint", "");
  const environment = onPath(command("ta-nothing", ""), found);
  assert.deepEqual(candidates({ ...NOTHING, interpreter: PYTHON, environment }), [CALL, { command: found, args: [] }]);
});

test("an environment without ta-lint leaves it to the PATH", async () => {
  const interpreter = command("python", 'echo "python: No module named ta_lint" >&2; exit 1');
  const found = command("ta-lint", '[ "$*" = server ] && cat');
  const places = { ...NOTHING, interpreter, environment: { ...process.env, ...onPath(found) } };
  assert.deepEqual(await findServer(places), { command: found, args: [] });
});

test("a folder `ta_lint` of the workspace is not run", async () => {
  const project = mkdtempSync(join(folder, "project-"));
  mkdirSync(join(project, "ta_lint"));
  writeFileSync(join(project, "ta_lint", "__main__.py"), "raise SystemExit('of the workspace')\n");
  assert.deepEqual(await findServer({ ...NOTHING, folder: project, interpreter: PYTHON }), CALL);
});

test("without any, the message says what was looked at and what to do", async () => {
  assert.equal(
    await complaint(NOTHING),
    "no ta-lint with a language server was found. There is no ta-lint on the PATH. " +
      "Run pip install 'ta-lint[server]' and put it on the PATH.",
  );
  const interpreter = command("python", 'echo "python: No module named ta_lint" >&2; exit 1');
  assert.equal(
    await complaint({ ...NOTHING, interpreter }),
    `no ta-lint with a language server was found. ${interpreter}: python: No module named ta_lint. ` +
      "Run pip install 'ta-lint[server]' in the selected Python environment.",
  );
});

test("ta-lint without the packages of its server is told from none", async () => {
  const found = command("ta-lint", "echo \"ta-lint: error: server: the module pygls is missing\" >&2; exit 2");
  assert.match(await complaint({ ...NOTHING, environment: onPath(found) }), /the module pygls is missing\. Run pip/);
});

test("a set path that does not start is named, and nothing else is tried", async () => {
  const path = join(folder, "missing", "ta-lint");
  assert.equal(
    await complaint({ ...NOTHING, path, interpreter: PYTHON }),
    `the command of the setting ta-lint.path does not start. ${path}: no such command. ` +
      "Correct it, or empty it and run pip install 'ta-lint[server]' in the selected Python environment.",
  );
});

test("the interpreter is that of the environment selected for the folder", async () => {
  const asked: unknown[] = [];
  const api: PythonApi = {
    environments: {
      getActiveEnvironmentPath: (resource) => {
        asked.push(resource);
        return { id: "venv", path: "/venv" };
      },
      resolveEnvironment: ({ path }) => Promise.resolve({ executable: { uri: { fsPath: `${path}/bin/python` } } }),
      onDidChangeActiveEnvironmentPath: () => ({ dispose: () => {} }),
    },
  };
  assert.equal(await interpreterOf(api, "folder"), "/venv/bin/python");
  assert.deepEqual(asked, ["folder"]);
  assert.equal(await interpreterOf(undefined, "folder"), undefined);
});

test("the pages of the rules are those of the installed ta-lint", async () => {
  const all = await rules(CALL);
  assert.ok(all.some(({ id, name }) => id === "TA603" && name === "uncalled-method"));
  assert.match(await rulePage(CALL, "TA603"), /^# TA603: uncalled-method\n/);
});

test("the id of a rule is the code of its finding, with or without a link", () => {
  assert.equal(idOf({ value: "TA603" }), "TA603");
  assert.equal(idOf("TA603"), "TA603");
  assert.equal(idOf(undefined), undefined);
});
