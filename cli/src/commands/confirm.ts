import { createInterface } from "node:readline";
import type { Context } from "../context.ts";
import { CliError } from "../errors.ts";
import { plainText } from "../output/plain-text.ts";

/** Asks on the terminal. Without a terminal it throws an error. The end of input means no. */
export async function confirm({ world, signal }: Context, question: string): Promise<boolean> {
  const { stdin, stderr } = world;
  if (stdin.isTTY !== true) {
    throw new CliError("USAGE", "there is no terminal for the confirmation: repeat the command with --yes");
  }
  // The terminal edits the line itself and stays as it is, so that Ctrl-C is the signal that it always is.
  const reader = createInterface({ input: stdin, terminal: false });
  try {
    stderr.write(plainText(question, { lines: true }));
    const answer = await new Promise<string>((resolve) => {
      reader.once("line", resolve);
      reader.once("close", () => resolve(""));
      signal.addEventListener("abort", () => resolve(""), { once: true });
    });
    if (signal.aborted) throw signal.reason;
    return /^y(es)?$/i.test(answer.trim());
  } finally {
    reader.close();
  }
}

/**
 * Asks before something is lost, unless `yes` says that it is meant. Without a terminal there is no question. Throws REFUSED if the answer
 * is no.
 */
export async function confirmLoss(context: Context, question: string, yes: boolean): Promise<void> {
  if (yes || context.world.stdin.isTTY !== true) return;
  if (await confirm(context, `${question} [y/N] `)) return;
  throw new CliError("REFUSED", "nothing was changed");
}
