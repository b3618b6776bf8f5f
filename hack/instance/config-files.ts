import { join } from "node:path";
import { stringify } from "yaml";
import {
  containerdNamespace,
  type Instance,
  instancePaths,
  instanceRunDir,
  writeIfChanged,
} from "./instance.ts";
import { virtualIpsBeside } from "./pod-cidr.ts";

/** Writes the configuration of coordinator, agent and CLI, and gives back what the daemons' files hold. */
export function writeConfigFiles(instance: Instance): { coordinator: string; agent: string } {
  const paths = instancePaths(instance.dataDir);
  const coordinator = stringify({
    dataDir: paths.coordinatorData,
    grpc: { listen: instance.grpc },
    http: { listen: instance.http },
    destination: { listen: instance.destination },
    adminTokenFile: paths.adminToken,
    services: { virtualIps: virtualIpsBeside(instance.podCidr) },
    // So that routes with TLS work at once, for who trusts `forage certificate ca`.
    ...(instance.gateway && { certificates: { issuer: "self-signed" } }),
  });
  const agent = stringify({
    dataDir: paths.agentData,
    runDir: join(instanceRunDir(instance.id), "agent"),
    coordinator: instance.grpc,
    joinTokenFile: paths.joinToken,
    nodeName: instance.nodeName,
    instance: instance.id,
    podCidr: instance.podCidr,
    containerd: { address: instance.containerd.address, namespace: containerdNamespace(instance.id) },
    nerdctl: instance.nerdctl,
    cniBinDir: instance.cniBinDir,
    http: { listen: instance.agentHttp },
    hostPortRange: instance.hostPortRange,
    advertiseAddress: instance.advertiseAddress,
    ...(instance.gateway && { gateway: { address: "127.0.0.1", ...instance.gateway } }),
  });
  const cli = stringify({ server: instance.grpc, caFile: paths.ca, tokenFile: paths.adminToken });
  writeIfChanged(paths.coordinatorConfig, coordinator, 0o644);
  writeIfChanged(paths.agentConfig, agent, 0o644);
  writeIfChanged(paths.cliConfig, cli, 0o644);
  return { coordinator, agent };
}
