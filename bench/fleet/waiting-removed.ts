import { ApplyResourcesRequest, DeleteResourcesRequest } from "@forage/proto/forest/v1/forage";
import { forageService } from "../../coordinator/src/api/forage/service.ts";
import { createMemoryStore } from "../../coordinator/src/store/index.ts";
import { systemClock } from "../../coordinator/src/time/clock.ts";
import { waitFor } from "../../hack/lib/wait-for.ts";
import { openCore } from "./local-events.ts";

const LABELS = { app: "waiting" };
const LIMIT_MS = 600_000;

/** Measures the cost of removing one service whose pods all wait for a node. */
export async function measureWaitingRemoved(pods: number, result: Record<string, number>): Promise<void> {
  const store = createMemoryStore({ clock: systemClock });
  const core = await openCore(store);
  try {
    const forage = forageService(core.services.forage);
    const caller = { type: "user", name: "bench", grants: [{ role: "admin", namespaces: "*" }] } as const;
    const context = { method: "", caller, peer: "", signal: new AbortController().signal };
    const container = { name: "main", image: "registry.example/app:v1" };
    const spec = { $case: "containerService" as const, value: { scaling: { replicas: pods }, container } };
    const resources = [{ name: "web", spec }];
    const request = { applyId: "apply", namespace: "bench", labels: LABELS, resources };
    await forage.applyResources(ApplyResourcesRequest.fromPartial(request), context);
    const wait = async (): Promise<boolean> => core.state.unboundPods().length === pods;
    await waitFor(wait, { what: `${pods} pods wait`, limitMs: LIMIT_MS, everyMs: 200 });
    const before = process.cpuUsage();
    await forage.deleteResources(
      DeleteResourcesRequest.fromPartial({ namespace: "bench", labels: LABELS }),
      context,
    );
    const gone = async (): Promise<boolean> => core.state.pods().length === 0;
    await waitFor(gone, { what: "all pods are gone", limitMs: LIMIT_MS, everyMs: 50 });
    const { user, system } = process.cpuUsage(before);
    result[`${pods} waiting pods removed: processor time a pod (µs)`] = (user + system) / pods;
  } finally {
    core.stopSessions();
    await core.close();
    await store.close();
  }
}
