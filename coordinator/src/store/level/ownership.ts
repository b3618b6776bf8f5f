import { statSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { StoreError } from "../store-error.ts";

/**
 * Holds the directory for this one opening of the store: a second one, in this process or another, gets LOCKED.
 *
 * LevelDB's LOCK is not enough. It is a POSIX record lock, and a process drops those when it closes any descriptor of
 * the file: a second opening in the same process fails, but takes the lock of the first one with it. So this guard
 * comes first and keeps a second opening away from LOCK. It is a socket in Linux's abstract namespace, named for the
 * directory's inode: the kernel gives a name out once and takes it back when the process dies. Across network
 * namespaces, where names are apart, LOCK does its part.
 */
export class Ownership {
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async take(dir: string): Promise<Ownership> {
    const { dev, ino } = statSync(dir, { bigint: true });
    const server = createServer((connection) => connection.destroy());
    await new Promise<void>((resolve, reject) => {
      server.once("error", (error) => reject(toOwnershipError(error, dir)));
      server.listen({ path: `\0forage-store-${dev}-${ino}` }, resolve);
    });
    server.unref();
    return new Ownership(server);
  }

  async release(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}

function toOwnershipError(error: Error, dir: string): StoreError {
  if ("code" in error && error.code === "EADDRINUSE") {
    return new StoreError("LOCKED", `the store in ${dir} is already open, here or in another process`);
  }
  return new StoreError("IO_ERROR", `the store in ${dir} can't be guarded`, { cause: error });
}
