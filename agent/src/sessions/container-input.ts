import { close, constants, fstat, open, type Stats } from "node:fs";
import { stat } from "node:fs/promises";
import { Socket } from "node:net";
import { promisify } from "node:util";

/** Standard input of a running container, which others may write to as well. */
export interface ContainerInput {
  /** Resolves when the container, or the kernel for it, has taken the data. */
  write(data: Uint8Array): Promise<void>;
  close(): void;
}

export type OpenInput = (containerId: string, signal: AbortSignal) => Promise<ContainerInput>;

/** Opens the pipe that a container with open standard input reads. `pidOf` returns the process with which the container began. */
export function inputOpener(
  pidOf: (containerId: string, signal: AbortSignal) => Promise<number | undefined>,
): OpenInput {
  return async (containerId, signal) => {
    const pid = await pidOf(containerId, signal);
    if (pid === undefined) throw new Error("the container is not running");
    const path = `/proc/${pid}/fd/0`;
    // The program may have opened something else in its place, which must not even be opened for writing.
    assertOwnPipe(await stat(path));
    const input = await pipeOf(await promisify(open)(path, constants.O_WRONLY | constants.O_NONBLOCK));
    // The container may have ended in between, and the number of its process may have become another container's.
    if ((await pidOf(containerId, signal)) === pid) return input;
    input.close();
    throw new Error("the container has ended");
  };
}

/** Takes a descriptor rather than a file handle, which would close it a second time. */
async function pipeOf(fd: number): Promise<ContainerInput> {
  try {
    assertOwnPipe(await promisify(fstat)(fd));
  } catch (error) {
    await promisify(close)(fd);
    throw error;
  }
  // A stream of the event loop: a full pipe blocks no thread.
  const socket = new Socket({ fd, readable: false, writable: true });
  socket.on("error", () => undefined);
  return {
    write: (data) =>
      new Promise((resolve, reject) => {
        socket.write(data, (error) => (error ? reject(error) : resolve()));
      }),
    close: () => void socket.destroy(),
  };
}

/** The pipe of the agent has no name in any file system, so that only the container's own processes hold it. */
function assertOwnPipe(found: Stats): void {
  if (found.isFIFO() && found.nlink === 0) return;
  throw new Error("the program has replaced its standard input, so that nothing can be written to it");
}
