import { mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { registryName, registryOf } from "../image-reference.ts";
import type { RegistryLogin } from "../runtime.ts";
import { openPrivateFile } from "./private-file.ts";

/** Returns the logins for the image's registry, in the given order. */
export function loginsFor(reference: string, logins: readonly RegistryLogin[]): readonly RegistryLogin[] {
  const registry = registryOf(reference);
  return logins.filter((it) => registryName(it.server) === registry);
}

/**
 * Calls `work` with a directory for DOCKER_CONFIG that holds the login. Name and password are never in a file with a
 * name: the directory links to an open descriptor of this process, and the link is dead once the process has ended.
 */
export async function withLogin<Result>(
  privateDir: string,
  login: RegistryLogin,
  work: (dockerConfigDir: string) => Promise<Result>,
): Promise<Result> {
  await mkdir(privateDir, { recursive: true, mode: 0o700 });
  const dir = await mkdtemp(join(privateDir, ".login-"));
  try {
    const file = await openPrivateFile(privateDir, dockerConfig(login));
    try {
      await symlink(file.path, join(dir, "config.json"));
      return await work(dir);
    } finally {
      await file.close();
    }
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

// Docker's clients look up Docker Hub under this name only.
const HUB_KEY = "https://index.docker.io/v1/";

function dockerConfig({ server, username, password }: RegistryLogin): string {
  const registry = registryName(server);
  // Username and password are separate, because `auth` can't hold a name with a colon.
  return JSON.stringify({
    auths: { [registry === "docker.io" ? HUB_KEY : registry]: { username, password } },
  });
}
