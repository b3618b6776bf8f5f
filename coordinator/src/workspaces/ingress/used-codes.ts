/** Codes that may be remembered at a time. Each lives for minutes, and a person makes a few. */
const MAX_CODES = 10_000;

/** Remembers one-time codes until they expire. */
export class UsedCodes {
  readonly #nowMs: () => number;
  readonly #expiresMs = new Map<string, number>();

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Returns false for a code that was used before, and when too many others were. */
  use(nonce: string, expiresMs: number): boolean {
    const nowMs = this.#nowMs();
    if (this.#expiresMs.size >= MAX_CODES)
      for (const [old, endsMs] of this.#expiresMs) if (endsMs <= nowMs) this.#expiresMs.delete(old);
    if (this.#expiresMs.has(nonce) || this.#expiresMs.size >= MAX_CODES) return false;
    this.#expiresMs.set(nonce, expiresMs);
    return true;
  }
}
