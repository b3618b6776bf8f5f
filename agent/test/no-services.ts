import type { ServiceNetwork } from "../src/service-network.ts";

/** Accepts everything and does nothing, for tests in which services don't matter. */
export class NoServices implements ServiceNetwork {
  taken = 0;

  async start(): Promise<void> {}
  problems(): readonly string[] {
    return [];
  }
  networks(): readonly string[] {
    return [];
  }
  restart(): () => void {
    return () => undefined;
  }
  take(): void {
    this.taken++;
  }
  async close(): Promise<void> {}
}
