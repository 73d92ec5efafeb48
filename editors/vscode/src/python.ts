/** The Python environment that the user selected, as the Python extension of Microsoft tells it. */

/** What is used of that extension's API. */
export interface PythonApi {
  readonly environments: {
    getActiveEnvironmentPath(resource?: unknown): EnvironmentPath;
    resolveEnvironment(environment: EnvironmentPath): Promise<Environment | undefined>;
    onDidChangeActiveEnvironmentPath(listener: () => void): { dispose(): void };
  };
}

interface EnvironmentPath {
  readonly id: string;
  readonly path: string;
}

interface Environment {
  readonly executable: { readonly uri?: { readonly fsPath: string } | undefined };
}

/** The interpreter of the environment selected for a folder; undefined if there is none. */
export async function interpreterOf(api: PythonApi | undefined, folder: unknown): Promise<string | undefined> {
  if (api === undefined) return undefined;
  const environment = await api.environments.resolveEnvironment(api.environments.getActiveEnvironmentPath(folder));
  return environment?.executable.uri?.fsPath;
}
