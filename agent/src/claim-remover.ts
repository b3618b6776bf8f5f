import { type BackOff, backOffMs } from "@forage/common/back-off";
import { withLinkedSignal } from "@forage/common/link-signals";
import type { Clock } from "./clock.ts";
import { pause } from "./clock.ts";
import type { PodVolumes } from "./volumes/volumes.ts";

export interface ClaimName {
  readonly namespace: string;
  readonly name: string;
}

export interface ClaimRemoverOptions {
  readonly clock: Clock;
  readonly volumes: Pick<PodVolumes, "removeClaim">;
  /** Called when the claim is removed completely. */
  readonly removed: (claim: ClaimName) => void;
  readonly failed: (claim: ClaimName, error: unknown) => void;
}

// A removal mostly fails because the claim's last pod is still ending.
const RETRY: BackOff = { baseMs: 1_000, capMs: 60_000 };

/**
 * Deletes claims with their data at the coordinator's request. It keeps no state, because the coordinator repeats the request
 * after each connect.
 */
export class ClaimRemover {
  readonly #options: ClaimRemoverOptions;
  readonly #removals = new Map<string, ClaimName>();
  #wake: (() => void) | undefined;
  /** Ends the pause after a failure when another claim is requested. One failing claim therefore delays no other. */
  #retryNow = new AbortController();

  constructor(options: ClaimRemoverOptions) {
    this.#options = options;
  }

  remove(claims: readonly ClaimName[]): void {
    for (const claim of claims) {
      const key = `${claim.namespace}/${claim.name}`;
      if (!this.#removals.has(key)) this.#retryNow.abort();
      this.#removals.set(key, claim);
    }
    this.#wake?.();
  }

  /** Removes claims until the signal aborts. Must not start before the volumes are recovered. */
  async run(signal: AbortSignal): Promise<void> {
    const wake = () => this.#wake?.();
    signal.addEventListener("abort", wake);
    for (let failures = 0; !signal.aborted; ) {
      this.#retryNow = new AbortController();
      const hurried = this.#retryNow.signal;
      failures = (await this.#removeAll(signal)) ? 0 : failures + 1;
      if (failures > 0) {
        const delayMs = backOffMs(failures, RETRY);
        await withLinkedSignal([signal, hurried], (either) => pause(this.#options.clock, delayMs, either));
      } else await this.#workAvailable(signal);
    }
    signal.removeEventListener("abort", wake);
  }

  /** Reports whether all claims are removed. */
  async #removeAll(signal: AbortSignal): Promise<boolean> {
    const { volumes, removed, failed } = this.#options;
    for (const [key, claim] of [...this.#removals]) {
      try {
        await volumes.removeClaim(claim.namespace, claim.name, signal);
        this.#removals.delete(key);
        removed(claim);
      } catch (error) {
        if (signal.aborted) return false;
        failed(claim, error);
      }
    }
    return this.#removals.size === 0;
  }

  async #workAvailable(signal: AbortSignal): Promise<void> {
    if (this.#removals.size > 0 || signal.aborted) return;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    this.#wake = undefined;
  }
}
