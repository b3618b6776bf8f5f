import { runProgram } from "../../programs/run-program.ts";
import { type StartedProgram, startProgram } from "../../programs/start-program.ts";
import { CallLimit } from "../call-limit.ts";
import { RuntimeError } from "../runtime.ts";
import { classifyError, type NerdctlCall } from "./classify-error.ts";

export interface NerdctlCliOptions {
  /** The path of the nerdctl program. Hooks of containers call it, so it must not move while they exist. */
  readonly path: string;
  /** The path of containerd's socket. */
  readonly address: string;
  /** The containerd namespace. */
  readonly namespace: string;
  /** The data root for calls that concern no single container. */
  readonly dataRoot: string;
  /** The CNI directories. They are not used for pods' networks, but nerdctl checks that both exist. */
  readonly cniBinDir: string;
  readonly cniConfigDir: string;
  /** Directories with `<registry>/hosts.toml`. Undefined: nerdctl's own. */
  readonly registryHostsDirs?: readonly string[];
  /**
   * The number of concurrent calls, except long ones (stop, exec, pull, events). More than the number of cores gains
   * nothing.
   */
  readonly concurrentCalls: number;
  /** The time after which a call is killed. */
  readonly callTimeoutMs: number;
}

export interface CallOptions {
  readonly signal: AbortSignal;
  readonly kind?: NerdctlCall;
  readonly timeoutMs?: number;
  /** The data root for this call. Default: the common one. */
  readonly dataRoot?: string;
  /** Variables to add to nerdctl's environment. Only names that `affectsNerdctl` accepts. */
  readonly env?: Readonly<Record<string, string>>;
  /** Whether the call bypasses the limit on concurrent calls, as long calls do. */
  readonly unlimited?: boolean;
}

export interface CallResult {
  readonly stdout: string;
  readonly stderr: string;
}

// A listing is about 1.5 kB for each container.
const OUTPUT_BYTES_MAX = 16 * 1024 * 1024;

// A run and its hooks live for 100 ms. A fifth of their CPU time would be Go's garbage collection, for memory that is
// freed at exit anyway.
const SHORT_CALL_ENV = { GOGC: "400" };

const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** Runs nerdctl with the given arguments, bounded output and a time limit. Rejects with a RuntimeError. */
export class NerdctlCli {
  readonly #options: NerdctlCliOptions;
  readonly #limit: CallLimit;
  /**
   * nerdctl's own environment. It excludes the agent's variables, because nerdctl copies its environment into each
   * container's hooks.
   */
  readonly env: Readonly<Record<string, string>>;

  constructor(options: NerdctlCliOptions) {
    this.#options = options;
    this.#limit = new CallLimit(options.concurrentCalls);
    // The home directory is private, so that no user's registry logins apply.
    this.env = { PATH, HOME: options.dataRoot };
  }

  /** Runs a call to its end. Waiting for a slot doesn't count towards the time limit. */
  call(args: readonly string[], options: CallOptions): Promise<CallResult> {
    if (options.unlimited) return this.#call(args, options);
    return this.#limit.run(options.signal, () => this.#call(args, options));
  }

  /** Starts nerdctl for a streaming call. The caller reads all output and ends the process. */
  spawn(
    args: readonly string[],
    options: {
      readonly stdin?: boolean;
      readonly diesWithUs?: boolean;
      readonly env?: Readonly<Record<string, string>>;
    } = {},
  ): StartedProgram {
    const argv = [this.#options.path, ...this.argv(args)];
    // A process that waits would outlive a killed agent; with setpriv the kernel ends it with its parent.
    const [file = "", ...rest] = options.diesWithUs ? ["setpriv", "--pdeathsig=KILL", "--", ...argv] : argv;
    return startProgram(file, rest, {
      env: { ...this.env, ...options.env },
      stdin: options.stdin ?? false,
    });
  }

  get path(): string {
    return this.#options.path;
  }

  argv(args: readonly string[], dataRoot = this.#options.dataRoot): string[] {
    const { address, namespace, cniBinDir, cniConfigDir, registryHostsDirs } = this.#options;
    return [
      `--address=${address}`,
      `--namespace=${namespace}`,
      `--data-root=${dataRoot}`,
      `--cni-path=${cniBinDir}`,
      `--cni-netconfpath=${cniConfigDir}`,
      ...(registryHostsDirs ?? []).map((dir) => `--hosts-dir=${dir}`),
      ...args,
    ];
  }

  async #call(args: readonly string[], options: CallOptions): Promise<CallResult> {
    const { signal, kind = "other", timeoutMs = this.#options.callTimeoutMs } = options;
    if (signal.aborted)
      throw new RuntimeError("ABORTED", `nerdctl ${args[0]}: cancelled`, { retryable: true });
    // A run that ends with the agent would leave a half-created container, so the process outlives the agent.
    const result = await runProgram(this.#options.path, this.argv(args, options.dataRoot), {
      env: { ...this.env, ...SHORT_CALL_ENV, ...options.env },
      outputBytesMax: OUTPUT_BYTES_MAX,
      ...{ timeoutMs, signal },
    });
    const what = `nerdctl ${args[0]}`;
    switch (result.killedFor) {
      case "timeout":
        throw new RuntimeError("TIMEOUT", `${what}: did not end within ${timeoutMs} ms`, { retryable: true });
      case "cancelled":
        throw new RuntimeError("ABORTED", `${what}: cancelled`, { retryable: true });
      case "too-much-output":
        throw new RuntimeError("UNKNOWN", `${what}: too much output`, { retryable: true });
      case undefined:
        break;
      default:
        result.killedFor satisfies never;
    }
    if (result.exitCode === 0) return { stdout: result.stdout, stderr: result.stderr };
    if (result.exitCode !== undefined) throw classifyError(kind, result.stderr);
    const why = result.error?.code ?? result.signal ?? "it could not be started";
    throw new RuntimeError("UNAVAILABLE", `${what}: ${why}`, { retryable: true });
  }
}
