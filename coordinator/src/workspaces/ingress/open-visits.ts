/** A request or a WebSocket that is open. */
export interface OpenVisit {
  /** Whether the visitor may still reach the workspace. */
  readonly isAllowed: () => boolean;
  /** Ends the connection at once. */
  readonly cut: () => void;
}

/** The open visits by workspace. Those that a change forbids are cut. */
export class OpenVisits {
  readonly #visits = new Map<string, Set<OpenVisit>>();

  /** Returns how to remove the visit. */
  add(instanceId: string, visit: OpenVisit): () => void {
    const visits = this.#visits.get(instanceId) ?? new Set();
    this.#visits.set(instanceId, visits);
    visits.add(visit);
    return () => {
      visits.delete(visit);
      if (visits.size === 0 && this.#visits.get(instanceId) === visits) this.#visits.delete(instanceId);
    };
  }

  /** Cuts the visits of the workspace that are no longer allowed. */
  recheck(instanceId: string): void {
    for (const visit of this.#visits.get(instanceId) ?? []) if (!visit.isAllowed()) visit.cut();
  }
}
