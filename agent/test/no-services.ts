import type { ServiceNetwork } from "../src/service-network.ts";

/** A service network that accepts everything and does nothing, for tests in which services are irrelevant. */
export class NoServices implements ServiceNetwork {
  applied = 0;

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
  apply(): void {
    this.applied++;
  }
  async close(): Promise<void> {}
}
