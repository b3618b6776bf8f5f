import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { systemClock } from "@forage/common/clock";
import type { NodeId } from "@forage/identity";
import { AgentServiceClient } from "@forage/proto/forage/agent/v1/agent";
import { credentials, Server, ServerCredentials } from "@grpc/grpc-js";
import { pino } from "pino";
import { SharedAgentService } from "../coordinator/src/link/agent-service.ts";
import { serve } from "../coordinator/src/rpc/serve.ts";
import type { Handler } from "./fleet/stream.ts";
import { type TransportUnderTest, testAgentTransport } from "./transport-contract.ts";

testAgentTransport("gRPC over HTTP/2", async (t) => {
  const servers = new RealServers(t);
  return {
    clock: systemClock,
    openClient: () => servers.openClient(),
    serve: (handler) => servers.serve(handler),
    die: () => servers.die(),
  } satisfies TransportUnderTest;
});

/** A port on which no program listens. */
const CLOSED_PORT = 1;

/** Servers of the agents' service, one after another. */
class RealServers {
  #server: Server | undefined;
  #port = CLOSED_PORT;

  constructor(t: TestContext) {
    t.after(() => this.die());
  }

  openClient(): AgentServiceClient {
    return new AgentServiceClient(`127.0.0.1:${this.#port}`, credentials.createInsecure(), {
      "grpc.enable_retries": 0,
      "grpc.use_local_subchannel_pool": 1,
    });
  }

  async serve(handler: Handler): Promise<void> {
    const server = new Server();
    serve(
      server,
      { connect: SharedAgentService.connect },
      {
        connect: (requests, { signal, sendNow }) => {
          assert.ok(sendNow);
          return handler(requests, signal, sendNow);
        },
      },
      {
        identify: () => ({ type: "node", nodeId: "n1" as NodeId }),
        stopping: new AbortController().signal,
        log: pino({ level: "silent" }),
        monotonicMs: systemClock.monotonicMs,
      },
    );
    this.#server = server;
    this.#port = await new Promise<number>((resolve, reject) => {
      server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, port) =>
        error === null ? resolve(port) : reject(error),
      );
    });
  }

  die(): void {
    this.#server?.forceShutdown();
    this.#server = undefined;
    this.#port = CLOSED_PORT;
  }
}
