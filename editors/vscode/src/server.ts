/** Where `ta-lint` is, and whether its language server starts. Nothing here needs VS Code. */

import { execFile, type ExecFileException } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join, resolve } from "node:path";

export const REMEDY = "pip install 'ta-lint[server]'";

const PATIENCE = 60_000; // milliseconds; a cold start from a network drive takes many seconds

/** A way to call `ta-lint`; the arguments of a subcommand come after `args`. */
export interface Command {
  readonly command: string;
  readonly args: readonly string[];
}

/** What decides which `ta-lint` is called. */
export interface Places {
  /** The setting `ta-lint.path`, empty if it is not set. */
  readonly path: string;
  /** The Python interpreter that the user selected. */
  readonly interpreter?: string | undefined;
  /** The first folder of the workspace, where the server runs. */
  readonly folder?: string | undefined;
  readonly environment: NodeJS.ProcessEnv;
}

/** No `ta-lint` has a server that starts. The message says what was tried and what to do. */
export class NoServer extends Error {}

/** The ways to call `ta-lint`, the best one first. A set path is the only one. */
export function candidates(places: Places): Command[] {
  if (places.path.trim() !== "") return [{ command: expanded(places.path.trim(), places), args: [] }];
  const found: Command[] = [];
  // -P: a folder `ta_lint` of the workspace is not what the user installed
  if (places.interpreter) found.push({ command: places.interpreter, args: ["-P", "-m", "ta_lint"] });
  const onPath = located("ta-lint", places.environment);
  if (onPath !== undefined) found.push({ command: onPath, args: [] });
  return found;
}

/** The first way to call `ta-lint` of which the server starts. */
export async function findServer(places: Places): Promise<Command> {
  const tried = candidates(places);
  const complaints: string[] = [];
  for (const candidate of tried) {
    const complaint = await complaintOf(candidate, places.folder);
    if (complaint === undefined) return candidate;
    complaints.push(`${candidate.command}: ${complaint}.`);
  }
  if (places.path.trim() !== "") {
    const advice = `Correct it, or empty it and run ${REMEDY} in the selected Python environment.`;
    throw new NoServer(`the command of the setting ta-lint.path does not start. ${complaints.join(" ")} ${advice}`);
  }
  const where = places.interpreter === undefined ? "and put it on the PATH" : "in the selected Python environment";
  const said = complaints.join(" ") || "There is no ta-lint on the PATH.";
  throw new NoServer(`no ta-lint with a language server was found. ${said} Run ${REMEDY} ${where}.`);
}

/** What `ta-lint` prints for a subcommand. */
export function output(call: Command, args: readonly string[], folder?: string): Promise<string> {
  return new Promise((done, failed) => {
    const options = { cwd: folder, timeout: PATIENCE, maxBuffer: 2 ** 26, windowsHide: true };
    const child = execFile(call.command, [...call.args, ...args], options, (error, stdout, stderr) => {
      if (error === null) done(stdout);
      else failed(new Error(reason(error, stderr), { cause: error }));
    });
    child.stdin?.on("error", () => {}); // it ended before it read
    child.stdin?.end();
  });
}

/** Why the server does not start. With nothing to read it starts and ends at once. */
async function complaintOf(candidate: Command, folder: string | undefined): Promise<string | undefined> {
  try {
    await output(candidate, ["server"], folder);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message.replace(/\.$/, "") : String(error);
  }
}

/** Why a command failed: its last line of standard error, or why there is none. */
function reason(error: ExecFileException, stderr: string): string {
  if (error.code === "ENOENT") return "no such command";
  if (error.killed) return `no answer within ${PATIENCE / 1000} seconds`;
  return stderr.trimEnd().split("\n").at(-1)?.trim() || error.message;
}

function expanded(path: string, places: Places): string {
  const folder = places.folder ?? "";
  const full = path.replaceAll("${workspaceFolder}", folder).replace(/^~(?=[\\/])/, homedir());
  const hasFolder = /[\\/]/.test(full);
  return hasFolder ? resolve(folder, full) : (located(full, places.environment) ?? full);
}

/** The full path of a command on the PATH; a command in the folder of the workspace does not count. */
function located(name: string, environment: NodeJS.ProcessEnv): string | undefined {
  const folders = (environment.PATH ?? environment.Path ?? "").split(delimiter).filter((folder) => folder !== "");
  const names = process.platform === "win32" ? [`${name}.exe`] : [name];
  return folders.flatMap((folder) => names.map((one) => join(folder, one))).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
