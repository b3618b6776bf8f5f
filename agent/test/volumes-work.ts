import type { PodVolumeSpec, VolumeMount } from "../src/volumes/volumes.ts";
import { aMount, aPod, files, MIB } from "./volume-host.ts";

/** Returns pods with all kinds of volumes. `kept` is always the same, and the others are new each round. */
export function busyPods(round: number): readonly {
  readonly pod: PodVolumeSpec;
  readonly mounts: readonly VolumeMount[];
}[] {
  return ["kept", `x-${round}`, `y-${round}`].map((uid) => ({
    pod: aPod(
      uid,
      {
        limited: { type: "emptyDir", medium: "disk", sizeLimitBytes: 2 * MIB },
        plain: { type: "emptyDir", medium: "disk" },
        memory: { type: "emptyDir", medium: "memory", sizeLimitBytes: MIB },
        secret: files({ password: `${round}` }, { secret: true }),
        config: files({ a: `${round}`, b: `${round}` }),
        claim: {
          type: "claim",
          namespace: "shop",
          claim: `of-${uid.slice(0, 1)}`,
          capacityBytes: 2 * MIB,
          readOnly: false,
        },
      },
      { fsGroup: { gid: 2000, changePolicy: "Always" } },
    ),
    mounts: [aMount("limited", { subPath: "a/b" }), aMount("claim", { subPath: "c" }), aMount("secret")],
  }));
}
