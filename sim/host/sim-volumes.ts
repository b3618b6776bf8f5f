import { type PodVolumes, VolumeError } from "../../agent/src/volumes/volumes.ts";
import type { SimLine } from "./sim-calls.ts";
import type { SimHost } from "./sim-host.ts";

const HANG_LOOK_MS = 1_000;

/** Returns the host's volumes, over calls that take time and fail. */
export function simVolumes(host: SimHost, line: SimLine): PodVolumes {
  const { volumes } = host;
  const call = <Result>(effect: () => Promise<Result>) => host.calls.make(line, { effect, fail: failure });
  return {
    recover: (pods, signal) => call(() => volumes.recover(pods, signal)),
    prepare: async (pod, signal) => {
      await hang(host, signal);
      return call(() => volumes.prepare(pod, signal));
    },
    binds: (uid, container, mounts, signal) => call(() => volumes.binds(uid, container, mounts, signal)),
    update: (pod, signal) => call(() => volumes.update(pod, signal)),
    release: (uid, signal) =>
      call(() => {
        host.witness?.released(uid);
        return volumes.release(uid, signal);
      }),
    claims: () => volumes.claims(),
    removeClaim: (namespace, name, signal) => volumes.removeClaim(namespace, name, signal),
    close: async () => undefined,
  };
}

/** Waits like a mount whose device doesn't answer. */
async function hang({ calls, clock }: SimHost, signal: AbortSignal): Promise<void> {
  while (!signal.aborted && calls.chance(calls.faults.mountHangs ?? 0)) await clock.sleep(HANG_LOOK_MS);
}

function failure(code: "UNAVAILABLE" | "TIMEOUT"): Error {
  return new VolumeError("UNAVAILABLE", `simulated ${code}`);
}
