import type { FakeNetworkHost } from "../src/network/fake.ts";

/** Returns the rules of a simulated host in the form of the contract: `tcp 21000` to `10.0.0.2 80`. */
export function publishedBy({ published, sandboxes }: FakeNetworkHost): ReadonlyMap<string, string> {
  const rules = [...published].flatMap(([uid, mappings]) =>
    mappings.map(({ protocol, hostPort, containerPort, hostIp }): [string, string] => [
      `${hostIp === undefined ? "" : `${hostIp} `}${protocol.toLowerCase()} ${hostPort}`,
      `${sandboxes.get(uid)?.address} ${containerPort}`,
    ]),
  );
  return new Map(rules);
}
