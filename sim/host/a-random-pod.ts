import type { Pod, PodContainer } from "../../agent/src/pods/pod.ts";
import { probeSpec } from "../../agent/src/probes/probe-spec.ts";
import type { PodVolumeSpec } from "../../agent/src/volumes/volumes.ts";

type Random = () => number;

export const IMAGES = ["app:1", "app:latest", "side:1", "init:1"] as const;

const MOUNT = { volume: "config", mountPath: "/etc/config", subPath: "", readOnly: true };
const NUMBERS = {
  initialDelaySeconds: 0,
  periodSeconds: 15,
  timeoutSeconds: 1,
  successThreshold: 1,
  failureThreshold: 2,
};

/** Returns a pod with a random selection of features. */
export function aRandomPod(uid: string, random: Random): Pod {
  const mounts = random() < 0.3 ? [MOUNT] : [];
  const restartPolicy = random() < 0.75 ? "Always" : random() < 0.5 ? "OnFailure" : "Never";
  const isJob = restartPolicy !== "Always";
  const main = aContainer("main", random() < 0.5 ? "app:1" : "app:latest", random);
  const several = (most: number) => Array.from({ length: Math.floor(random() * (most + 1)) }, (_, at) => at);
  const sidecars = random() < 0.4 ? several(2).map((at) => aContainer(`side${at}`, "side:1", random)) : [];
  const inits = random() < 0.4 ? several(2).map((at) => `init${at}`) : [];
  return {
    uid,
    namespace: "default",
    name: `pod-${uid}`,
    specHash: `hash-${uid}`,
    stopping: false,
    hostname: uid,
    graceMs: 5_000,
    restartPolicy,
    containers: [...sidecars, { ...main, command: [isJob ? "job" : "serve"], mounts }],
    initContainers: inits.map((name) => ({ ...plain(name, "init:1"), command: ["init"], mounts })),
    ...(mounts.length > 0 && { volumes: volumesOf(uid, random() < 0.5 ? "first" : undefined) }),
  };
}

/** Returns the pod's volumes. If the content is undefined, the secret doesn't exist yet. */
export function volumesOf(uid: string, content: string | undefined): PodVolumeSpec {
  const contents = content === undefined ? {} : { contents: new Map([["key", Buffer.from(content)]]) };
  const source = {
    type: "files",
    secret: true,
    title: "secret s",
    items: [],
    defaultMode: 0,
    optional: false,
  } as const;
  return { uid, volumes: [{ name: "config", source: { ...source, ...contents } }] };
}

function aContainer(name: string, image: string, random: Random): PodContainer {
  const probe = (kind: "startup" | "liveness" | "readiness", word: string) =>
    probeSpec(
      kind,
      { type: "exec", command: [word] },
      { ...NUMBERS, ...(kind === "startup" && { failureThreshold: 3 }) },
    );
  const probes = {
    ...(random() < 0.3 && { startup: probe("startup", "startup") }),
    ...(random() < 0.3 && { readiness: probe("readiness", "ready") }),
    ...(random() < 0.3 && { liveness: probe("liveness", "live") }),
  };
  const hooks = {
    ...(random() < 0.3 && { postStart: { type: "exec", command: ["post_start"] } as const }),
    ...(random() < 0.3 && { preStop: { type: "exec", command: ["pre_stop"] } as const }),
  };
  return { ...plain(name, image), probes, hooks };
}

function plain(name: string, image: string): PodContainer {
  return {
    name,
    image,
    pullPolicy: image.endsWith(":latest") ? "Always" : "IfNotPresent",
    command: ["serve"],
    args: [],
    env: [],
    ports: name.startsWith("init") ? [] : [{ container: name, containerPort: 80, protocol: "TCP" }],
  };
}
