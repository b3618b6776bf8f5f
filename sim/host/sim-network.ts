import { FakeNetwork } from "../../agent/src/network/fake.ts";
import { NetworkError, type PodNetwork } from "../../agent/src/network/network.ts";
import type { PortRange } from "../../agent/src/network/port-allocator.ts";
import type { PodFiles } from "../../agent/src/pods/pod-files.ts";
import { never, type SimLine } from "./sim-calls.ts";
import type { SimHost } from "./sim-host.ts";

/** Returns the host's network as one agent uses it, over calls that take time and fail. */
export function simNetwork(host: SimHost, line: SimLine, hostPorts?: PortRange): PodNetwork {
  const network = new FakeNetwork(host.network, hostPorts);
  const call = <Result>(effect: () => Promise<Result>) => host.calls.make(line, { effect, fail: failure });
  return {
    start: (known, signal) => call(() => network.start(known, signal)),
    attach: (podUid, signal) => call(() => network.attach(podUid, signal)),
    check: (sandbox) => network.check(sandbox),
    findLost: (sandboxes) => network.findLost(sandboxes),
    detach: (podUid, signal) => call(() => network.detach(podUid, signal)),
    allocatePorts: (podUid, desired) => network.allocatePorts(podUid, desired),
    acquireHostPorts: (podUid, desired) => network.acquireHostPorts(podUid, desired),
    publish: (sandbox, mappings, signal) => call(() => network.publish(sandbox, mappings, signal)),
    keepPorts: (podUid, mappings) => network.keepPorts(podUid, mappings),
    unpublish: (podUid, signal) => call(() => network.unpublish(podUid, signal)),
    close: () => network.close(),
  };
}

export function simFiles({ directories, logs }: SimHost, line: SimLine): PodFiles {
  return {
    prepare: async (podUid, container, attempt) => {
      if (line.cut) return never();
      directories.add(podUid);
      const logFile = logOf(podUid, container, attempt);
      logs.add(logFile);
      return { logFile };
    },
    lastLines: async (podUid, container, attempt) => {
      if (line.cut) return never();
      return logs.has(logOf(podUid, container, attempt)) ? "last words" : "";
    },
    remove: async (podUid) => {
      if (line.cut) return never();
      directories.delete(podUid);
      for (const log of logs) if (log.startsWith(`/logs/${podUid}/`)) logs.delete(log);
    },
    podUids: async () => (line.cut ? never() : [...directories]),
  };
}

function logOf(podUid: string, container: string, attempt: number): string {
  return `/logs/${podUid}/${container}/${attempt}.log`;
}

function failure(code: "UNAVAILABLE" | "TIMEOUT"): Error {
  return new NetworkError(code === "TIMEOUT" ? "TIMEOUT" : "SETUP_FAILED", `simulated ${code}`, {
    retryable: true,
  });
}
