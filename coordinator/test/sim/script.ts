import { ApplyResourcesRequest } from "@forage/proto/forest/v1/forage";
import type { Random } from "../support/random.ts";
import { CronWish } from "./cron-wish.ts";
import { JobWish } from "./job-wish.ts";
import { ServiceWish } from "./service-wish.ts";
import type { Wish } from "./wish.ts";

export interface BundleRequest {
  readonly bundle: string;
  readonly request: ApplyResourcesRequest;
}

export const namespace = "shop";

/** Each bundle is applied as a whole; what it names no more is removed. */
const bundles: Readonly<Record<string, readonly string[]>> = {
  front: ["web", "api"],
  back: ["worker"],
  tasks: ["import", "report", "nightly"],
};
const jobs: ReadonlySet<string> = new Set(bundles.tasks);
const cronJobs: ReadonlySet<string> = new Set(["nightly"]);

/** Operators' files, changed by chance, and the requests that they make of them. */
export class Script {
  readonly #random: Random;
  readonly #wishes = new Map<string, Wish>();
  #applies = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  /** Something is changed in a bundle's files. */
  change(): BundleRequest & { readonly what: string } {
    const bundle = this.anyBundle();
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

  bundleOf(name: string): string {
    return Object.keys(bundles).find((bundle) => bundles[bundle]?.includes(name)) ?? "";
  }

  /** A service that has been asked for. */
  anyService(): string | undefined {
    const names = [...this.#wishes.keys()].filter((name) => !jobs.has(name));
    return names.length === 0 ? undefined : this.#random.pick(names);
  }

  services(): string[] {
    return [...this.#wishes.keys()].filter((name) => !jobs.has(name));
  }

  /** It is deleted, and its files with it. */
  forget(bundle: string): void {
    for (const name of bundles[bundle] ?? []) this.#wishes.delete(name);
  }

  /** Everything as it can work: after it nothing stands in the way of any rollout. */
  mend(): BundleRequest[] {
    for (const wish of this.#wishes.values()) wish.mend();
    const used = Object.keys(bundles).filter((bundle) =>
      bundles[bundle]?.some((name) => this.#wishes.has(name)),
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
    if (cronJobs.has(name)) return new CronWish(name, this.#random);
    return jobs.has(name) ? new JobWish(name, this.#random) : new ServiceWish(name, this.#random);
  }

  #request(bundle: string): ApplyResourcesRequest {
    const wishes = (bundles[bundle] ?? []).flatMap((name) => this.#wishes.get(name) ?? []);
    return ApplyResourcesRequest.fromPartial({
      applyId: `apply-${++this.#applies}`,
      namespace,
      resources: wishes.map((wish) => wish.resource()),
      labels: this.labelsOf(bundle),
    });
  }
}
