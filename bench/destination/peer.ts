import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

export interface Usage {
  readonly cpuUs: number;
  readonly residentBytes: number;
}

/** The length of a clock tick on all common Linux machines. */
const TICK_US = 10_000;
const PAGE_BYTES = 4096;

/** A process that answers requests in lines of JSON, one at a time. It ends when its standard input ends. */
export class Peer<To extends object, From extends { readonly type: string }> {
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
    // The exit event reports the end of the process.
    this.#process.stdin?.on("error", () => undefined);
    createInterface(stdout).on("line", (line) => {
      this.#received.push(JSON.parse(line) as From);
      this.#wake();
    });
  }

  send(message: To): void {
    if (!this.#ended) this.#process.stdin?.write(`${JSON.stringify(message)}\n`);
  }

  /** Returns the next message. Throws if it has another type: a stream that ended would invalidate the measurement. */
  async next<K extends From["type"]>(type: K): Promise<Extract<From, { type: K }>> {
    while (this.#received.length === 0) {
      if (this.#ended) throw new Error(`the process that was to answer with ${type} has ended`);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    const message = this.#received.shift();
    if (message?.type !== type) throw new Error(`got ${JSON.stringify(message)} in place of ${type}`);
    return message as Extract<From, { type: K }>;
  }

  /** Returns the process's CPU time and memory, read from outside, so all programs are measured in the same way. */
  usage(pid = this.#process.pid): Usage {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // Fields are counted from the end of the name, which may contain spaces. User and system time are the 12th and
    // 13th.
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
