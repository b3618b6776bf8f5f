import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { makeRepository } from "../../hack/lib/git-server.ts";
import { run } from "../../hack/lib/run.ts";
import type { TestHost } from "../../hack/lib/test-host.ts";
import { waitFor } from "../../hack/lib/wait-for.ts";

export interface GitHost {
  /** The URL of a repository. */
  readonly url: string;
  close(): Promise<void>;
}

/** An address for documentation, which no real network has. */
const HOST_ADDRESS = "198.51.100.1";
const GIT_ADDRESS = "198.51.100.2";
const FILES = 100;
const FILE_BYTES = 10_000;
const READY_LIMIT_MS = 30_000;

/**
 * Starts a Git server in its own network namespace, because initializers can't reach addresses of the host that they
 * run on.
 */
export async function startGitHost(host: TestHost): Promise<GitHost> {
  const root = join(host.dir, "git");
  mkdirSync(root);
  const text = "line of a file\n".repeat(FILE_BYTES / 15);
  const files = Array.from({ length: FILES }, (_, index) => [`file-${index}.txt`, `${index}\n${text}`]);
  makeRepository(root, "project", Object.fromEntries(files));
  const name = `${host.name}-git`;
  const link = `${host.name}git`;
  const inside = ["netns", "exec", name];
  await run("ip", ["netns", "add", name]);
  await run("ip", ["link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", name]);
  await run("ip", ["address", "add", `${HOST_ADDRESS}/30`, "dev", link]);
  await run("ip", ["link", "set", link, "up"]);
  await run("ip", ["-n", name, "address", "add", `${GIT_ADDRESS}/30`, "dev", "eth0"]);
  for (const it of ["lo", "eth0"]) await run("ip", ["-n", name, "link", "set", it, "up"]);
  const script = join(import.meta.dirname, "serve-git.ts");
  host.spawn("git", "ip", [...inside, process.execPath, script, root, GIT_ADDRESS, "project.git"]);
  const url = await waitFor(() => /^http:.*$/m.exec(readFileSync(join(host.dir, "git.log"), "utf8"))?.[0], {
    ...{ what: "the Git server answers", limitMs: READY_LIMIT_MS },
  });
  return {
    url,
    close: async () => {
      await run("ip", ["link", "del", link]);
      await run("ip", ["netns", "del", name]);
    },
  };
}
