import { conformance } from "../conformance.ts";
import { createMemoryStore } from "./memory-store.ts";

conformance("memory", async (options) => ({
  store: createMemoryStore(options),
  dispose: async () => {},
}));
