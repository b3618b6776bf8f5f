import { setTimeout as delay } from "node:timers/promises";
import { WorkspacePhase } from "@forage/proto/core";
import type { WorkspaceCalls } from "../../hack/system/workspaces.ts";
import { median, secondsOf } from "./rounds.ts";

const STARTS = 5;
const EVERY_MS = 20;

/** Returns the times in which a workspace starts and stops on a real host. */
export async function measureStart(calls: WorkspaceCalls): Promise<Readonly<Record<string, number>>> {
  const [starts, stops, restores]: number[][] = [[], [], []];
  for (let index = 0; index < STARTS; index++) {
    const metadata = { metaId: `bench-${index}` };
    const start = async (id: string): Promise<void> => {
      await calls.start(id, { metadata });
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
  }
  return {
    "start → RUNNING, empty (s)": median(starts ?? []),
    "stop → STOPPED, with a backup of an empty directory (s)": median(stops ?? []),
    "start → RUNNING, restored from that backup (s)": median(restores ?? []),
  };
}

export async function reaches(calls: WorkspaceCalls, id: string, phase: WorkspacePhase): Promise<void> {
  while ((await calls.describe(id))?.phase !== phase) await delay(EVERY_MS);
}
