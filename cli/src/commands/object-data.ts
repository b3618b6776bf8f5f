import { open } from "node:fs/promises";
import { basename } from "node:path";
import type { FlagValues } from "../command/flag.ts";
import { CliError } from "../errors.ts";
import type { World } from "../world.ts";

/**
 * Flags for values from files. A value in the command line could be read by other users of the
 * machine.
 */
export const FILE_FLAGS = {
  "from-file": {
    type: "list",
    hint: "[KEY=]FILE",
    help: "a value from a file, by default under its name; KEY=- from standard input",
  },
  "from-env-file": {
    type: "list",
    hint: "FILE",
    help: "values from lines of KEY=VALUE; - for standard input",
  },
} as const;

export const LITERAL_FLAG = {
  "from-literal": { type: "list", hint: "KEY=VALUE", help: "a value as it stands" },
} as const;

export type DataFlags = FlagValues<typeof FILE_FLAGS> & { readonly "from-literal"?: readonly string[] };

/** The size limit of one object, the same as the coordinator's. */
const MAX_BYTES = 1024 * 1024;

/**
 * Returns the data of all flags together. Throws USAGE if a key is given twice. Values never appear
 * in messages.
 */
export async function readData(
  flags: DataFlags,
  { stdin }: Pick<World, "stdin">,
): Promise<Record<string, Buffer>> {
  const data = new Map<string, Buffer>();
  const put = (key: string, value: Buffer): void => {
    if (key === "") throw new CliError("USAGE", "a key is empty");
    if (data.has(key)) throw new CliError("USAGE", `the key "${key}" is given twice`);
    data.set(key, value);
  };
  const names = [...flags["from-file"].map((each) => splitFile(each).path), ...flags["from-env-file"]];
  if (names.filter((name) => name === "-").length > 1)
    throw new CliError("USAGE", "standard input can be read only once");
  for (const text of flags["from-file"]) {
    const { key, path } = splitFile(text);
    if (path === "-" && key === undefined)
      throw new CliError("USAGE", "--from-file -: the key is missing: KEY=-");
    put(key ?? basename(path), await readBytes(path, stdin));
  }
  for (const path of flags["from-env-file"]) {
    for (const [key, value] of parseEnv(path, (await readBytes(path, stdin)).toString()))
      put(key, Buffer.from(value));
  }
  for (const text of flags["from-literal"] ?? []) {
    const split = text.indexOf("=");
    if (split < 1) throw new CliError("USAGE", "--from-literal is not KEY=VALUE");
    put(text.slice(0, split), Buffer.from(text.slice(split + 1)));
  }
  if (data.size === 0)
    throw new CliError("USAGE", "there are no values: give --from-file, --from-env-file and the like");
  return Object.fromEntries(data);
}

/** Reads a whole file or standard input (`-`), up to the size limit of one object. */
export async function readBytes(path: string, stdin: World["stdin"]): Promise<Buffer> {
  const name = path === "-" ? "standard input" : path;
  const chunks: Buffer[] = [];
  let length = 0;
  const add = (chunk: Uint8Array): void => {
    length += chunk.length;
    if (length > MAX_BYTES) throw new CliError("USAGE", `${name} is longer than ${MAX_BYTES} bytes`);
    chunks.push(Buffer.from(chunk));
  };
  if (path === "-") for await (const chunk of stdin) add(Buffer.from(chunk));
  else await readFileInto(path, add);
  return Buffer.concat(chunks);
}

async function readFileInto(path: string, add: (chunk: Uint8Array) => void): Promise<void> {
  try {
    await using file = await open(path);
    for await (const chunk of file.createReadStream({ autoClose: false })) add(chunk as Buffer);
  } catch (error) {
    if (error instanceof CliError) throw error;
    const { code } = error as NodeJS.ErrnoException;
    const what =
      code === "ENOENT" ? "does not exist" : code === "EISDIR" ? "is a directory" : `can't be read: ${code}`;
    throw new CliError("USAGE", `${path} ${what}`, { cause: error });
  }
}

function splitFile(text: string): { readonly key: string | undefined; readonly path: string } {
  const split = text.indexOf("=");
  return split === -1
    ? { key: undefined, path: text }
    : { key: text.slice(0, split), path: text.slice(split + 1) };
}

/**
 * Parses lines of `KEY=VALUE`. Empty lines and lines that begin with # are ignored. Quotes have no
 * special meaning.
 */
export function parseEnv(path: string, text: string): readonly (readonly [key: string, value: string])[] {
  return text.split(/\r?\n/).flatMap((line, index) => {
    if (line.trim() === "" || line.trimStart().startsWith("#")) return [];
    const split = line.indexOf("=");
    if (split < 1) throw new CliError("USAGE", `${path}:${index + 1}: not KEY=VALUE`);
    return [[line.slice(0, split).trim(), line.slice(split + 1)] as const];
  });
}
