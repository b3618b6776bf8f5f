import { BundleFile } from "@forage/archive";
import { messageOf } from "@forage/common/message-of";
import type { Config } from "../config.ts";
import { configText } from "../support/shown-config.ts";
import { supportFile } from "../support/support-files.ts";
import { checkHost } from "./check/check-host.ts";
import type { CheckedHost } from "./check/finding.ts";
import { SetupError } from "./setup-error.ts";

export interface HostBundleOptions {
  readonly host: CheckedHost;
  /** Returns the configuration. Rejects if it is invalid. */
  readonly settings: () => Promise<Config>;
}

/** The number of newest lines of each unit, below the limit for a command's output. */
const JOURNAL_LINES = "4000";
const UNITS = ["forage-agent", "forage-coordinator", "forage-logs", "containerd"];
/** Commands whose output contains only names, addresses and states. */
const COMMANDS: Readonly<Record<string, readonly string[]>> = {
  "kernel.txt": ["uname", "-a"],
  "units.txt": ["systemctl", "status", "--no-pager", "--lines=0", ...UNITS],
  "failed-units.txt": ["systemctl", "list-units", "--failed", "--no-pager"],
  "addresses.txt": ["ip", "-details", "address"],
  "routes.txt": ["ip", "route", "show", "table", "all"],
  "nftables.txt": ["nft", "list", "tables"],
  "disks.txt": ["df", "--all", "--human-readable"],
  "inodes.txt": ["df", "--inodes"],
  "memory.txt": ["free", "--mebi"],
  "clock.txt": ["timedatectl", "show"],
  "containerd.txt": ["containerd", "--version"],
  "packages.txt": ["dpkg-query", "--show", "forage*", "containerd*", "runc*", "nftables*"],
};

/**
 * Writes a support bundle of this host, without the coordinator and even while the agent is stopped. The archive names
 * each file that can't be created, with the reason.
 */
export async function writeHostBundle(
  path: string,
  { host, settings }: HostBundleOptions,
): Promise<{ readonly bytes: number; readonly problems: BundleFile["problems"] }> {
  const bundle = await create(path, host);
  try {
    const add = async (name: string, read: () => Promise<string>): Promise<void> => {
      const { content, problem } = await supportFile(name, read);
      await bundle.add(name, Buffer.from(content), problem);
    };
    const run = async ([file = "", ...args]: readonly string[]): Promise<string> => {
      const result = await host.run(file, args);
      if (result.ok) return `${result.text}\n`;
      throw new Error(result.text);
    };
    await add("config.json", async () => configText(await settings()));
    await add(
      "checks.json",
      async () => `${JSON.stringify(await checkHost(host, await settings()), undefined, 2)}\n`,
    );
    await add("metrics.txt", async () => agentMetrics(await settings()));
    for (const unit of UNITS)
      await add(`journal/${unit}.txt`, () =>
        run(["journalctl", "--no-pager", "--output=short-iso", `--lines=${JOURNAL_LINES}`, `--unit=${unit}`]),
      );
    for (const [name, command] of Object.entries(COMMANDS)) await add(name, () => run(command));
    return { bytes: await bundle.finish(), problems: bundle.problems };
  } catch (error) {
    await bundle.discard();
    throw error;
  }
}

async function create(path: string, host: CheckedHost): Promise<BundleFile> {
  if (await host.exists(path)) throw new SetupError(`${path} exists: name another file`);
  try {
    return await BundleFile.create(path, { name: "forage-host", nowMs: host.nowMs() });
  } catch (cause) {
    throw new SetupError(`${path}.partial can't be created: ${messageOf(cause)}`, { cause });
  }
}

const METRICS_LIMIT_MS = 5_000;

async function agentMetrics({ http }: Config): Promise<string> {
  if (!http.listen) throw new Error("http.listen is off");
  const { host, port } = http.listen;
  const name = host.includes(":") ? `[${host}]` : host;
  const answer = await fetch(`http://${name}:${port}/metrics`, {
    signal: AbortSignal.timeout(METRICS_LIMIT_MS),
  });
  return answer.text();
}
