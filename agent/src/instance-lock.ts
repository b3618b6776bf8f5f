import { createHash } from "node:crypto";
import { createServer } from "node:net";

/**
 * Held by at most one process for a directory, and given back by the kernel however that process ends: a socket
 * with a name but no file. Resolves to its release; rejects if another holds it.
 */
export async function lockDirectory(dataDir: string): Promise<() => Promise<void>> {
  const name = `\0forage-agent-${createHash("sha256").update(dataDir).digest("hex").slice(0, 32)}`;
  const server = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause) => {
      reject(new Error(`another agent uses ${dataDir}`, { cause }));
    });
    server.listen(name, resolve);
  });
  server.unref();
  return () => new Promise((resolve) => server.close(() => resolve()));
}
