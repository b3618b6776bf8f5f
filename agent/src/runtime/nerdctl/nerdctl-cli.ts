import { runProgram } from "../../programs/run-program.ts";
import { type StartedProgram, startProgram } from "../../programs/start-program.ts";
import { CallLimit } from "../call-limit.ts";
import { RuntimeError } from "../runtime.ts";
import { classifyError, type NerdctlCall } from "./classify-error.ts";

export interface NerdctlCliOptions {
  /** The nerdctl program. Containers remember it for their hooks: it must stay where it is while they live. */
  readonly path: string;
  /** containerd's socket. */
  readonly address: string;
  /** containerd's namespace. */
  readonly namespace: string;
  /** nerdctl's state for calls that concern no single container. */
  readonly dataRoot: string;
  /** The CNI directories. They are not used for pods' networks, but nerdctl checks both. */
  readonly cniBinDir: string;
  readonly cniConfigDir: string;
  /** Directories with `<registry>/hosts.toml`; undefined: nerdctl's own. */
  readonly registryHostsDirs?: readonly string[];
  /** Calls at a time; long ones (stop, exec, pull, events) don't count. More than the host has cores for gains nothing. */
  readonly concurrentCalls: number;
  /** A call that takes longer is killed. */
  readonly callTimeoutMs: number;
}

export interface CallOptions {
  readonly signal: AbortSignal;
  readonly kind?: NerdctlCall;
  readonly timeoutMs?: number;
  /** Instead of the common one. */
  readonly dataRoot?: string;
  /** Variables to add to nerdctl's environment. Only names that `isObeyed` accepts. */
  readonly env?: Readonly<Record<string, string>>;
  /** Long calls keep no short ones waiting. */
  readonly unlimited?: boolean;
}

export interface CallResult {
  readonly stdout: string;
  readonly stderr: string;
}

// A listing takes about 1.5 kB a container.
const OUTPUT_BYTES_MAX = 16 * 1024 * 1024;

// A run and its hooks live for 100 ms: a fifth of their CPU time is Go's garbage collection, for memory that is given back anyway.
const SHORT_CALL_ENV = { GOGC: "400" };

const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** Runs nerdctl: arguments as given, bounded output, a time limit, errors as RuntimeError. */
export class NerdctlCli {
  readonly #options: NerdctlCliOptions;
  readonly #limit: CallLimit;
  /** nerdctl's own environment: only this, never the agent's, for nerdctl writes it into each container's hooks. */
  readonly env: Readonly<Record<string, string>>;

  constructor(options: NerdctlCliOptions) {
    this.#options = options;
    this.#limit = new CallLimit(options.concurrentCalls);
    // A home of its own, so that no one's personal registry logins are used.
    this.env = { PATH, HOME: options.dataRoot };
  }

  /** Runs to its end. The time limit doesn't count the wait for a turn. */
  call(args: readonly string[], options: CallOptions): Promise<CallResult> {
    if (options.unlimited) return this.#call(args, options);
    return this.#limit.run(options.signal, () => this.#call(args, options));
  }

  /** Starts nerdctl for calls that stream. The caller reads all output and ends the process. */
  spawn(
    args: readonly string[],
    options: {
      readonly stdin?: boolean;
      readonly diesWithUs?: boolean;
      readonly env?: Readonly<Record<string, string>>;
    } = {},
  ): StartedProgram {
    const argv = [this.#options.path, ...this.argv(args)];
    // A helper that only waits would outlive an agent that was killed; the kernel ends it with its parent.
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
    // A run that the agent's end cut off would leave half a container: the process outlives the agent.
    const result = await runProgram(this.#options.path, this.argv(args, options.dataRoot), {
      env: { ...this.env, ...SHORT_CALL_ENV, ...options.env },
      outputBytesMax: OUTPUT_BYTES_MAX,
      ...{ timeoutMs, signal },
    });
    const what = `nerdctl ${args[0]}`;
    switch (result.killedFor) {
      case "timeout":
        throw new RuntimeError("TIMEOUT", `${what}: no end after ${timeoutMs} ms`, { retryable: true });
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
