import {
  type ContainerRuntime,
  type RuntimeContainer,
  RuntimeError,
  type RuntimeEvent,
} from "../../agent/src/runtime/runtime.ts";
import type { SimLine } from "./sim-calls.ts";
import type { SimContainer } from "./sim-container.ts";
import type { SimHost } from "./sim-host.ts";
import { execInSim } from "./sim-programs.ts";

export function simRuntime(host: SimHost, line: SimLine): ContainerRuntime {
  const call = <Result>(effect: () => Result | Promise<Result>) =>
    host.calls.make(line, { effect, fail: failure, mayBeLate: true });
  return {
    version: () => call(() => ({ containerd: "1.0", nerdctl: "2.0" })),
    list: () => call(() => [...host.containers.values()].map(listed)),
    run: (spec) => call(() => host.start(spec)),
    stop: (id, graceMs) => call(() => host.stop(id, graceMs)),
    remove: (ids) =>
      call(() => {
        for (const id of ids) host.remove(id);
      }),
    inspect: (id) =>
      call(() => {
        const found = host.containers.get(id);
        if (found?.state !== "exited") return found && listed(found);
        return { ...listed(found), exitCode: found.exitCode, finishedAtMs: found.finishedAtMs };
      }),
    hasImage: (reference) => call(() => host.images.has(reference)),
    pull: async (reference) => {
      await host.clock.sleep(host.programs.pullMs(reference));
      await call(() => pull(host, reference));
    },
    listImages: () => call(() => [...host.images]),
    removeImage: (reference) => call(() => removeImage(host, reference)),
    imageStorage: async () => undefined,
    ownLayer: async () => undefined,
    events: (signal) => eventsOf(host, line, signal),
    exec: (id, options, signal) => execInSim(host, line, id, options, signal),
    usage: async () => undefined,
    detailedUsage: async () => undefined,
    kill: async () => {
      throw new RuntimeError("UNKNOWN", "the simulation sends no signals", { retryable: false });
    },
    oomKills: async () => 0,
    close: async () => undefined,
  };
}

function pull(host: SimHost, reference: string): void {
  if (!host.programs.isRegistryUp() || host.calls.chance(host.calls.faults.pullFails ?? 0)) {
    throw new RuntimeError("REGISTRY_UNAVAILABLE", "no route to registry", { retryable: true });
  }
  if (!host.programs.isInRegistry(reference)) {
    throw new RuntimeError("IMAGE_NOT_FOUND", `${reference} not found`, { retryable: false });
  }
  host.images.add(reference);
}

function removeImage(host: SimHost, reference: string): "in-use" | "removed" | "absent" {
  if ([...host.containers.values()].some(({ spec }) => spec.image === reference)) return "in-use";
  return host.images.delete(reference) ? "removed" : "absent";
}

async function* eventsOf(host: SimHost, line: SimLine, signal: AbortSignal): AsyncGenerator<RuntimeEvent> {
  const queue: (RuntimeEvent | undefined)[] = [{ type: "listening" }];
  let wake: (() => void) | undefined;
  const listener = (event: RuntimeEvent | undefined) => {
    queue.push(event);
    wake?.();
  };
  host.listeners.add(listener);
  signal.addEventListener("abort", () => wake?.(), { once: true });
  try {
    while (!signal.aborted && !line.cut) {
      while (queue.length > 0) {
        const event = queue.shift();
        if (line.cut) return;
        if (event === undefined) throw new RuntimeError("UNAVAILABLE", "stream broke", { retryable: true });
        yield event;
      }
      await new Promise<void>((resolve) => {
        wake = resolve;
        if (queue.length > 0 || signal.aborted) resolve();
      });
    }
  } finally {
    host.listeners.delete(listener);
  }
}

function failure(code: "UNAVAILABLE" | "TIMEOUT"): Error {
  return new RuntimeError(code, `simulated ${code}`, { retryable: true });
}

function listed({ id, spec, state, startedAtMs }: SimContainer): RuntimeContainer {
  return { id, name: spec.name, labels: spec.labels, image: spec.image, state, startedAtMs };
}
