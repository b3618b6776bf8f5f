import { readFile } from "node:fs/promises";
import type { Readable } from "node:stream";
import { type CommandLine, ConfigError } from "../config.ts";
import { helpText } from "../help-text.ts";

export interface JoinTask {
  /** The address (HOST:PORT) of the gRPC port of a coordinator of the cluster. */
  readonly address: string;
  /** The file with the token; undefined if the token is read from standard input. */
  readonly tokenFile: string | undefined;
}

const ADDRESS = /^(\[[0-9a-fA-F:]+\]|[^:\s]+):\d{1,5}$/;
const MAX_TOKEN_LENGTH = 1_000;

/**
 * Returns the task if the command line begins with `join`, otherwise undefined. Throws ConfigError.
 */
export function joinTask({
  words,
  tokenFile,
  epoch,
  newStore,
}: Pick<CommandLine, "words" | "tokenFile" | "epoch" | "newStore">): JoinTask | undefined {
  const [name, address = "", ...rest] = words;
  if (name !== "join") {
    if (tokenFile !== undefined) throw new ConfigError("--token-file is only for join");
    return undefined;
  }
  if (epoch !== undefined || newStore) throw new ConfigError("join accepts neither --epoch nor --new-store");
  if (rest.length > 0)
    throw new ConfigError(
      "join needs exactly one address. Others on this host can read command lines, so the token comes from standard input or --token-file",
    );
  if (!ADDRESS.test(address)) throw new ConfigError(`join needs HOST:PORT\n${helpText("join")}`);
  return { address, tokenFile: tokenFile === "-" ? undefined : tokenFile };
}

/** Reads the token from the file, or from standard input. Throws ConfigError. */
export async function readToken(file: string | undefined, input: Readable): Promise<string> {
  const text = (file === undefined ? await readAll(input) : await readTokenFile(file)).trim();
  if (text === "") throw new ConfigError(`${file ?? "standard input"}: holds no token`);
  return text;
}

async function readTokenFile(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (cause) {
    throw new ConfigError(`--token-file: ${file} can't be read`, { cause });
  }
}

async function readAll(input: Readable): Promise<string> {
  let text = "";
  for await (const chunk of input) {
    text += String(chunk);
    if (text.length > MAX_TOKEN_LENGTH) throw new ConfigError("standard input: is too long for a token");
    // A terminal does not end the input after a line.
    if (text.includes("\n")) break;
  }
  return text;
}
