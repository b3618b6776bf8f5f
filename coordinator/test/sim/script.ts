import { ApplyResourcesRequest, ForageResource } from "@forage/proto/forest/v1/forage";
import type { Random } from "../support/random.ts";
import { imageOf, type ProgramKind } from "./programs.ts";

/** What operators want of one workload, as they have it in their files. */
interface Wish {
  replicas: number;
  kind: ProgramKind;
  version: number;
  strategy: object | undefined;
  readonly cpuMilli: number;
}

const strategies: readonly (object | undefined)[] = [
  undefined,
  undefined,
  { type: "Recreate" },
  { type: "RollingUpdate", rollingUpdate: { maxSurge: "1", maxUnavailable: "0" } },
  { type: "RollingUpdate", rollingUpdate: { maxSurge: "0", maxUnavailable: "1" } },
  { type: "RollingUpdate", rollingUpdate: { maxSurge: "100%", maxUnavailable: "0%" } },
  { type: "RollingUpdate", rollingUpdate: { maxSurge: "10%", maxUnavailable: "50%" } },
];

/** So much of a workload fits in the end, also when a node is gone. */
const mendedMilli = 1_700;

export const namespace = "shop";

/** Each bundle is applied as a whole; what it names no more is removed. */
const bundles: Readonly<Record<string, readonly string[]>> = { front: ["web", "api"], back: ["worker"] };

/** Operators' files, changed by chance, and the requests that they make of them. */
export class Script {
  readonly #random: Random;
  readonly #wishes = new Map<string, Wish>();
  #applies = 0;
  #versions = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  /** Something is changed in a bundle's files. */
  change(): { readonly bundle: string; readonly request: ApplyResourcesRequest; readonly what: string } {
    const bundle = this.#random.pick(Object.keys(bundles));
    const name = this.#random.pick(bundles[bundle] ?? []);
    const what = this.#changeOne(name);
    return { bundle, request: this.#request(bundle), what: `${bundle}: ${name} ${what}` };
  }

  labelsOf(bundle: string): Record<string, string> {
    return { bundle };
  }

  anyBundle(): string {
    return this.#random.pick(Object.keys(bundles));
  }

  /** It is deleted, and its files with it. */
  forget(bundle: string): void {
    for (const name of bundles[bundle] ?? []) this.#wishes.delete(name);
  }

  /** Everything as it can work: after it nothing stands in the way of any rollout. */
  mend(): { readonly bundle: string; readonly request: ApplyResourcesRequest }[] {
    for (const wish of this.#wishes.values()) {
      wish.replicas = Math.min(wish.replicas, Math.floor(mendedMilli / wish.cpuMilli));
      if (wish.kind === "good" || wish.kind === "slow") continue;
      wish.kind = "good";
      wish.version = ++this.#versions;
    }
    const used = Object.keys(bundles).filter((bundle) =>
      bundles[bundle]?.some((name) => this.#wishes.has(name)),
    );
    return used.map((bundle) => ({ bundle, request: this.#request(bundle) }));
  }

  #changeOne(name: string): string {
    const random = this.#random;
    const wish = this.#wishes.get(name);
    if (wish === undefined) {
      const made: Wish = {
        replicas: random.below(6),
        kind: this.#kind(),
        version: ++this.#versions,
        strategy: random.pick(strategies),
        cpuMilli: random.pick([250, 500, 1_000]),
      };
      this.#wishes.set(name, made);
      return `is new: ${made.replicas} × ${made.kind}`;
    }
    const choice = random.next();
    if (choice < 0.5) {
      wish.kind = this.#kind();
      wish.version = ++this.#versions;
      return `gets a ${wish.kind} image`;
    }
    if (choice < 0.8) {
      wish.replicas = random.below(7);
      return `is scaled to ${wish.replicas}`;
    }
    if (choice < 0.85) {
      wish.strategy = random.pick(strategies);
      return "gets another strategy";
    }
    if (choice < 0.93) {
      this.#wishes.delete(name);
      return "is left out";
    }
    return "stays as it is";
  }

  #kind(): ProgramKind {
    const choice = this.#random.next();
    if (choice < 0.55) return "good";
    if (choice < 0.65) return "slow";
    return this.#random.pick(["crashing", "flaky", "unready", "missing"]);
  }

  #request(bundle: string): ApplyResourcesRequest {
    const names = (bundles[bundle] ?? []).filter((name) => this.#wishes.has(name));
    return ApplyResourcesRequest.fromPartial({
      applyId: `apply-${++this.#applies}`,
      namespace,
      resources: names.map((name) => this.#resource(name)),
      labels: this.labelsOf(bundle),
    });
  }

  #resource(name: string): ForageResource {
    const wish = this.#wishes.get(name);
    if (wish === undefined) throw new Error(`nobody wishes for ${name}`);
    const { replicas, kind, version, strategy, cpuMilli } = wish;
    const value = {
      scaling: { replicas },
      ...(strategy && { updateStrategy: strategy }),
      container: {
        name: "main",
        image: imageOf(kind, version),
        resources: { requests: { cpu: `${cpuMilli}m`, memory: "64Mi" } },
      },
    };
    return ForageResource.fromPartial({ name, spec: { $case: "containerService", value } });
  }
}
