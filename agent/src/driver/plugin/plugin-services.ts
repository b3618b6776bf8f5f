import { HealthCheckResponse_ServingStatus, HealthService } from "@forage/proto/grpc/health/v1/health";
import { type ConnInfo, GRPCBrokerService } from "@forage/proto/plugin/broker";
import { GRPCControllerService } from "@forage/proto/plugin/controller";
import { GRPCStdioService } from "@forage/proto/plugin/stdio";
import {
  type Server,
  type ServerDuplexStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type sendUnaryData,
  status,
} from "@grpc/grpc-js";

/** The service name that go-plugin queries, and the empty name, which means the whole server. */
const HEALTHY_SERVICES: readonly string[] = ["", "plugin"];
const { SERVING, SERVICE_UNKNOWN } = HealthCheckResponse_ServingStatus;

/** Registers grpc.health.v1.Health. */
export function addHealthService(server: Server): void {
  server.addService(HealthService, {
    check(call: ServerUnaryCall<{ service: string }, unknown>, callback: sendUnaryData<{ status: number }>) {
      if (HEALTHY_SERVICES.includes(call.request.service)) callback(null, { status: SERVING });
      else callback({ code: status.NOT_FOUND, details: "unknown service" });
    },
    /** The stream stays open without further messages, because the state never changes while the process runs. */
    watch(call: ServerWritableStream<{ service: string }, { status: number }>) {
      endWithCaller(call);
      call.write({ status: HEALTHY_SERVICES.includes(call.request.service) ? SERVING : SERVICE_UNKNOWN });
    },
  });
}

/**
 * Registers the services by which a host of go-plugin's protocol controls a plugin. The plugin neither opens
 * connections of its own nor writes to stdout, so the broker and the stdio stream send nothing.
 */
export function addPluginServices(server: Server, onShutdown: () => void): void {
  server.addService(GRPCControllerService, {
    shutdown(_call: ServerUnaryCall<unknown, unknown>, callback: sendUnaryData<object>) {
      callback(null, {});
      onShutdown();
    },
  });
  server.addService(GRPCStdioService, {
    streamStdio: (call: ServerWritableStream<unknown, unknown>) => endWithCaller(call),
  });
  server.addService(GRPCBrokerService, {
    startStream(call: ServerDuplexStream<ConnInfo, ConnInfo>) {
      endWithCaller(call);
      call.on("data", ({ serviceId, knock }: ConnInfo) => {
        if (knock?.knock) call.write(refuseKnock(serviceId));
      });
      call.on("end", () => call.end());
    },
  });
}

/** Answers a request to multiplex with an error, because the host would wait for an answer. */
function refuseKnock(serviceId: number): ConnInfo {
  const knock = { knock: true, ack: false, error: "this plugin does not multiplex connections" };
  return { serviceId, network: "", address: "", knock };
}

function endWithCaller(call: ServerWritableStream<never, never> | ServerDuplexStream<never, never>): void;
function endWithCaller(call: { on(event: string, run: () => void): unknown; end(): unknown }): void;
function endWithCaller(call: { on(event: string, run: () => void): unknown; end(): unknown }): void {
  call.on("cancelled", () => call.end());
  call.on("error", () => undefined);
}
