import { type ChildProcess, spawn } from "node:child_process";
import { constants } from "node:fs";
import { type FileHandle, open, readFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import type { CopyOptions, SftpOptions } from "@forage/proto/forage/agent/v1/agent";
import { ExecOutput } from "../runtime/nerdctl/exec-output.ts";
import type { RuntimeContainer } from "../runtime/runtime.ts";
import { FAILURE, REMARK, ROOT_DESCRIPTOR } from "./container-program.ts";
import { COPY_FILES } from "./copy-files.ts";
import type { Copy } from "./serve-copy.ts";
import { SERVE_SFTP } from "./sftp/serve-sftp.ts";

export interface ContainerFilesOptions {
  readonly inspect: (id: string, signal: AbortSignal) => Promise<RuntimeContainer | undefined>;
  /** The command that starts the agent's own program. */
  readonly ownCommand: readonly string[];
}

// Each copy is a process of about 90 MB.
const COPIES_MAX = 8;
// Sessions stay open longer than copies, so they have a separate limit.
const SFTP_SESSIONS_MAX = 16;
// Prevents one container from using all sessions of a node.
const SFTP_SESSIONS_MAX_EACH = 4;

interface Task {
  readonly args: readonly string[];
  /** The reason that is reported if the process ends without one. */
  readonly cutOff: string;
  readonly release: () => void;
}

/**
 * Copies files out of and into running containers, and serves them by SFTP, independently of the programs in the
 * containers.
 */
export class ContainerFiles {
  readonly #options: ContainerFilesOptions;
  #copies = 0;
  /** The containers of the open SFTP sessions. */
  readonly #sftpOf: string[] = [];

  constructor(options: ContainerFilesOptions) {
    this.#options = options;
  }

  async copy(id: string, options: CopyOptions, signal: AbortSignal): Promise<Copy> {
    if (this.#copies >= COPIES_MAX) throw new Error(`${COPIES_MAX} copies are under way on this node`);
    this.#copies += 1;
    const release = () => {
      this.#copies -= 1;
    };
    const args = [COPY_FILES, options.into ? "into" : "out", options.path];
    return this.#run(id, { args, cutOff: "the copy was cut off", release }, signal);
  }

  async sftp(id: string, { directory }: SftpOptions, signal: AbortSignal): Promise<Copy> {
    if (this.#sftpOf.length >= SFTP_SESSIONS_MAX)
      throw new Error(`${SFTP_SESSIONS_MAX} sftp sessions are open on this node`);
    if (this.#sftpOf.filter((other) => other === id).length >= SFTP_SESSIONS_MAX_EACH)
      throw new Error(`${SFTP_SESSIONS_MAX_EACH} sftp sessions of this container are open: close one first`);
    this.#sftpOf.push(id);
    const release = () => void this.#sftpOf.splice(this.#sftpOf.indexOf(id), 1);
    const cutOff = "the sftp session was cut off";
    return this.#run(id, { args: [SERVE_SFTP, directory || "/"], cutOff, release }, signal);
  }

  async #run(id: string, { args, cutOff, release }: Task, signal: AbortSignal): Promise<Copy> {
    try {
      const { root, user } = await this.#enter(id, signal);
      try {
        const child = this.#start([...args, ...user], root);
        child.once("close", release);
        return follow(child, cutOff, signal);
      } finally {
        await root.close();
      }
    } catch (error) {
      release();
      throw error;
    }
  }

  /** Opens the container's root directory as its own processes see it, with all mounts. */
  async #enter(id: string, signal: AbortSignal): Promise<{ root: FileHandle; user: readonly string[] }> {
    const pid = await this.#pidOf(id, signal);
    const root = await open(`/proc/${pid}/root`, constants.O_RDONLY | constants.O_DIRECTORY);
    try {
      const user = userOf(await readFile(`/proc/${pid}/status`, "utf8"));
      // The process id may have been reused after its process ended. The opened directory belongs to the container only
      // if that still runs.
      if ((await this.#pidOf(id, signal)) !== pid) throw new Error("the container was restarted meanwhile");
      return { root, user };
    } catch (error) {
      await root.close();
      throw error;
    }
  }

  async #pidOf(id: string, signal: AbortSignal): Promise<number> {
    const { state, pid = 0 } = (await this.#options.inspect(id, signal)) ?? {};
    if (state !== "running" || pid <= 0) throw new Error("the container is not running");
    return pid;
  }

  #start(task: readonly string[], root: FileHandle): ChildProcess {
    const [file = "", ...args] = this.#options.ownCommand;
    const stdio = ["pipe", "pipe", "pipe"] as (number | "pipe")[];
    stdio[ROOT_DESCRIPTOR] = root.fd;
    return spawn(file, [...args, ...task], {
      cwd: "/",
      env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin" },
      stdio,
    });
  }
}

/** Returns a process's real user, group and supplementary groups, from /proc/PID/status. */
export function userOf(status: string): readonly [uid: string, gid: string, groups: string] {
  const field = (name: string) =>
    new RegExp(`^${name}:[ \\t]*(.*)$`, "m").exec(status)?.[1]?.trim().split(/\s+/) ?? [];
  const [uid, gid] = [field("Uid")[0], field("Gid")[0]];
  if (!/^\d+$/.test(uid ?? "") || !/^\d+$/.test(gid ?? ""))
    throw new Error("the container's user is unknown");
  return [uid ?? "", gid ?? "", field("Groups").join(",")];
}

function follow(child: ChildProcess, cutOff: string, signal: AbortSignal): Copy {
  const [stdin, stdout, stderr] = [
    child.stdin as Writable,
    child.stdout as Readable,
    child.stderr as Readable,
  ];
  const output = new ExecOutput();
  let reason = cutOff;
  stdout.on("data", (data: Buffer) => output.push("stdout", data));
  createInterface({ input: stderr }).on("line", (line) => {
    if (line.startsWith(REMARK)) output.push("stderr", Buffer.from(`${line.slice(REMARK.length)}\n`));
    if (line.startsWith(FAILURE)) reason = line.slice(FAILURE.length);
  });
  output.attach([stdout, stderr]);
  // A process that accesses a hanging file system can't be killed, so it is abandoned.
  const kill = () => {
    child.kill("SIGKILL");
    output.end();
  };
  signal.addEventListener("abort", kill, { once: true });
  if (signal.aborted) kill();
  let giveUp = (): void => {};
  const done = new Promise<void>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (exitCode) => (exitCode === 0 ? resolve() : reject(new Error(reason))));
    giveUp = () => reject(new Error("given up"));
    signal.addEventListener("abort", giveUp, { once: true });
  }).finally(() => {
    signal.removeEventListener("abort", kill);
    signal.removeEventListener("abort", giveUp);
    output.end();
  });
  done.catch(() => undefined);
  stdin.on("error", () => undefined);
  return {
    output,
    done,
    endInput: () => void stdin.end(),
    write: (data) =>
      new Promise((resolve, reject) => stdin.write(data, (error) => (error ? reject(error) : resolve()))),
  };
}
