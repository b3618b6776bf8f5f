import { createInterface } from "node:readline";

/**
 * Answers requests of a benchmark's process. Requests are lines of JSON on standard input, and answers lines on
 * standard output. Ends when standard input ends.
 */
export function answerLines<From>(
  answer: (message: From) => void,
  close: () => Promise<void> = () => Promise.resolve(),
): void {
  const lines = createInterface(process.stdin);
  lines.on("line", (line) => answer(JSON.parse(line) as From));
  lines.on("close", () => void close().finally(() => process.exit(0)));
}

export function sendLine(message: object): void {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}
