/**
 * Called when a session with a pod begins. Returns a function that is called once when the session ends. Undefined: the
 * observer ignores the pod.
 */
export type BeginUse = (pod: UsedPod) => (() => void) | undefined;

export interface UsedPod {
  readonly name: string;
  readonly uid: string;
}

/**
 * Notifies observers which pods are used by commands, copied files and forwarded ports. Reading logs is no use of a pod.
 */
export class PodUse {
  readonly #observers = new Set<BeginUse>();

  /** Adds an observer of new sessions. Returns a function that removes it. */
  observe(begin: BeginUse): () => void {
    this.#observers.add(begin);
    return () => void this.#observers.delete(begin);
  }

  /** Begins a session. Returns a function that ends it, which may be called repeatedly. */
  begin({ name, uid }: UsedPod): () => void {
    const ends = [...this.#observers].flatMap((begin) => begin({ name, uid }) ?? []);
    return () => {
      for (const end of ends.splice(0)) end();
    };
  }
}
