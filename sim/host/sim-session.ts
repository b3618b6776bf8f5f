import type { PodNetwork } from "../../agent/src/network/network.ts";
import type { PodFiles } from "../../agent/src/pods/pod-files.ts";
import type { ContainerRuntime } from "../../agent/src/runtime/runtime.ts";
import type { PodVolumes } from "../../agent/src/volumes/volumes.ts";
import type { SimLine } from "./sim-calls.ts";
import type { SimHost } from "./sim-host.ts";
import { simFiles, simNetwork } from "./sim-network.ts";
import { simRuntime } from "./sim-runtime.ts";
import { simVolumes } from "./sim-volumes.ts";

/** The connection of one agent to the host. */
export interface SimSession {
  readonly runtime: ContainerRuntime;
  readonly network: PodNetwork;
  readonly volumes: PodVolumes;
  readonly files: PodFiles;
  readonly cut: () => void;
}

const HOOK_UNWRITTEN_MS = 1_000;

export function openSession(host: SimHost): SimSession {
  const line: SimLine = { cut: false };
  host.volumes.restart();
  return {
    runtime: simRuntime(host, line),
    network: simNetwork(host, line),
    volumes: simVolumes(host, line),
    files: simFiles(host, line),
    cut: () => {
      line.cut = true;
      const nowMs = host.clock.monotonicMs();
      for (const it of host.running()) {
        // The completion may not have been written to disk.
        if (it.postStart === "done" && nowMs - it.postStartEndedAtMs < HOOK_UNWRITTEN_MS) it.excused = true;
      }
    },
  };
}
