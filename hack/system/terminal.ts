import { spawn } from "@lydell/node-pty";
import { waitFor } from "../lib/wait-for.ts";

export interface TerminalOptions {
  readonly env: Readonly<Record<string, string>>;
  readonly columns: number;
  readonly rows: number;
}

const SHOW_LIMIT_MS = 60_000;

/** A program on a separate terminal, as if a person used it. */
export class Terminal {
  readonly #pty: ReturnType<typeof spawn>;
  readonly exitCode: Promise<number>;
  #screen = "";

  constructor(file: string, args: readonly string[], { env, columns, rows }: TerminalOptions) {
    this.#pty = spawn(file, [...args], {
      name: "xterm-256color",
      cols: columns,
      rows,
      env: { ...process.env, ...env },
    });
    this.#pty.onData((text) => {
      this.#screen += text;
    });
    this.exitCode = new Promise((resolve) => this.#pty.onExit(({ exitCode }) => resolve(exitCode)));
  }

  /** Everything that was ever written to the terminal. */
  get screen(): string {
    return this.#screen;
  }

  type(keys: string): void {
    this.#pty.write(keys);
  }

  resize(columns: number, rows: number): void {
    this.#pty.resize(columns, rows);
  }

  shows(text: string | RegExp): Promise<unknown> {
    const shown = () =>
      typeof text === "string" ? this.#screen.includes(text) : text.test(this.#screen) || undefined;
    return waitFor(shown, {
      what: `${text} on the terminal`,
      limitMs: SHOW_LIMIT_MS,
      explain: () => JSON.stringify(this.#screen.slice(-2_000)),
    });
  }

  kill(): void {
    this.#pty.kill("SIGKILL");
  }
}
