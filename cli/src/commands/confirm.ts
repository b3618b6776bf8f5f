import { createInterface } from "node:readline";
import type { Context } from "../context.ts";
import { CliError } from "../errors.ts";
import { plainText } from "../output/plain-text.ts";

/**
 * Asks a question on the terminal. Returns false at the end of input. Throws without a terminal.
 */
export async function confirm({ world, signal }: Context, question: string): Promise<boolean> {
  const { stdin, stderr } = world;
  if (stdin.isTTY !== true) {
    throw new CliError("USAGE", "there is no terminal for the confirmation: repeat the command with --yes");
  }
  // The terminal stays in its normal mode and edits the line itself, so that Ctrl-C sends its usual
  // signal.
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
 * Requests a confirmation before data is lost, unless `yes` is set. Throws without a terminal, and
 * throws REFUSED if the user declines.
 */
export async function confirmLoss(context: Context, question: string, yes: boolean): Promise<void> {
  if (yes || context.world.stdin.isTTY !== true) return;
  if (await confirm(context, `${question} [y/N] `)) return;
  throw new CliError("REFUSED", "nothing was changed");
}
