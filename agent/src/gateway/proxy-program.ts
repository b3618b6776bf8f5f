/** The proxy as an independent process, which runs without the agent and doesn't end with it. */
export interface ProxyProgram {
  /** The proxy's name in messages: a program's path or an image. */
  readonly name: string;
  /** Reports whether the proxy runs, started by this or an earlier agent. */
  isRunning(): Promise<boolean>;
  /** Starts the proxy. Rejects with an error that includes what to do. */
  start(): Promise<void>;
  /** Ends the proxy, by force if necessary. Resolves when it has ended. */
  kill(): Promise<void>;
  /** Returns the end of the proxy's log of problems. */
  lastWords(): Promise<string>;
  /** Calls the listener when the proxy's end is detected without polling. Returns a function that unsubscribes. */
  onExit(listener: () => void): () => void;
}
