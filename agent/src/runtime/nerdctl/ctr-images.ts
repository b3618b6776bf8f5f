import { once } from "node:events";
import type { Writable } from "node:stream";
import type { ImageContent } from "../../images/image-content.ts";
import type { ImageImport } from "../../images/image-import.ts";
import { runProgram } from "../../programs/run-program.ts";
import { startProgram } from "../../programs/start-program.ts";
import { RuntimeError } from "../runtime.ts";

export interface CtrImagesOptions {
  /** containerd's socket. */
  readonly address: string;
  /** containerd's namespace. */
  readonly namespace: string;
  /** containerd's own command. Default: the one in the usual directories. */
  readonly program?: string;
}

const ENV = { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" };
const CALL_TIMEOUT_MS = 60_000;
// A digest is 72 bytes: this is enough for 400,000 blobs.
const OUTPUT_BYTES_MAX = 32 * 1024 * 1024;
const COMPLAINT_MAX_LENGTH = 4_096;

/**
 * Imports images by containerd's own `ctr`, which comes with it. `nerdctl load` needs a service that containerd 1.6 doesn't have, and
 * nerdctl can't list what is stored.
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
    const child = startProgram(this.#program, this.#argv(["images", "import", "-"]), {
      env: ENV,
      stdin: true,
    });
    const kill = (): void => child.kill("SIGKILL");
    signal.addEventListener("abort", kill, { once: true });
    let complaint = "";
    child.stdout.resume();
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      complaint = `${complaint}${text}`.slice(-COMPLAINT_MAX_LENGTH);
    });
    const over = new AbortController();
    void child.ended.then(() => over.abort());
    try {
      if (signal.aborted) kill();
      await writeAll(archive, child.stdin, over.signal);
    } catch (error) {
      // Without the archive's end it makes no image. It must not see an end of its input.
      kill();
      await child.ended;
      throw error;
    } finally {
      signal.removeEventListener("abort", kill);
    }
    const { exitCode, error } = await child.ended;
    if (exitCode === 0) return;
    if (signal.aborted) throw new RuntimeError("ABORTED", "ctr images: cancelled", { retryable: true });
    throw this.#failure(exitCode, complaint, error);
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
    const child = startProgram(this.#program, this.#argv(["content", "get", digest]), { env: ENV });
    const kill = (): void => child.kill("SIGKILL");
    signal.addEventListener("abort", kill, { once: true });
    let complaint = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      complaint = `${complaint}${text}`.slice(-COMPLAINT_MAX_LENGTH);
    });
    try {
      if (signal.aborted) kill();
      yield* child.stdout as AsyncIterable<Buffer>;
    } finally {
      signal.removeEventListener("abort", kill);
      kill();
    }
    const { exitCode, error } = await child.ended;
    if (exitCode !== 0) throw this.#failure(exitCode, complaint, error);
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

/** Writes the archive as fast as it is read, and ends the input. Stops without an error when the reader has ended. */
async function writeAll(
  archive: AsyncIterable<Buffer>,
  input: Writable | undefined,
  over: AbortSignal,
): Promise<void> {
  for await (const chunk of archive) {
    if (input === undefined || over.aborted) return;
    if (!input.write(chunk)) await once(input, "drain", { signal: over }).catch(() => undefined);
  }
  input?.end();
}
