import { Examination, type ExaminedPeer } from "@forage/proto/forage/agent/v1/agent";
import type { Config } from "../config.ts";
import { parsePodCidr } from "../network/pod-cidr.ts";
import { checkHost } from "../setup/check/check-host.ts";
import { type CheckedHost, type Finding, failure, ok } from "../setup/check/finding.ts";
import { examinePeer, type PeerProbes } from "./examine-peer.ts";

export interface ExamineOptions {
  readonly config: Config;
  readonly host: CheckedHost;
  readonly probes: PeerProbes;
}

/** The limit of examined peers. Each peer costs a few sockets, and they are examined concurrently within a few seconds. */
export const PEERS_MAX = 8;

/** Sends the host's clock at once, and then the findings about the host and its peers. */
export async function* examineHost(
  peers: readonly ExaminedPeer[],
  { config, host, probes }: ExamineOptions,
): AsyncGenerator<Examination> {
  const epochMs = host.nowMs();
  const at = { seconds: BigInt(Math.floor(epochMs / 1000)), nanos: Math.floor((epochMs % 1000) * 1e6) };
  yield Examination.fromPartial({ at });
  const { last } = config.hostPortRange;
  const [findings, podDns, found] = await Promise.all([
    checkHost(host, config),
    examinePodDns(host, config),
    Promise.all(peers.slice(0, PEERS_MAX).map((peer) => examinePeer(peer, last, probes))),
  ]);
  const all = [...findings, ...podDns].map(({ remedy = "", ...rest }) => ({ ...rest, remedy }));
  yield Examination.fromPartial({ findings: all, peers: found });
}

/** Sends a query to the name server of this host's pods, as pods do. */
async function examinePodDns(
  host: CheckedHost,
  { dns, podCidr, podCidr6 }: Pick<Config, "dns" | "podCidr" | "podCidr6">,
): Promise<Finding[]> {
  if (!dns) return [];
  const servers = [podCidr, ...(podCidr6 === undefined ? [] : [podCidr6])].map(
    (cidr) => parsePodCidr(cidr).gateway,
  );
  return Promise.all(
    servers.map(async (server) => ({
      check: "pod-dns",
      ...((await host.nameServerAnswers(server))
        ? ok(`the pods' name server ${server} answers`)
        : failure(
            `the pods' name server ${server} does not answer`,
            "query port 53 of the host from the host itself, and read the log of forage-agent: dns-not-served names a reason",
          )),
    })),
  );
}
