import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

export interface Usage {
  readonly cpuUs: number;
  readonly residentBytes: number;
}

/** The length of a clock tick that Linux uses on all common machines. */
const TICK_US = 10_000;
const PAGE_BYTES = 4096;

/** A process that is asked and answers in lines of JSON, one thing at a time. It ends with its standard input. */
export class Peer<To extends object, From extends { readonly kind: string }> {
  readonly #process: ChildProcess;
  readonly #received: From[] = [];
  #ended = false;
  #wake = (): void => undefined;

  constructor(program: string, args: readonly string[]) {
    this.#process = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"] });
    const { stdout } = this.#process;
    if (stdout === null) throw new Error("the process has no standard output");
    this.#process.on("exit", () => {
      this.#ended = true;
      this.#wake();
    });
    // The exit of a process reports its end.
    this.#process.stdin?.on("error", () => undefined);
    createInterface(stdout).on("line", (line) => {
      this.#received.push(JSON.parse(line) as From);
      this.#wake();
    });
  }

  send(message: To): void {
    if (!this.#ended) this.#process.stdin?.write(`${JSON.stringify(message)}\n`);
  }

  /** Throws when something else comes: a stream that ends spoils the measurement. */
  async next<K extends From["kind"]>(kind: K): Promise<Extract<From, { kind: K }>> {
    while (this.#received.length === 0) {
      if (this.#ended) throw new Error(`the process that was to answer with ${kind} has ended`);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    const message = this.#received.shift();
    if (message?.kind !== kind) throw new Error(`got ${JSON.stringify(message)} in place of ${kind}`);
    return message as Extract<From, { kind: K }>;
  }

  /** Reads the CPU time and memory of the process from outside, so that all programs are measured alike. */
  usage(pid = this.#process.pid): Usage {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // Counted from behind the name, which may hold spaces: user and system time are the 12th and 13th.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const [, resident] = readFileSync(`/proc/${pid}/statm`, "utf8").split(" ");
    return {
      cpuUs: (Number(fields[11]) + Number(fields[12])) * TICK_US,
      residentBytes: Number(resident) * PAGE_BYTES,
    };
  }

  async close(): Promise<void> {
    if (this.#ended) return;
    this.#process.stdin?.end();
    await new Promise((resolve) => this.#process.once("exit", resolve));
  }
}
