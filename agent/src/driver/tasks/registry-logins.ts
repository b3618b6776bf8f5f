import { readFile } from "node:fs/promises";
import type { RegistryLogin } from "../../runtime/runtime.ts";
import { DriverError } from "../driver-error.ts";

/** Reads the logins of a Docker `config.json`. Errors never contain parts of the file. */
export async function readLogins(path: string | undefined): Promise<readonly RegistryLogin[]> {
  if (path === undefined) return [];
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (cause) {
    const reason = cause instanceof Error && "code" in cause ? String(cause.code) : "it cannot be read";
    throw new DriverError("FAILED_PRECONDITION", `registry logins ${path}: ${reason}`);
  }
  try {
    return parseLogins(text);
  } catch {
    throw new DriverError(
      "FAILED_PRECONDITION",
      `registry logins ${path}: not a Docker config.json with "auths"`,
    );
  }
}

export function parseLogins(text: string): readonly RegistryLogin[] {
  const { auths } = JSON.parse(text) as { auths?: Record<string, { auth?: string }> };
  return Object.entries(auths ?? {}).flatMap(([server, { auth = "" }]) => {
    const [username, ...password] = Buffer.from(auth, "base64").toString("utf8").split(":");
    return username ? [{ server: hostOf(server), username, password: password.join(":") }] : [];
  });
}

// Docker writes Docker Hub as https://index.docker.io/v1/.
function hostOf(server: string): string {
  const host = server.replace(/^https?:\/\//, "").split("/", 1)[0] ?? server;
  return host === "index.docker.io" ? "docker.io" : host;
}
