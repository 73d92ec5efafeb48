// Bundles the extension into dist/extension.js, with the licences of what it contains beside it, and the tests into out/.

import { build } from "esbuild";
import { readFile, readdir, writeFile } from "node:fs/promises";

const common = { bundle: true, platform: "node", target: "node20", format: "cjs", logLevel: "warning" };

/** The text of the licence of each package in the bundle. */
async function notices(inputs) {
  const names = Object.keys(inputs).map((path) => /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1]);
  const texts = [...new Set(names.filter(Boolean))].sort().map(async (name) => {
    const folder = `node_modules/${name}`;
    const { version } = JSON.parse(await readFile(`${folder}/package.json`, "utf8"));
    const file = (await readdir(folder)).find((entry) => /^licen[cs]e/i.test(entry));
    if (file === undefined) throw new Error(`${name} has no licence`);
    return `${name} ${version}\n\n${await readFile(`${folder}/${file}`, "utf8")}`;
  });
  return (await Promise.all(texts)).join(`\n${"-".repeat(80)}\n\n`);
}

const extension = await build({
  ...common,
  entryPoints: ["src/extension.ts"],
  outfile: "dist/extension.js",
  external: ["vscode"],
  minify: true,
  metafile: true,
});
await writeFile("dist/notices.txt", await notices(extension.metafile.inputs));

const tests = (await readdir("test")).filter((name) => name.endsWith(".test.ts"));
await build({ ...common, entryPoints: tests.map((name) => `test/${name}`), outdir: "out" });
