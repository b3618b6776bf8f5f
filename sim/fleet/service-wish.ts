import type { Random } from "@forage/common/random";
import { ForageResource } from "@forage/proto/forest/v1/forage";
import { imageOf, type ProgramKind } from "./programs.ts";
import type { Wish } from "./wish.ts";

interface Strategy {
  readonly type: string;
  readonly rollingUpdate?: { readonly maxSurge: string; readonly maxUnavailable: string };
}

const strategies: readonly (Strategy | undefined)[] = [
  undefined,
  undefined,
  { type: "Recreate" },
  { type: "RollingUpdate", rollingUpdate: { maxSurge: "1", maxUnavailable: "0" } },
  { type: "RollingUpdate", rollingUpdate: { maxSurge: "0", maxUnavailable: "1" } },
  { type: "RollingUpdate", rollingUpdate: { maxSurge: "100%", maxUnavailable: "0%" } },
  { type: "RollingUpdate", rollingUpdate: { maxSurge: "10%", maxUnavailable: "50%" } },
];

const SETTINGS: readonly Readonly<Record<string, string>>[] = [
  {},
  {},
  {},
  { "forage.dev/rollback": "off" },
  { "forage.dev/canary": "1" },
  { "forage.dev/min-ready-seconds": "5" },
];

/** A slow image whose pull restarts takes longer than the default deadline. */
const PATIENT = { "forage.dev/progress-deadline": "600s" };

/** The probe of a service. Whether it succeeds depends on the kind of program. */
const READINESS_PROBE = {
  handler: { $case: "exec" as const, value: { command: ["ready"] } },
  periodSeconds: 10,
};

const LIVENESS_PROBE = {
  handler: { $case: "exec" as const, value: { command: ["live"] } },
  periodSeconds: 10,
};

const VOLUME = { name: "scratch", source: { $case: "emptyDir" as const, value: {} } };

/** The CPU that a workload may request in the end, in thousandths. It fits also if a node is missing. */
const MENDED_MILLI = 1_500;

/** The desired state of a container service. */
export class ServiceWish implements Wish {
  readonly name: string;
  readonly #random: Random;
  readonly #cpuMilli: number;
  #replicas: number;
  #kind: ProgramKind;
  #version = 1;
  #strategy: Strategy | undefined;
  #settings: Readonly<Record<string, string>>;
  #labels: Readonly<Record<string, string>> = {};
  /** Whether it has probes and a volume. */
  readonly #probed: boolean;

  constructor(name: string, random: Random, probed = false) {
    this.#probed = probed;
    this.name = name;
    this.#random = random;
    this.#cpuMilli = random.pick([250, 500, 1_000]);
    this.#replicas = random.below(6);
    this.#strategy = random.pick(strategies);
    this.#settings = random.pick(SETTINGS);
    this.#kind = aKind(random);
  }

  get words(): string {
    return `${this.#replicas} × ${this.#kind}`;
  }

  change(): string {
    const random = this.#random;
    const choice = random.next();
    if (choice < 0.5) {
      this.#kind = aKind(random);
      this.#version++;
      return `gets a ${this.#kind} image`;
    }
    if (choice < 0.6 && this.#version > 1) {
      this.#version--;
      return "goes back a version";
    }
    if (choice < 0.8) {
      this.#replicas = random.below(7);
      return `is scaled to ${this.#replicas}`;
    }
    if (choice < 0.86) {
      this.#strategy = random.pick(strategies);
      this.#settings = random.pick(SETTINGS);
      return "gets other settings";
    }
    if (choice < 0.92) {
      this.#labels = { release: `${random.below(5)}` };
      return "gets other labels";
    }
    return "stays as it is";
  }

  mend(): void {
    this.#replicas = Math.min(this.#replicas, Math.floor(MENDED_MILLI / this.#cpuMilli));
    this.#settings = this.#kind === "slow" ? PATIENT : {};
    if (this.#kind === "good") return;
    if (this.#kind !== "slow") this.#kind = "good";
    // A rollback of the current version may have ended at a version that crashes. Only a new version begins another
    // rollout.
    this.#version++;
  }

  resource(): ForageResource {
    // A canary is rejected with a strategy that stops old pods first.
    const annotations =
      this.#strategy?.type === "Recreate" && "forage.dev/canary" in this.#settings ? {} : this.#settings;
    const value = {
      scaling: { replicas: this.#replicas },
      ...(this.#strategy && { updateStrategy: this.#strategy }),
      podConfig: { annotations: { ...annotations }, labels: { ...this.#labels } },
      ...(this.#probed && { volumes: [VOLUME] }),
      container: {
        name: "main",
        image: imageOf(this.#kind, this.#version),
        resources: { requests: { cpu: `${this.#cpuMilli}m`, memory: "64Mi" } },
        ...((this.#probed || this.#kind === "unready") && { readinessProbe: READINESS_PROBE }),
        ...(this.#probed && {
          livenessProbe: LIVENESS_PROBE,
          volumeMounts: [{ name: VOLUME.name, mountPath: "/scratch" }],
        }),
      },
    };
    return ForageResource.fromPartial({ name: this.name, spec: { $case: "containerService", value } });
  }
}

function aKind(random: Random): ProgramKind {
  const choice = random.next();
  if (choice < 0.55) return "good";
  if (choice < 0.65) return "slow";
  return random.pick(["crashing", "flaky", "unready", "missing"]);
}
