import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { run } from "../../hack/lib/run.ts";
import type { TestHost } from "../../hack/lib/test-host.ts";

/** The number of concurrent nerdctl calls, the same as the agent's. */
const CONCURRENCY = 8;

/**
 * Returns the seconds for `count` calls of `nerdctl run` without any overhead: namespaces already exist, and the shim
 * writes logs itself.
 */
export async function measureFloor(host: TestHost, count: number): Promise<number> {
  const names = Array.from({ length: count }, (_, index) => `${host.name}-floor-${index}`);
  const logs = join(host.dir, "floor");
  mkdirSync(logs, { recursive: true });
  for (const name of names) await run("ip", ["netns", "add", name]);
  try {
    const startedMs = performance.now();
    await eachOf(names, (name) =>
      host.nerdctl([
        ...["run", "-d", "--name", name, "--network", `ns:/run/netns/${name}`],
        ...[
          "--log-driver",
          `file://${join(logs, name)}`,
          "--restart=no",
          "--pull=never",
          host.image,
          "sleep",
          "3600",
        ],
      ]),
    );
    return (performance.now() - startedMs) / 1000;
  } finally {
    await host.nerdctl(["rm", "-f", ...names], { allowFailure: true });
    for (const name of names) await run("ip", ["netns", "del", name], { allowFailure: true });
  }
}

async function eachOf<T>(items: readonly T[], work: (item: T) => Promise<unknown>): Promise<void> {
  const left = [...items];
  const worker = async (): Promise<void> => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, worker));
}
