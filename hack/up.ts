import { join } from "node:path";
import { bringUp } from "./instance/bring-up.ts";
import { parseUpFlags } from "./instance/flags.ts";
import { type InstanceGateway, type InstanceWorkspaces, instancePaths } from "./instance/instance.ts";
import { describeFailure, showProgress } from "./instance/progress.ts";
import { SetupError } from "./lib/setup-error.ts";

const stop = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.on(signal, () => stop.abort(new Error(`stopped by ${signal}`)));
const color = process.stderr.isTTY === true && !process.env.NO_COLOR;
const progress = showProgress(
  (line) => console.error(line),
  color,
  () => performance.now(),
);

try {
  const flags = parseUpFlags(process.argv.slice(2), process.env.FORAGE_START_DIR ?? process.cwd());
  const root = join(import.meta.dirname, "..");
  const { instance, example } = await bringUp({ root, flags, progress, signal: stop.signal });
  const paths = instancePaths(instance.dataDir);
  if (flags.json) {
    const { grpc, http, destination, nodeName, gateway, workspaces } = instance;
    const answer = {
      grpc,
      http,
      destination,
      ...(gateway && {
        gateway: `127.0.0.1:${gateway.httpPort}`,
        gatewayTls: `127.0.0.1:${gateway.httpsPort}`,
      }),
      ...(workspaces && {
        ingress: `127.0.0.1:${workspaces.ingressPort}`,
        ssh: `127.0.0.1:${workspaces.sshPort}`,
      }),
      ca: paths.ca,
      token: paths.adminToken,
      node: nodeName,
      data: instance.dataDir,
    };
    console.log(JSON.stringify(answer));
  } else {
    console.log(`
Forage runs here: gRPC ${instance.grpc}, HTTP http://${instance.http}, Destination ${instance.destination}${gatewayText(instance.gateway)}${workspacesText(instance.workspaces)}
${example ? `\n  curl http://${example.address}\n  ${example.answer}\n` : ""}
  export FORAGE_CONFIG=${paths.cliConfig}
  ${join(root, "hack", "forage")} ${example ? "get pods --namespace hello" : "node ls"}

Logs are in ${paths.logs}. Remove it all: sudo ${join(root, "hack", "down")}${dataFlag(instance.dataDir)}`);
  }
} catch (error) {
  console.error(describeFailure(error));
  process.exitCode = error instanceof SetupError && error.code === "BAD_USAGE" ? 2 : 1;
}

function gatewayText(gateway: InstanceGateway | undefined): string {
  if (gateway === undefined) return "";
  return `\nRoutes are served on 127.0.0.1, port ${gateway.httpPort} and, with a certificate, ${gateway.httpsPort}`;
}

function workspacesText(workspaces: InstanceWorkspaces | undefined): string {
  if (workspaces === undefined) return "";
  const { ingressPort, sshPort } = workspaces;
  return `\nWorkspaces are served on http://….ws.localhost:${ingressPort} and, by SSH, on 127.0.0.1, port ${sshPort}`;
}

function dataFlag(dataDir: string): string {
  return dataDir === "/var/lib/forage-dev" ? "" : ` --data ${dataDir}`;
}
