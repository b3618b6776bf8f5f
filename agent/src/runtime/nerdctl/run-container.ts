import { existsSync } from "node:fs";
import { open } from "node:fs/promises";
import { messageOf } from "@forage/common/message-of";
import { checkNonRoot, needsImageUser } from "../check-security.ts";
import { type ContainerSpec, RuntimeError } from "../runtime.ts";
import { type DataRoot, type DataRoots, isBusy, isContainerId, readId } from "./data-roots.ts";
import { splitEnv } from "./env-passing.ts";
import {
  linkPipes,
  linkRuntime,
  needsOwnRuntime,
  needsStreamLogger,
  prepareHelpers,
} from "./helper-programs.ts";
import { readImageUser } from "./image-config.ts";
import type { NerdctlCli } from "./nerdctl-cli.ts";
import { openPrivateFile } from "./private-file.ts";
import { removeContainers } from "./remove-containers.ts";
import { type RunPlace, runArguments } from "./run-arguments.ts";

export interface RunContainerOptions {
  readonly cli: NerdctlCli;
  readonly dataRoots: DataRoots;
  /** A private directory that holds the values of the environment while a call is running. */
  readonly privateDir: string;
  /** Labels for every container. */
  readonly labels: Readonly<Record<string, string>>;
  /** The directory of the helper programs. It must allow execution. */
  readonly programDir: string;
}

/** The features of this nerdctl, read from its help text. */
interface Knowledge {
  readonly knowsHealthcheck: boolean;
  readonly selinux: boolean;
  readonly appArmor: boolean;
}

// This file exists on hosts with SELinux, enforcing or not.
const SELINUX_DIR = "/sys/fs/selinux/policy";
const APPARMOR_FILE = "/sys/kernel/security/apparmor/profiles";

/** Runs `nerdctl run`, with the preparations before it and the clean-up after it. */
export class RunContainer {
  readonly #options: RunContainerOptions;
  readonly #names = new Set<string>();
  #knowledge: Promise<Knowledge> | undefined;

  constructor(options: RunContainerOptions) {
    this.#options = options;
  }

  /** Names of containers that are being created. */
  get underWay(): ReadonlySet<string> {
    return this.#names;
  }

  async run(spec: ContainerSpec, signal: AbortSignal): Promise<{ readonly id: string }> {
    const env = splitEnv(spec.env);
    // Rejects invalid specs before anything is created.
    runArguments(spec, { ...PLACE, selinux: true, appArmor: true });
    if (this.#names.has(spec.name)) throw nameTaken(spec.name);
    this.#names.add(spec.name);
    try {
      const place = await this.#place(spec, signal);
      const home = await this.#claim(spec.name, signal);
      const inheritedNames = Object.keys(env.inherited);
      return await this.#runIn(home, spec, { ...place, inheritedNames }, env, signal);
    } finally {
      this.#names.delete(spec.name);
    }
  }

  async #place(spec: ContainerSpec, signal: AbortSignal): Promise<RunPlace> {
    const { cli, labels, programDir } = this.#options;
    const knowledge = await this.#learn(signal);
    const imageUser = needsImageUser(spec) ? await readImageUser(cli, spec.image, signal) : "";
    if (spec.security?.runAsNonRoot && spec.user?.uid === undefined) checkNonRoot(spec.image, imageUser);
    const { terminalLogger, streamLogger, ownRuntime } = await prepareHelpers(programDir, spec);
    return {
      ...{ ...PLACE, ...knowledge, terminalLogger, labels, imageUser },
      ownRuntime: needsOwnRuntime(spec) ? ownRuntime : undefined,
      streamLogger: needsStreamLogger(spec) ? { program: streamLogger, dir: "" } : undefined,
    };
  }

