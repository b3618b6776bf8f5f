import type { Config } from "../config.ts";
import { CoordinatorError } from "../errors.ts";
import { DEFAULT_TRUST_TOKENS_SECONDS } from "../store/index.ts";
import type { IdentifyOptions } from "./identify.ts";
import type { ServeOptions } from "./serve.ts";

export interface TokenTrustOptions {
  readonly config: Pick<Config, "store">;
  /** Returns the milliseconds since this coordinator last received anything from the store. */
  readonly silentMs: () => number;
}

/**
 * Refuses tokens once this coordinator has received nothing from the store for too long, because it
 * may have missed a revocation. This applies to calls that it serves itself; the leader checks the
 * calls that it passes on.
 */
export class TokenTrust {
  readonly #silentMs: () => number;
  readonly #limitSeconds: number;

  constructor({ config, silentMs }: TokenTrustOptions) {
    this.#silentMs = silentMs;
    this.#limitSeconds = config.store.etcd?.trustTokensSeconds ?? DEFAULT_TRUST_TOKENS_SECONDS;
  }

  /**
   * Wraps an `identify` function for gRPC. The result throws UNAVAILABLE for a token that may have
   * been revoked.
   */
  identifying(identify: ServeOptions["identify"]): ServeOptions["identify"] {
    return (call) => {
      const caller = identify(call);
      if (caller.tokenId !== undefined) this.#assertNews();
      return caller;
    };
  }

  /** Wraps the lookup of tokens for HTTP, with the same refusal. */
  finding(identify: IdentifyOptions): IdentifyOptions {
    return {
      ...identify,
      findToken: (id) => {
        const found = identify.findToken(id);
        if (found !== undefined) this.#assertNews();
        return found;
      },
    };
  }

  #assertNews(): void {
    const seconds = Math.round(this.#silentMs() / 1000);
    if (seconds <= this.#limitSeconds) return;
    throw new CoordinatorError(
      "UNAVAILABLE",
      `this coordinator has received no answer from etcd for ${seconds} s, so the token may have been revoked: use another coordinator, or try again (store.etcd.trustTokensSeconds is ${this.#limitSeconds})`,
    );
  }
}
