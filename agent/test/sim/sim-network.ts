import {
  type FoundPod,
  isHostNetwork,
  type KnownPod,
  NetworkError,
  type PodNetwork,
  type PodSandbox,
  type PortMapping,
  type PortRequest,
} from "../../src/network/network.ts";
import type { PodFiles } from "../../src/pods/pod-files.ts";
import { never, type SimLine } from "./sim-calls.ts";
import type { SimHost } from "./sim-host.ts";

export function simNetwork(host: SimHost, line: SimLine): PodNetwork {
  const { sandboxes, published, ports } = host;
  const call = <Result>(effect: () => Result) => host.calls.make(line, { effect, fail: failure });
  return {
    start: (known) => call(() => start(host, known)),
    attach: (podUid) =>
      call((): PodSandbox => {
        const namespacePath = sandboxes.get(podUid) ?? `/run/netns/${podUid}-${host.next()}`;
        sandboxes.set(podUid, namespacePath);
        return { podUid, namespacePath, address: "10.0.0.1" };
      }),
    check: async (sandbox) => sandboxes.get(sandbox.podUid) === sandbox.namespacePath,
    findLost: async (known) =>
      known.filter((it) => !isHostNetwork(it) && sandboxes.get(it.podUid) !== it.namespacePath),
    detach: (podUid) =>
      call(() => {
        sandboxes.delete(podUid);
        published.delete(podUid);
        ports.delete(podUid);
      }),
    allocatePorts: async (podUid, wanted) => allocate(host, podUid, wanted),
    takeHostPorts: async (_, wanted) => wanted.map((it) => ({ ...it, hostPort: it.containerPort })),
    publish: (sandbox, mappings) => call(() => void published.set(sandbox.podUid, mappings)),
    keepPorts: (podUid, mappings) => void ports.set(podUid, mappings),
    unpublish: (podUid) => call(() => void published.delete(podUid)),
    close: async () => undefined,
  };
}

export function simFiles({ directories }: SimHost, line: SimLine): PodFiles {
  return {
    prepare: async (podUid, container, attempt) => {
      if (line.cut) return never();
      directories.add(podUid);
      return { logFile: `/logs/${podUid}/${container}/${attempt}.log` };
    },
    lastLines: async () => (line.cut ? never() : "last words"),
    remove: async (podUid) => {
      if (line.cut) return never();
      directories.delete(podUid);
    },
    podUids: async () => (line.cut ? never() : [...directories]),
  };
}

function start({ sandboxes, published, ports }: SimHost, known: readonly KnownPod[]): readonly FoundPod[] {
  const uids = new Set(known.map((it) => it.podUid));
  for (const uid of [...sandboxes.keys()]) if (!uids.has(uid)) sandboxes.delete(uid);
  const found = known.flatMap(({ podUid, sandbox, wanted = [] }): FoundPod[] => {
    const namespacePath = sandboxes.get(podUid);
    if (sandbox !== undefined || namespacePath === undefined) return [];
    const was = published.get(podUid)?.filter((it) => wanted.some((port) => samePort(port, it)));
    return [
      {
        podUid,
        sandbox: { podUid, namespacePath, address: "10.0.0.1" },
        ...(was?.length === wanted.length && { ports: was }),
      },
    ];
  });
  const held = new Map(known.map(({ podUid, ports: own }) => [podUid, own]));
  for (const { podUid, ports: own } of found) if (own !== undefined) held.set(podUid, own);
  ports.clear();
  for (const [podUid, own] of held) if (own.length > 0) ports.set(podUid, own);
  published.clear();
  for (const [podUid, own] of held) if (sandboxes.has(podUid)) published.set(podUid, own);
  return found;
}

function allocate(
  { ports }: SimHost,
  podUid: string,
  wanted: readonly PortRequest[],
): readonly PortMapping[] {
  const held = ports.get(podUid) ?? [];
  const taken = new Set([...ports.values()].flat().map((it) => it.hostPort));
  let next = 20_000;
  const made = wanted.map((request) => {
    const kept = held.find((it) => samePort(request, it));
    if (kept !== undefined) return kept;
    while (taken.has(next)) next += 1;
    taken.add(next);
    return { ...request, hostPort: next };
  });
  ports.set(podUid, made);
  return made;
}

function samePort(a: PortRequest, b: PortRequest): boolean {
  return a.containerPort === b.containerPort && a.container === b.container;
}

function failure(code: "UNAVAILABLE" | "TIMEOUT"): Error {
  return new NetworkError(code === "TIMEOUT" ? "TIMEOUT" : "SETUP_FAILED", `simulated ${code}`, {
    retryable: true,
  });
}