  async #runIn(
    home: DataRoot,
    spec: ContainerSpec,
    place: RunPlace,
    env: ReturnType<typeof splitEnv>,
    signal: AbortSignal,
  ): Promise<{ readonly id: string }> {
    const { cli, privateDir } = this.#options;
    const envFile = env.file === "" ? undefined : await openPrivateFile(privateDir, env.file);
    try {
      await makeLogFile(spec.logFile);
      const ownRuntime = await ownRuntimeIn(home, spec, place);
      const streamLogger = await streamLoggerIn(home, spec, place);
      const own = { ownRuntime, streamLogger };
      const args = runArguments(spec, { ...place, ...own, idFile: home.idFile, envFile: envFile?.path });
      const { stdout } = await cli.call(args, {
        signal,
        kind: "run",
        dataRoot: home.dataRoot,
        env: env.inherited,
      });
      const id = stdout.trim();
      if (isContainerId(id)) return { id };
      throw new RuntimeError("UNKNOWN", "nerdctl run gave no id", { retryable: true });
    } catch (error) {
      if (endedByItself(error)) await this.#undo(home);
      throw error;
    } finally {
      await envFile?.close();
    }
  }

  /** Removes a container that could not be started, which nerdctl leaves behind. */
  async #undo(home: DataRoot): Promise<void> {
    const id = await readId(home);
    try {
      // The caller already has the start's error. A failed removal is detected by the next listing.
      if (id !== undefined) await removeContainers(this.#options.cli, [id], new AbortController().signal);
      await this.#options.dataRoots.release(home);
    } catch {}
  }

  /**
   * Claims the name. If an earlier call was interrupted before it created a container, the name is free again, unless
   * that call is still running.
   */
  async #claim(name: string, signal: AbortSignal): Promise<DataRoot> {
    const { dataRoots, cli } = this.#options;
    const claimed = await dataRoots.claim(name);
    if (claimed !== undefined) return claimed;
    const home = dataRoots.home(name);
    const id = await readId(home);
    if ((id !== undefined && (await exists(cli, id, signal))) || (await isBusy(home))) throw nameTaken(name);
    await dataRoots.release(home);
    const again = await dataRoots.claim(name);
    if (again === undefined) throw nameTaken(name);
    return again;
  }

  #learn(signal: AbortSignal): Promise<Knowledge> {
    this.#knowledge ??= learn(this.#options.cli, signal).catch((error: unknown) => {
      this.#knowledge = undefined;
      throw error;
    });
    return this.#knowledge;
  }
}

const PLACE: RunPlace = {
  idFile: "",
  envFile: undefined,
  inheritedNames: [],
  labels: {},
  knowsHealthcheck: false,
  selinux: false,
  appArmor: false,
  imageUser: "",
  terminalLogger: "/",
  streamLogger: undefined,
  ownRuntime: undefined,
};

async function ownRuntimeIn(
  home: DataRoot,
  { streamPipes }: ContainerSpec,
  { ownRuntime }: RunPlace,
): Promise<string | undefined> {
  if (ownRuntime === undefined || streamPipes === undefined) return ownRuntime;
  return linkRuntime(home.dir, ownRuntime, streamPipes);
}

async function streamLoggerIn(
  home: DataRoot,
  { streamPipes }: ContainerSpec,
  { streamLogger }: RunPlace,
): Promise<RunPlace["streamLogger"]> {
  if (streamLogger === undefined || streamPipes === undefined) return undefined;
  await linkPipes(home.dir, streamPipes);
  return { ...streamLogger, dir: home.dir };
}

async function learn(cli: NerdctlCli, signal: AbortSignal): Promise<Knowledge> {
  const { stdout: ofRun } = await cli.call(["run", "--help"], { signal });
  const knowsHealthcheck = ofRun.includes("--no-healthcheck");
  const appArmor = existsSync(APPARMOR_FILE);
  if (!existsSync(SELINUX_DIR)) return { knowsHealthcheck, appArmor, selinux: false };
  const { stdout: common } = await cli.call(["--help"], { signal });
  return { knowsHealthcheck, appArmor, selinux: common.includes("--selinux-enabled") };
}

// A killed call may have had any effect, so the caller checks it.
function endedByItself(error: unknown): boolean {
  return !(error instanceof RuntimeError) || !["TIMEOUT", "ABORTED", "UNAVAILABLE"].includes(error.code);
}

async function exists(cli: NerdctlCli, id: string, signal: AbortSignal): Promise<boolean> {
  try {
    await cli.call(["container", "inspect", "--format", "{{.ID}}", "--", id], { signal });
    return true;
  } catch (error) {
    if (error instanceof RuntimeError && error.code === "NOT_FOUND") return false;
    throw error;
  }
}

// containerd's shim would create the file readable by all users.
async function makeLogFile(path: string): Promise<void> {
  try {
    await (await open(path, "a", 0o600)).close();
  } catch (cause) {
    const why = messageOf(cause);
    throw new RuntimeError("START_FAILED", `log file can't be opened: ${why}`, { retryable: true, cause });
  }
}

function nameTaken(name: string): RuntimeError {
  return new RuntimeError("ALREADY_EXISTS", `there is a container ${name} already`, { retryable: false });
}
