import { channelCredentials } from "@forage/identity/credentials";
import { WorkspaceNodeServiceClient } from "@forage/proto/forage/workspaces/v1/workspaces";
import type { AgentWorld, HollowAgent } from "../hollow-agent.ts";
import type { NodeTransport } from "./node-transport.ts";

/** Makes real calls with the certificate of the agent. The end of the world closes it. */
export function grpcNodeTransport(world: AgentWorld, { pair }: Pick<HollowAgent, "pair">): NodeTransport {
  const credentials = channelCredentials({ caPem: world.caPem, ...pair });
  const client = new WorkspaceNodeServiceClient(world.address, credentials);
  const transport: NodeTransport = {
    sync: ({ receive, fail }) => {
      const stream = client.sync();
      stream.on("data", receive);
      stream.on("error", fail);
      return { write: (request) => stream.write(request), cancel: () => stream.cancel() };
    },
    upload: (parts) =>
      new Promise((resolve, reject) => {
        const call = client.upload((error, response) => (error === null ? resolve(response) : reject(error)));
        for (const part of parts) call.write(part);
        call.end();
      }),
    close: () => client.close(),
  };
  world.atEnd(() => transport.close());
  return transport;
}
