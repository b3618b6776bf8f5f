/** A request or a WebSocket that is open. */
export interface OpenVisit {
  /** Reports whether the visitor may still reach the workspace. */
  readonly isAllowed: () => boolean;
  /** Closes the connection at once. */
  readonly cut: () => void;
}

/** Tracks the open visits of each workspace, and closes those that a change forbids. */
export class OpenVisits {
  readonly #visits = new Map<string, Set<OpenVisit>>();

  /** Adds a visit. Returns a function that removes it. */
  add(instanceId: string, visit: OpenVisit): () => void {
    const visits = this.#visits.get(instanceId) ?? new Set();
    this.#visits.set(instanceId, visits);
    visits.add(visit);
    return () => {
      visits.delete(visit);
      if (visits.size === 0 && this.#visits.get(instanceId) === visits) this.#visits.delete(instanceId);
    };
  }

  /** Closes the visits of the workspace that are no longer allowed. */
  recheck(instanceId: string): void {
    for (const visit of this.#visits.get(instanceId) ?? []) if (!visit.isAllowed()) visit.cut();
  }
}
