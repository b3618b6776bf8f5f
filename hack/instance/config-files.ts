import { join } from "node:path";
import { stringify } from "yaml";
import {
  containerdNamespace,
  type Instance,
  type InstanceWorkspaces,
  instancePaths,
  instanceRunDir,
  writeIfChanged,
} from "./instance.ts";
import { virtualIpsBeside } from "./pod-cidr.ts";

/** Writes the configuration of coordinator, agent and CLI, and returns the content of the daemons' files. */
export function writeConfigFiles(instance: Instance): { coordinator: string; agent: string } {
  const paths = instancePaths(instance.dataDir);
  const coordinator = stringify({
    dataDir: paths.coordinatorData,
    grpc: { listen: instance.grpc },
    http: { listen: instance.http },
    destination: { listen: instance.destination },
    adminTokenFile: paths.adminToken,
    ...(instance.etcd && { store: { etcd: { endpoints: [`http://${instance.etcd.client}`] } } }),
    services: { virtualIps: virtualIpsBeside(instance.podCidr) },
    // Routes with TLS then work at once, for clients that trust `forage certificate ca`.
    ...(instance.gateway && { certificates: { issuer: "self-signed" } }),
    ...(instance.workspaces && { workspaces: workspacesOf(instance.workspaces) }),
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
    ...(instance.workspaces && { workspaces: { enabled: true } }),
    ...(instance.gateway && { gateway: { address: "127.0.0.1", ...instance.gateway } }),
  });
  const cli = stringify({ server: instance.grpc, caFile: paths.ca, tokenFile: paths.adminToken });
  writeIfChanged(paths.coordinatorConfig, coordinator, 0o644);
  writeIfChanged(paths.agentConfig, agent, 0o644);
  writeIfChanged(paths.cliConfig, cli, 0o644);
  return { coordinator, agent };
}

/** Keeps the container of any image running, so images without an editor can be tried. */
const COMMAND = ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done"];

/** Returns the settings of workspaces. Browsers and curl resolve all names below localhost to this machine. */
function workspacesOf({ ingressPort, sshPort }: InstanceWorkspaces): object {
  return {
    enabled: true,
    host: "localhost",
    ingressPort,
    urlTemplate: "http://{{.Prefix}}.ws.{{.Host}}:{{.IngressPort}}",
    portUrlTemplate: "http://{{.WorkspacePort}}-{{.Prefix}}.ws.{{.Host}}:{{.IngressPort}}",
    command: COMMAND,
    ingress: { listen: `127.0.0.1:${ingressPort}` },
    ssh: { listen: `127.0.0.1:${sshPort}` },
  };
}
