/** The most tokens in one report. Others are reported after their next use. */
const MAX_TOKENS = 1_000;

/**
 * Collects the tokens of calls that this coordinator has served, for its next report to the leader,
 * which stores their last use.
 */
export class TokensUsed {
  readonly #ids = new Set<string>();

  /** Records a use. Must be called for verified tokens only. */
  used(id: string): void {
    if (this.#ids.size < MAX_TOKENS) this.#ids.add(id);
  }

  drain(): string[] {
    const ids = [...this.#ids];
    this.#ids.clear();
    return ids;
  }
}
