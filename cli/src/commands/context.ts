import { resolve } from "node:path";
import { defineCommand, groupCommands } from "../command/definition.ts";
import {
  checkContextName,
  type FileSettings,
  type FoundConfig,
  parseConfig,
  readIfThere,
  SHARED_CONFIG,
  userConfigPath,
} from "../config/config-file.ts";
import { withContext, withCurrent, withoutContext } from "../config/edit-contexts.ts";
import { noContext, parseServers, readCa } from "../config/settings.ts";
import { readTokenFile } from "../config/token.ts";
import { writeConfig } from "../config/write-config.ts";
import { printingOf, printListing } from "../context.ts";
import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import type { World } from "../world.ts";

const NAME = { name: "NAME", required: true, help: "name of the context" } as const;

interface Row {
  readonly name: string;
  readonly isCurrent: boolean;
  readonly settings: FileSettings;
}

const add = defineCommand({
  name: "add",
  summary: "Add a coordinator to the configuration file",
  details: `Keeps --server, --ca-file, --token-file and --namespace under the name. The files stay where they are.
The first context becomes the current one, unless the file has settings outside of contexts.`,
  operands: [NAME],
  flags: {
    use: { type: "switch", help: "make it the current context" },
    replace: { type: "switch", help: "replace a context of this name" },
  },
  run: async (invocation) => {
    const { flags, world, operands } = invocation;
    const [name = ""] = operands;
    checkContextName(name, "context add");
    const settings = settingsOf(flags);
    const file = openFile(flags.config, world);
    if (file.config.contexts.has(name) && !flags.replace)
      throw new CliError("CONFIG", `there is a context "${name}" in ${file.path}: --replace replaces it`);
    const { current, contexts, settings: own } = file.config;
    const becomesCurrent =
      flags.use || (current === undefined && contexts.size === 0 && Object.keys(own).length === 0);
    const added = withContext(file.text, name, settings);
    file.write(becomesCurrent ? withCurrent(added, name) : added);
    const hint = becomesCurrent ? "it is the current one" : `to use it: forage context use ${name}`;
    world.stdout.write(`context "${name}" is in ${file.path}; ${hint}\n`);
    return EXIT.ok;
  },
});

const use = defineCommand({
  name: "use",
  summary: "Make a context the current one",
  details: "--context and FORAGE_CONTEXT choose another one for a single command or shell.",
  operands: [NAME],
  run: async ({ flags, world, operands }) => {
    const [name = ""] = operands;
    const file = openFile(flags.config, world);
    assertThere(file, name);
    file.write(withCurrent(file.text, name));
    world.stdout.write(`the current context is "${name}"\n`);
    return EXIT.ok;
  },
});

const ls = defineCommand({
  name: "ls",
  summary: "List the contexts, and show which one is in use",
  run: async (invocation) => {
    const { flags, world } = invocation;
    const { path, config } = openFile(flags.config, world);
    const chosen = flags.context ?? (world.env.FORAGE_CONTEXT || config.current);
    const rows: Row[] = [...config.contexts].map(([name, settings]) => ({
      name,
      settings,
      isCurrent: name === chosen,
    }));
    printListing(printingOf(invocation), {
      columns: [
        { title: "USED", value: ({ isCurrent }) => (isCurrent ? "*" : "") },
        { title: "CONTEXT", value: ({ name }) => name },
        { title: "SERVER", value: ({ settings }) => settings.server ?? "" },
        { title: "NAMESPACE", value: ({ settings }) => settings.namespace ?? "" },
        { title: "CA FILE", value: ({ settings }) => settings.caFile ?? "", wide: true },
        { title: "TOKEN FILE", value: ({ settings }) => settings.tokenFile ?? "", wide: true },
      ],
      rows,
      json: ({ name, isCurrent, settings }) => ({ name, current: isCurrent, ...settings }),
      name: ({ name }) => name,
      none: `no contexts in ${path}: \`forage context add NAME\` adds one`,
    });
    return EXIT.ok;
  },
});

const rm = defineCommand({
  name: "rm",
  summary: "Remove contexts from the configuration file",
  details: "The files with the authority's certificate and with the token stay.",
  operands: [{ ...NAME, repeated: true }],
  run: async ({ flags, world, operands }) => {
    const file = openFile(flags.config, world);
    for (const name of operands) assertThere(file, name);
    file.write(operands.reduce(withoutContext, file.text));
    for (const name of operands) world.stdout.write(`context "${name}" removed\n`);
    if (operands.includes(file.config.current ?? "")) world.stderr.write("there is no current context now\n");
    return EXIT.ok;
  },
});

export const context = groupCommands("context", "Manage the coordinators of the configuration file", [
  add,
  use,
  ls,
  rm,
]);

interface SettingValues {
  readonly server: string | undefined;
  readonly "ca-file": string | undefined;
  readonly "token-file": string | undefined;
  readonly namespace: string | undefined;
}

/** Reads the files that the settings name, so that invalid ones are reported now. */
function settingsOf(flags: SettingValues): FileSettings {
  const { server, "ca-file": caFile, "token-file": tokenFile, namespace } = flags;
  if (server === undefined || caFile === undefined || tokenFile === undefined)
    throw new CliError("USAGE", "a context needs --server, --ca-file and --token-file");
  readCa(caFile);
  readTokenFile(tokenFile);
  return {
    server: parseServers(server).join(","),
    caFile: resolve(caFile),
    tokenFile: resolve(tokenFile),
    ...(namespace !== undefined && { namespace }),
  };
}

interface ConfigFile {
  readonly path: string;
  readonly text: string;
  readonly config: FoundConfig;
  readonly write: (text: string) => void;
}

/** Opens the file to change: the named one, or the user's own, which may be missing. */
function openFile(named: string | undefined, { env, homeDir, stderr, randomId }: World): ConfigFile {
  const path = named ?? (env.FORAGE_CONFIG || userConfigPath(homeDir));
  const found = readIfThere(path);
  const text = found ?? "";
  return {
    path,
    text,
    config: parseConfig(path, text, homeDir),
    write: (changed) => {
      writeConfig(path, changed, randomId());
      if (found === undefined && path === userConfigPath(homeDir) && readIfThere(SHARED_CONFIG) !== undefined)
        stderr.write(`${path} is new, and is read instead of ${SHARED_CONFIG}\n`);
    },
  };
}

function assertThere({ path, config }: ConfigFile, name: string): void {
  if (!config.contexts.has(name)) throw noContext(name, path, [...config.contexts.keys()]);
}
