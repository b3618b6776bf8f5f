import { setTimeout as delay } from "node:timers/promises";
import { WorkspacePhase } from "@forage/proto/core";
import type { TestHost } from "../../hack/lib/test-host.ts";
import type { WorkspaceCalls } from "../../hack/system/workspaces.ts";
import { startGitHost } from "./git-host.ts";
import { median, secondsOf } from "./rounds.ts";

const STARTS = 5;
const EVERY_MS = 20;

/** Measures the times in which a workspace starts and stops on a real host. */
export async function measureStart(
  calls: WorkspaceCalls,
  host: TestHost,
): Promise<Readonly<Record<string, number>>> {
  const git = await startGitHost(host);
  try {
    return await measureStarts(calls, git.url);
  } finally {
    await git.close();
  }
}

async function measureStarts(
  calls: WorkspaceCalls,
  remoteUri: string,
): Promise<Readonly<Record<string, number>>> {
  const [starts, stops, restores, clones]: number[][] = [[], [], [], []];
  const initializer = {
    spec: { $case: "git", value: { remoteUri, config: {}, checkoutLocation: "project" } },
  } as const;
  for (let index = 0; index < STARTS; index++) {
    const metadata = { metaId: `bench-${index}` };
    const start = async (id: string, change: Parameters<WorkspaceCalls["start"]>[1] = {}): Promise<void> => {
      await calls.start(id, { metadata, ...change });
      await reaches(calls, id, WorkspacePhase.RUNNING);
    };
    const stop = async (id: string): Promise<void> => {
      await calls.stop(id);
      await reaches(calls, id, WorkspacePhase.STOPPED);
    };
    starts?.push(await secondsOf(() => start(`first-${index}`)));
    stops?.push(await secondsOf(() => stop(`first-${index}`)));
    restores?.push(await secondsOf(() => start(`second-${index}`)));
    await stop(`second-${index}`);
    const cloned = { metadata: { metaId: `cloned-${index}` }, spec: { initializer } };
    clones?.push(await secondsOf(() => start(`cloned-${index}`, cloned)));
    await stop(`cloned-${index}`);
  }
  return {
    "start → RUNNING, empty (s)": median(starts ?? []),
    "start → RUNNING, git clone of 100 files (s)": median(clones ?? []),
    "stop → STOPPED, with a backup of an empty directory (s)": median(stops ?? []),
    "start → RUNNING, restored from that backup (s)": median(restores ?? []),
  };
}

export async function reaches(calls: WorkspaceCalls, id: string, phase: WorkspacePhase): Promise<void> {
  while ((await calls.describe(id))?.phase !== phase) await delay(EVERY_MS);
}
