/** Called when a session with a pod begins. Returns how to end it, which is called once; undefined: the pod doesn't matter. */
export type BeginUse = (pod: UsedPod) => (() => void) | undefined;

export interface UsedPod {
  readonly name: string;
  readonly uid: string;
}

/** Passes on which pods people use by commands, copied files and forwarded ports. Logs are no use of a pod. */
export class PodUse {
  readonly #observers = new Set<BeginUse>();

  /** Adds an observer of sessions that begin from now on. Returns how to remove it. */
  observe(begin: BeginUse): () => void {
    this.#observers.add(begin);
    return () => void this.#observers.delete(begin);
  }

  /** Begins a session. Returns how to end it, once or more often. */
  begin({ name, uid }: UsedPod): () => void {
    const ends = [...this.#observers].flatMap((begin) => begin({ name, uid }) ?? []);
    return () => {
      for (const end of ends.splice(0)) end();
    };
  }
}
