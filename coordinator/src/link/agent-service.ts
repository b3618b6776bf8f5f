import { AgentServiceService, ConnectResponse } from "@forage/proto/forage/agent/v1/agent";

/**
 * The agents' service, whose streams accept encoded messages. Messages that are the same for all agents are encoded once.
 */
export const SharedAgentService = {
  ...AgentServiceService,
  connect: {
    ...AgentServiceService.connect,
    responseSerialize: (value: ConnectResponse | Buffer): Buffer =>
      Buffer.isBuffer(value) ? value : Buffer.from(ConnectResponse.encode(value).finish()),
    responseDeserialize: (bytes: Buffer): ConnectResponse | Buffer => ConnectResponse.decode(bytes),
  },
} as const;
