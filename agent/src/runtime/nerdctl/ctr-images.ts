import { once } from "node:events";
import type { Writable } from "node:stream";
import type { ImageContent } from "../../images/image-content.ts";
import type { ImageImport } from "../../images/image-import.ts";
import { runProgram } from "../../programs/run-program.ts";
import { startProgram } from "../../programs/start-program.ts";
import { type WatchedProgram, watchProgram } from "../../programs/watch-program.ts";
import { RuntimeError } from "../runtime.ts";

export interface CtrImagesOptions {
  /** The path of containerd's socket. */
  readonly address: string;
  /** The containerd namespace. */
  readonly namespace: string;
  /** The path of containerd's command. Default: found in the usual directories. */
  readonly program?: string;
  /** Starts the program. Default: as a child process. */
  readonly start?: typeof startProgram;
  readonly killPatienceMs?: number;
}

const ENV = { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" };
const CALL_TIMEOUT_MS = 60_000;
/** The time to wait for the end of a killed program before abandoning it. */
const KILL_PATIENCE_MS = 5_000;
/** The time in which the program must accept the next piece of an archive. */
const WRITE_STALL_MS = 5 * 60_000;
/** The time in which the program must unpack a complete image: some gigabytes on a slow disk. */
const UNPACK_STALL_MS = 60 * 60_000;
// A digest is 72 bytes, so this suffices for 400,000 blobs.
const OUTPUT_BYTES_MAX = 32 * 1024 * 1024;
const COMPLAINT_MAX_LENGTH = 4_096;

/**
 * Imports images with containerd's own `ctr`. `nerdctl load` needs a service that containerd 1.6 doesn't have, and
 * nerdctl can't list stored content.
 */
export class CtrImages implements ImageImport, ImageContent {
  readonly #options: CtrImagesOptions;

  constructor(options: CtrImagesOptions) {
    this.#options = options;
  }

  async contents(signal: AbortSignal): Promise<ReadonlySet<string>> {
    const stdout = await this.#call(["content", "ls", "--quiet"], signal);
    return new Set(stdout.split("\n").filter(Boolean));
  }

  async load(archive: AsyncIterable<Buffer>, signal: AbortSignal): Promise<void> {
    const { child, watched, complaint } = this.#start(["images", "import", "-"], signal, true);
    child.stdout.resume();
    try {
      await writeAll(archive, child.stdin, watched);
    } catch (error) {
      // ctr creates no image from a truncated archive, so kill it before its input ends.
      watched.kill();
      await watched.ended;
      throw error;
    }
    const { exitCode, error } = await watched.ended;
    if (exitCode === 0) return;
    if (signal.aborted) throw new RuntimeError("ABORTED", "ctr images: cancelled", { retryable: true });
    if (watched.stalled) throw new RuntimeError("ABORTED", "ctr images: no progress", { retryable: true });
    throw this.#failure(exitCode, complaint(), error);
  }

  async tag(name: string, further: string, signal: AbortSignal): Promise<void> {
    await this.#call(["images", "tag", "--force", name, further], signal);
  }

  async untag(name: string, signal: AbortSignal): Promise<void> {
    await this.#call(["images", "rm", name], signal);
  }

  async target(reference: string, signal: AbortSignal): Promise<string | undefined> {
    const stdout = await this.#call(["images", "ls", `name==${JSON.stringify(reference)}`], signal);
    const row = stdout.split("\n").find((line) => line.startsWith(`${reference} `));
    return row?.split(/\s+/)[2];
  }

  async *read(digest: string, signal: AbortSignal): AsyncGenerator<Buffer> {
    const { child, watched, complaint } = this.#start(["content", "get", digest], signal);
    const { stdout } = child;
    // An abandoned program may never close its output.
    void watched.ended.then(({ error }) => error && stdout.destroy(error));
    try {
      yield* stdout as AsyncIterable<Buffer>;
    } finally {
      watched.kill();
    }
    const { exitCode, error } = await watched.ended;
    if (exitCode !== 0) throw this.#failure(exitCode, complaint(), error);
  }

  #start(args: readonly string[], signal: AbortSignal, stdin = false) {
    const { start = startProgram, killPatienceMs = KILL_PATIENCE_MS } = this.#options;
    const child = start(this.#program, this.#argv(args), { env: ENV, stdin });
    let text = "";
    child.stderr.setEncoding("utf8").on("data", (more: string) => {
      text = `${text}${more}`.slice(-COMPLAINT_MAX_LENGTH);
    });
    return { child, watched: watchProgram(child, signal, killPatienceMs), complaint: () => text };
  }

  get #program(): string {
    return this.#options.program ?? "ctr";
  }

  #argv(args: readonly string[]): readonly string[] {
    const { address, namespace } = this.#options;
    return [`--address=${address}`, `--namespace=${namespace}`, ...args];
  }

  async #call(args: readonly string[], signal: AbortSignal): Promise<string> {
    const limits = { timeoutMs: CALL_TIMEOUT_MS, outputBytesMax: OUTPUT_BYTES_MAX };
    const result = await runProgram(this.#program, this.#argv(args), { env: ENV, signal, ...limits });
    if (result.exitCode === 0 && result.killedFor === undefined) return result.stdout;
    if (result.killedFor !== undefined)
      throw new RuntimeError("ABORTED", `ctr ${args[0]}: ended for ${result.killedFor}`, { retryable: true });
    throw this.#failure(result.exitCode, result.stderr, result.error);
  }

  #failure(exitCode: number | undefined, complaint: string, cause: unknown): RuntimeError {
    const last = complaint.trim().split("\n").at(-1) ?? "";
    const message =
      exitCode === undefined
        ? `the program ${this.#program} of containerd can't be started on this host`
        : `containerd refused the call: ${last.replace(/^ctr: /, "").slice(0, COMPLAINT_MAX_LENGTH)}`;
    return new RuntimeError("UNKNOWN", message, { retryable: true, cause });
  }
}

/**
 * Writes the archive as fast as the program reads it, then ends the input. Stops without an error when the program has
 * ended.
 */
async function writeAll(
  archive: AsyncIterable<Buffer>,
  input: Writable | undefined,
  { over, arm, disarm }: WatchedProgram,
): Promise<void> {
  for await (const chunk of archive) {
    if (input === undefined || over.aborted) return;
    if (input.write(chunk)) continue;
    // Time spent waiting for the sender doesn't count.
    arm(WRITE_STALL_MS);
    await once(input, "drain", { signal: over }).catch(() => undefined);
    disarm();
  }
  input?.end();
  arm(UNPACK_STALL_MS);
}
