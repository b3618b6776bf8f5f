import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { run } from "../lib/run.ts";
import { spawnProgram } from "../lib/spawn-program.ts";
import type { SeenEndpoints } from "./follow-endpoints.ts";
import type { LabFleet } from "./lab-fleet.ts";
import { NAMESPACE } from "./lab-scene.ts";

/** A client that follows a service's endpoints through the coordinator. */
export interface EndpointStream {
  /** Waits until all endpoints are on other hosts. Returns the time of the first such update, in ms since 1970. */
  withoutHost(host: string): Promise<number>;
  end(): Promise<void>;
}

const FOLLOWER = join(import.meta.dirname, "follow-endpoints.ts");
const CA_FILE = "/var/lib/forage/coordinator/ca.crt";
const END_GRACE_MS = 1_000;

/** Starts a client with a token for look-ups, like a proxy beside the hosts. Resolves once it has `count` endpoints. */
export async function followEndpoints(
  fleet: LabFleet,
  service: string,
  count: number,
): Promise<EndpointStream> {
  const { lab, scene } = fleet;
  const dir = lab.path("destination");
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const [caFile, tokenFile] = [join(dir, "ca.pem"), join(dir, "token")];
  const save = (path: string, text: string): Promise<unknown> =>
    run("sh", ["-c", 'umask 077 && cat > "$0"', path], { input: text });
  const create = `forage token create --role destination-reader --namespace ${NAMESPACE} --ttl 1d`;
  await save(tokenFile, await fleet.onHost("coordinator", create));
  await save(caFile, await fleet.onHost("coordinator", `cat ${CA_FILE}`));
  const path = `${service}.${NAMESPACE}.svc.cluster.local:80`;
  const [file = "", ...args] = lab.besideCommand([
    ...[process.execPath, FOLLOWER, lab.coordinator.address, "7600", path, caFile, tokenFile],
  ]);
  const program = spawnProgram(file, args, { logPath: join(dir, "log") });
  let hasEnded = false;
  void program.exited.then(() => {
    hasEnded = true;
  });
  const seen = (): readonly SeenEndpoints[] => {
    const text = program.readLog();
    if (hasEnded) throw new Error(`the stream of endpoints ended: ${text}`);
    // Node's warnings are between the lines of output.
    const lines = text.split("\n").slice(0, -1);
    return lines.filter((line) => line.startsWith("{")).map((line) => JSON.parse(line) as SeenEndpoints);
  };
  const end = (): Promise<void> => program.end(END_GRACE_MS);
  try {
    await scene.until(`${count} endpoints are there`, async () => seen().at(-1)?.endpoints.length === count);
  } catch (error) {
    await end();
    throw error;
  }
  return {
    end,
    withoutHost: (host) => {
      const own = `${lab.host(host).address}:`;
      const isOther = ({ endpoints }: SeenEndpoints): boolean =>
        endpoints.length > 0 && endpoints.every((endpoint) => !endpoint.startsWith(own));
      return scene.until(`the stream has no endpoint of ${host}`, async () => {
        const all = seen();
        if (!all.some(({ endpoints }) => endpoints.some((endpoint) => endpoint.startsWith(own))))
          throw new Error(`the stream never had an endpoint of ${host}`);
        const last = all.findLastIndex((each) => !isOther(each));
        return all[last + 1]?.atMs;
      });
    },
  };
}
