import type { Random } from "@forage/common/random";
import { ApplyResourcesRequest } from "@forage/proto/forest/v1/forage";
import { CronWish } from "./cron-wish.ts";
import { JobWish } from "./job-wish.ts";
import { ServiceWish } from "./service-wish.ts";
import type { Wish } from "./wish.ts";

export interface BundleRequest {
  readonly bundle: string;
  readonly request: ApplyResourcesRequest;
}

export const NAMESPACE = "shop";

/** The resources of each bundle. A bundle is applied as a whole; resources that it no longer contains are removed. */
const BUNDLES: Readonly<Record<string, readonly string[]>> = {
  front: ["web", "api"],
  back: ["worker"],
  tasks: ["import", "report", "nightly"],
};
const JOBS: ReadonlySet<string> = new Set(BUNDLES.tasks);
const CRON_JOBS: ReadonlySet<string> = new Set(["nightly"]);

export interface ScriptOptions {
  /** Whether one of the services has probes and a volume. */
  readonly withProbesAndVolumes?: boolean;
}

/** The service that may have probes and a volume. */
const PROBED = "api";

/** The files of operators, which change at random, and the operators' requests. */
export class Script {
  readonly #random: Random;
  readonly #options: ScriptOptions;
  readonly #wishes = new Map<string, Wish>();
  #applies = 0;

  constructor(random: Random, options: ScriptOptions = {}) {
    this.#random = random;
    this.#options = options;
  }

  /** Changes something in a bundle's files. */
  change(): BundleRequest & { readonly what: string } {
    const bundle = this.anyBundle();
    const name = this.#random.pick(BUNDLES[bundle] ?? []);
    const what = this.#changeOne(name);
    return { bundle, request: this.#request(bundle), what: `${bundle}: ${name} ${what}` };
  }

  labelsOf(bundle: string): Record<string, string> {
    return { bundle };
  }

  anyBundle(): string {
    return this.#random.pick(Object.keys(BUNDLES));
  }

  bundleOf(name: string): string {
    return Object.keys(BUNDLES).find((bundle) => BUNDLES[bundle]?.includes(name)) ?? "";
  }

  /** Returns a service that a client has applied. */
  anyService(): string | undefined {
    const names = [...this.#wishes.keys()].filter((name) => !JOBS.has(name));
    return names.length === 0 ? undefined : this.#random.pick(names);
  }

  services(): string[] {
    return [...this.#wishes.keys()].filter((name) => !JOBS.has(name));
  }

  /** Deletes a bundle and its files. */
  forget(bundle: string): void {
    for (const name of BUNDLES[bundle] ?? []) this.#wishes.delete(name);
  }

  /** Returns a working version of all bundles, after which no rollout is blocked. */
  mend(): BundleRequest[] {
    for (const wish of this.#wishes.values()) wish.mend();
    const used = Object.keys(BUNDLES).filter((bundle) =>
      BUNDLES[bundle]?.some((name) => this.#wishes.has(name)),
    );
    return used.map((bundle) => ({ bundle, request: this.#request(bundle) }));
  }

  #changeOne(name: string): string {
    const wish = this.#wishes.get(name);
    if (wish === undefined) {
      const made = this.#make(name);
      this.#wishes.set(name, made);
      return `is new: ${made.words}`;
    }
    if (!this.#random.chance(0.08)) return wish.change();
    this.#wishes.delete(name);
    return "is left out";
  }

  #make(name: string): Wish {
    if (CRON_JOBS.has(name)) return new CronWish(name, this.#random);
    if (JOBS.has(name)) return new JobWish(name, this.#random);
    const probed = name === PROBED && this.#options.withProbesAndVolumes === true;
    return new ServiceWish(name, this.#random, probed);
  }

  #request(bundle: string): ApplyResourcesRequest {
    const wishes = (BUNDLES[bundle] ?? []).flatMap((name) => this.#wishes.get(name) ?? []);
    return ApplyResourcesRequest.fromPartial({
      applyId: `apply-${++this.#applies}`,
      namespace: NAMESPACE,
      resources: wishes.map((wish) => wish.resource()),
      labels: this.labelsOf(bundle),
    });
  }
}
