import { type ObjectData, PodAssignment, PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import { Container, PodConfig, Volume } from "@forage/proto/forest/v1/forage";

const IMAGE = "localhost/forage/busybox:1";

export function aShell(name: string, script: string, change: Partial<Container> = {}): Container {
  const container = { name, image: IMAGE, command: ["sh", "-c", script] };
  return Container.fromPartial({ ...container, volumeMounts: MOUNTS, ...change });
}

/** Returns an exec handler for a probe or hook. */
export function running(script: string) {
  return { $case: "exec" as const, value: { command: ["sh", "-c", script] } };
}

export function aSecret(name: string, word: string): ObjectData {
  return { name, data: { word: Buffer.from(word) }, version: `version of ${word}`, current: true };
}

// Mounts that all containers of the pod share. `/out` is a directory of the host and outlives the pod.
const MOUNTS = [
  { name: "data", mountPath: "/data", subPath: "", readOnly: false },
  { name: "word", mountPath: "/secret", subPath: "", readOnly: true },
  { name: "out", mountPath: "/out", subPath: "", readOnly: false },
];

export interface RichPod {
  readonly uid: string;
  /** A directory of the host in which the pod records its events, in `<uid>`. */
  readonly outDir: string;
  readonly secrets?: readonly ObjectData[];
  readonly restartPolicy?: string;
  readonly graceSeconds?: number;
  readonly initContainers?: readonly Container[];
  readonly sidecars?: readonly Container[];
  readonly main: Container;
}

/** Returns a pod with an empty directory, a secret `word` and a directory of the host in each of its containers. */
export function aRichAssignment(pod: RichPod): PodAssignment {
  const { uid, outDir, secrets = [], restartPolicy = "", graceSeconds = 2 } = pod;
  const volumes: Volume[] = [
    Volume.fromPartial({
      name: "data",
      source: { $case: "emptyDir", value: { medium: "", sizeLimit: "8Mi" } },
    }),
    Volume.fromPartial({ name: "word", source: { $case: "secret", value: { secretName: "word" } } }),
    Volume.fromPartial({
      name: "out",
      source: { $case: "hostPath", value: { path: outDir, type: "DirectoryOrCreate" } },
    }),
  ];
  return PodAssignment.fromPartial({
    uid,
    namespace: "default",
    name: `pod-${uid}`,
    workloadKind: "container_service",
    workloadName: "web",
    secrets: [...secrets],
    template: PodTemplate.fromPartial({
      container: pod.main,
      sidecars: [...(pod.sidecars ?? [])],
      initContainers: [...(pod.initContainers ?? [])],
      volumes,
      podConfig: PodConfig.fromPartial({ terminationGracePeriodSeconds: graceSeconds, restartPolicy }),
    }),
    specHash: `hash-${uid}`,
  });
}
