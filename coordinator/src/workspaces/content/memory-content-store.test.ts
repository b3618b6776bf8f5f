import { contentStoreConformance } from "./conformance.ts";
import { MemoryContentStore } from "./memory-content-store.ts";

contentStoreConformance("memory", async () => ({
  store: new MemoryContentStore({ nowMs: () => 1_000 }),
  dispose: async () => {},
}));
