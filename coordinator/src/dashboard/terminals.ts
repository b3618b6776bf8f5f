import type { ExecRequest } from "@forage/proto/forage/operator/v1/operator";
import { CoordinatorError } from "../errors.ts";
import { Channel } from "../link/channel.ts";
import type { DashboardSession } from "./sessions.ts";

export type TerminalInput = Extract<
  NonNullable<ExecRequest["frame"]>,
  { readonly $case: "stdin" | "resize" }
>;

interface OpenTerminal {
  readonly session: DashboardSession;
  readonly input: Channel<ExecRequest>;
}

/** The number of input chunks queued for the agent. Beyond it, requests of the browser wait. */
const WAITING_INPUTS = 16;
const ID_BYTES = 16;

/**
 * Connects the output stream of each terminal with its input, which arrives in separate requests.
 */
export class Terminals {
  readonly #randomBytes: (count: number) => Uint8Array;
  readonly #open = new Map<string, OpenTerminal>();

  constructor(randomBytes: (count: number) => Uint8Array) {
    this.#randomBytes = randomBytes;
  }

  get size(): number {
    return this.#open.size;
  }

  /** Opens a terminal. The limit of streams of a session also limits its terminals. */
  open(session: DashboardSession, start: NonNullable<ExecRequest["frame"]>) {
    const id = Buffer.from(this.#randomBytes(ID_BYTES)).toString("hex");
    const input = new Channel<ExecRequest>(WAITING_INPUTS);
    void input.push({ frame: start });
    this.#open.set(id, { session, input });
    const close = (): void => {
      this.#open.delete(id);
      input.close();
    };
    return { id, requests: input, close };
  }

  /** Resolves when the input was accepted. Throws NOT_FOUND if the session has no such terminal. */
  async write(id: string, session: DashboardSession, frame: TerminalInput): Promise<void> {
    const terminal = this.#open.get(id);
    if (terminal === undefined || terminal.session !== session || !(await terminal.input.push({ frame })))
      throw new CoordinatorError("NOT_FOUND", "the terminal has ended");
  }
}
