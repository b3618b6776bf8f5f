/** The proxy as a process of its own, which neither needs the agent to live nor ends with it. */
export interface ProxyProgram {
  /** The name for messages: a program's path or an image. */
  readonly name: string;
  /** Reports whether it runs, started by this agent or one before it. */
  isRunning(): Promise<boolean>;
  /** Rejects with an Error that says what to do if it can't be started. */
  start(): Promise<void>;
  /** Ends it, at once if it must be. Resolves when it is gone. */
  kill(): Promise<void>;
  /** Returns the end of the proxy's log of problems. */
  lastWords(): Promise<string>;
  /** Calls when it ends, as far as that can be known without looking. Returns how to stop. */
  onExit(listener: () => void): () => void;
}
