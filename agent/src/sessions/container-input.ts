import { close, constants, fstat, open, readlinkSync, type Stats, statSync } from "node:fs";
import { readdir, readFile, stat } from "node:fs/promises";
import { Socket } from "node:net";
import { promisify } from "node:util";
import type { FoundContainer } from "../pods/find-container.ts";
import { STDIN_HOLDER } from "../runtime/nerdctl/helper-programs.ts";

/** Standard input of a running container, to which others may write as well. */
export interface ContainerInput {
  /** Resolves when the container, or the kernel's buffer, has accepted the data. */
  write(data: Uint8Array): Promise<void>;
  /** Changes the size of the terminal. Does nothing without a terminal. */
  resize(columns: number, rows: number): void;
  /**
   * Writes pending data, and closes the input for good. The container reads the end of input once no other session has
   * it open.
   */
  end(): void;
  /** Closes this access and leaves the input open for others. */
  close(): void;
}

export interface OpenInputOptions {
  readonly id: string;
  readonly kind: NonNullable<FoundContainer["input"]>;
  /** Whether to check before the first input that `end` will work. */
  readonly ends: boolean;
}

/** Opens a container's input. Rejects with the reason if nothing can be written to it. */
export type OpenInput = (options: OpenInputOptions, signal: AbortSignal) => Promise<ContainerInput>;

/** Returns a function that opens the standard input of containers. `pidOf` returns a container's first process. */
export function inputOpener(
  pidOf: (containerId: string, signal: AbortSignal) => Promise<number | undefined>,
  openTerminal: (pid: number) => Promise<ContainerInput>,
): OpenInput {
  return async ({ id, kind, ends }, signal) => {
    const pid = await pidOf(id, signal);
    if (pid === undefined) throw new Error("the container is not running");
    if (ends && kind === "terminal")
      throw new Error("a terminal has no end of input other than Ctrl-D: leave out --end-input");
    const input = kind === "terminal" ? await openTerminal(pid) : await openPipe(pid, ends);
    // The container may have ended in between, and its pid may have been reused by another container.
    if ((await pidOf(id, signal)) === pid) return input;
    input.close();
    throw new Error("the container has ended");
  };
}

async function openPipe(pid: number, ends: boolean): Promise<ContainerInput> {
  const path = `/proc/${pid}/fd/0`;
  // The program may have replaced its standard input by something that must not be opened for writing, not even
  // briefly.
  const pipe = await stat(path);
  assertOwnPipe(pipe);
  const holder = await findHolder(pipe);
  if (holder === undefined && !(await holdsItself(pid)))
    throw new Error("its standard input was ended by an earlier session, or no process reads it");
  if (holder === undefined && ends)
    throw new Error(
      "the container keeps its standard input open by itself: it was started by an older agent",
    );
  const fd = await promisify(open)(path, constants.O_WRONLY | constants.O_NONBLOCK);
  try {
    assertOwnPipe(await promisify(fstat)(fd));
  } catch (error) {
    await promisify(close)(fd);
    throw error;
  }
  return pipeInput(fd, () => holder !== undefined && release(holder, pipe));
}

/** Takes a descriptor instead of a file handle, because a file handle would close it a second time. */
function pipeInput(fd: number, releaseHolder: () => void): ContainerInput {
  // A socket uses the event loop, so that a full pipe blocks no thread.
  const socket = new Socket({ fd, readable: false, writable: true });
  socket.on("error", () => undefined);
  return {
    write: (data) =>
      new Promise((resolve, reject) => {
        socket.write(data, (error) => (error ? reject(error) : resolve()));
      }),
    resize: () => undefined,
    end: () => {
      releaseHolder();
      socket.destroySoon();
    },
    close: () => void socket.destroy(),
  };
}

/**
 * Throws if the pipe is not the agent's own, which has no name in any file system, so that only the container's
 * processes hold it.
 */
function assertOwnPipe(found: Stats): void {
  if (found.isFIFO() && found.nlink === 0) return;
  throw new Error("the program has replaced its standard input, so that nothing can be written to it");
}

/** Finds the process that keeps the pipe open. Undefined if it has ended. */
async function findHolder(pipe: Stats): Promise<number | undefined> {
  const processes = (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
  return processes.find((it) => isHolder(it, pipe));
}

/**
 * Reports whether the process holds the pipe. Synchronous, so that the pid can't be reused before the process is ended.
 */
function isHolder(pid: number, pipe: Stats): boolean {
  try {
    const { dev, ino } = statSync(`/proc/${pid}/fd/${STDIN_HOLDER.descriptor}`);
    return (
      dev === pipe.dev && ino === pipe.ino && STDIN_HOLDER.program.test(readlinkSync(`/proc/${pid}/exe`))
    );
  } catch {
    return false;
  }
}

function release(holder: number, pipe: Stats): void {
  if (isHolder(holder, pipe)) process.kill(holder, "SIGKILL");
}

/**
 * Reports whether the container's own end of the pipe is also open for writing. Agents of earlier versions opened it in this way.
 */
async function holdsItself(pid: number): Promise<boolean> {
  const info = await readFile(`/proc/${pid}/fdinfo/0`, "utf8");
  const flags = Number.parseInt(/^flags:\s*([0-7]+)$/m.exec(info)?.[1] ?? "0", 8);
  return (flags & O_ACCMODE) === constants.O_RDWR;
}

const O_ACCMODE = 3;
