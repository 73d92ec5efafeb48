/** The pages of the rules, which the installed `ta-lint` has itself. Nothing here needs VS Code. */

import { output, type Command } from "./server";

export interface Rule {
  readonly id: string;
  readonly name: string;
  readonly summary: string;
}

/** All rules, in the order of their ids. */
export async function rules(call: Command): Promise<Rule[]> {
  return JSON.parse(await output(call, ["rules", "--format", "json"])) as Rule[];
}

/** The page of a rule, in Markdown. */
export function rulePage(call: Command, id: string): Promise<string> {
  return output(call, ["rule", id]);
}

/** The id in the code of a diagnostic, which VS Code keeps with the link to the page. */
export function idOf(code: string | number | { value: string | number } | undefined): string | undefined {
  const value = typeof code === "object" ? code.value : code;
  return value === undefined ? undefined : String(value);
}
