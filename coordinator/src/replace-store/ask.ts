import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { ConfigError } from "../config.ts";

export interface AskOptions {
  /** Whether the question is already answered with yes. */
  readonly yes: boolean;
  readonly input: Readable & { readonly isTTY?: boolean };
  readonly output: Writable;
}

/** Asks a question on a terminal. Without a terminal, `yes` must be set. */
export async function ask(question: string, { yes, input, output }: AskOptions): Promise<boolean> {
  if (yes) {
    output.write(`${question} yes\n`);
    return true;
  }
  if (input.isTTY !== true)
    throw new ConfigError(
      `${question}\nThere is no terminal for the confirmation: repeat the command with --yes`,
    );
  output.write(`${question} [y/N] `);
  const lines = createInterface({ input, terminal: false });
  try {
    for await (const line of lines) return /^y(es)?$/i.test(line.trim());
    return false;
  } finally {
    lines.close();
  }
}
