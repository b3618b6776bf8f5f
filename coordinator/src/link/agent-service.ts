import { AgentServiceService, ConnectResponse } from "@forage/proto/forage/agent/v1/agent";

/** What agents call. What is the same for all of them is encoded once and comes as bytes. */
export const SharedAgentService = {
  ...AgentServiceService,
  connect: {
    ...AgentServiceService.connect,
    responseSerialize: (value: ConnectResponse | Buffer): Buffer =>
      Buffer.isBuffer(value) ? value : Buffer.from(ConnectResponse.encode(value).finish()),
    responseDeserialize: (bytes: Buffer): ConnectResponse | Buffer => ConnectResponse.decode(bytes),
  },
} as const;
