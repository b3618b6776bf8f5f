import { spawn } from "node:child_process";
import { readdir, readFile, stat } from "node:fs/promises";
import { basename } from "node:path";

export interface LogRescueOptions {
  /** The proc file system's directory. Usually `/proc`. */
  readonly procDir: string;
  readonly onRescue: (path: string) => void;
}

/** A container and the log for its output. */
export interface LoggedContainer {
  readonly containerId: string;
  readonly logFile: string;
}

interface Process {
  readonly pid: number;
  readonly parentPid: number;
  readonly words: readonly string[];
}

interface Identity {
  readonly id: string;
  readonly device: number;
  readonly regular: boolean;
}

interface OpenFile extends Identity {
  readonly fd: string;
}

const COPIER = "/bin/cat";

/**
 * Rescues containers whose output is not read. containerd's shim stops reading a container's output for good when one
 * write to its log fails for lack of space. The container would block as soon as the pipe is full. The shim keeps the
 * pipe open, so a separate `cat` process can continue where the shim stopped. That process is independent of the agent.
 */
export class LogRescue {
  readonly #options: LogRescueOptions;

  constructor(options: LogRescueOptions) {
    this.#options = options;
  }

  /** Checks these containers, and starts a writer for each log without one. */
  async run(containers: readonly LoggedContainer[]): Promise<void> {
    const processes = await this.#processes();
    const failures: unknown[] = [];
    for (const container of containers) {
      const shim = processes.find(({ words }) => isShimOf(words, container.containerId));
      const init = shim && processes.find(({ parentPid }) => parentPid === shim.pid);
      if (shim === undefined || init === undefined) continue;
      const copiers = processes.filter(({ words }) => isCopier(words));
      await this.#rescue(container.logFile, shim.pid, init.pid, copiers).catch((error) =>
        failures.push(error),
      );
    }
    // Reported after all were checked, so that a shim that ends meanwhile doesn't prevent other rescues.
    if (failures.length > 0) throw new AggregateError(failures, `${failures.length} logs were not rescued`);
  }

  async #rescue(logFile: string, shim: number, init: number, copiers: readonly Process[]): Promise<void> {
    const log = await identityOf(logFile);
    if (log === undefined) return;
    for (const { pid } of copiers) if ((await this.#files(pid)).some(({ id }) => id === log.id)) return;
    const inShim = await this.#files(shim);
    // The shim still writes some log. Two readers of one pipe would each get a part of the output.
    if (inShim.some(({ device, regular }) => regular && device === log.device)) return;
    const output = (await this.#files(init)).filter(({ fd }) => fd === "1" || fd === "2");
    const held = inShim.filter(({ id }) => output.some((it) => it.id === id));
    if (held.length === 0) return;
    const cgroup = cgroupFile(await readFile(`${this.#options.procDir}/${shim}/cgroup`, "utf8"));
    for (const { fd } of held) copyOn(`${this.#options.procDir}/${shim}/fd/${fd}`, logFile, cgroup);
    this.#options.onRescue(logFile);
  }

  async #processes(): Promise<Process[]> {
    const names = (await readdir(this.#options.procDir)).filter((name) => /^\d+$/.test(name));
    const found = await Promise.all(names.map((name) => this.#process(Number(name))));
    return found.filter((it) => it !== undefined);
  }

  /** Returns the process, or undefined if it has just ended. */
  async #process(pid: number): Promise<Process | undefined> {
    try {
      const dir = `${this.#options.procDir}/${pid}`;
      const [line, stat] = await Promise.all([readFile(`${dir}/cmdline`), readFile(`${dir}/stat`, "latin1")]);
      // The name in brackets may contain any characters.
      const parentPid = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
      return { pid, parentPid, words: line.toString().split("\0") };
    } catch {
      return undefined;
    }
  }

  /** Returns the open files and pipes; others are left out. */
  async #files(pid: number): Promise<OpenFile[]> {
    const dir = `${this.#options.procDir}/${pid}/fd`;
    const fds = await readdir(dir).catch(() => []);
    const found = await Promise.all(fds.map((fd) => identityOf(`${dir}/${fd}`)));
    return fds.flatMap((fd, index) => (found[index] === undefined ? [] : { fd, ...found[index] }));
  }
}

/** Returns the identity of a regular file or pipe, independent of its name. Undefined for any other file. */
async function identityOf(path: string): Promise<Identity | undefined> {
  const found = await stat(path).catch(() => undefined);
  if (!found?.isFile() && !found?.isFIFO()) return undefined;
  return { id: `${found.dev}:${found.ino}`, device: found.dev, regular: found.isFile() };
}

function isShimOf(words: readonly string[], containerId: string): boolean {
  if (!basename(words[0] ?? "").startsWith("containerd-shim")) return false;
  return words[words.indexOf("-id") + 1] === containerId;
}

function isCopier(words: readonly string[]): boolean {
  return words[0] === COPIER;
}

/**
 * Returns the file that adds a process to the cgroup described by this `/proc/PID/cgroup`: the one of version 2, or of
 * systemd's own hierarchy.
 */
function cgroupFile(text: string): string {
  const [, unified] = /^0::(\/.*)$/m.exec(text) ?? [];
  const [, named] = /^\d+:name=systemd:(\/.*)$/m.exec(text) ?? [];
  return named === undefined
    ? `/sys/fs/cgroup${unified ?? ""}/cgroup.procs`
    : `/sys/fs/cgroup/systemd${named}/cgroup.procs`;
}

// The shell opens the files. It first moves to the shim's cgroup, because processes in the agent's unit end with the
// agent.
function copyOn(pipe: string, logFile: string, cgroup: string): void {
  const script = `{ echo $$ > "$3"; } 2> /dev/null; exec ${COPIER} < "$1" >> "$2"`;
  const child = spawn("/bin/sh", ["-c", script, "sh", pipe, logFile, cgroup], {
    detached: true,
    stdio: "ignore",
    env: { PATH: "/usr/bin:/bin" },
  });
  child.on("error", () => undefined);
  child.unref();
}
