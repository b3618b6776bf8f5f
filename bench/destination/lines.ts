import { createInterface } from "node:readline";

/** A benchmark's process: asked in lines of JSON on standard input, it answers on standard output and ends with the former. */
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
