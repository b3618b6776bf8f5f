import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import grpc from "@grpc/grpc-js";

// The target of the probes is a separate process, so only the probing is measured.

const SERVING = Buffer.from([0x08, 1]);
const HOST = "127.0.0.1";

const raw = (bytes: Buffer) => bytes;
const check = {
  path: "/grpc.health.v1.Health/Check",
  requestStream: false,
  responseStream: false,
  requestSerialize: raw,
  requestDeserialize: raw,
  responseSerialize: raw,
  responseDeserialize: raw,
} as const;

const http = createServer((_, response) => response.end("ok\n")).listen(0, HOST, () => {
  const server = new grpc.Server();
  const answer: grpc.handleUnaryCall<Buffer, Buffer> = (_, callback) => callback(null, SERVING);
  server.addService({ check }, { check: answer });
  server.bindAsync(`${HOST}:0`, grpc.ServerCredentials.createInsecure(), (error, port) => {
    if (error) throw error;
    process.send?.({ http: (http.address() as AddressInfo).port, grpc: port });
  });
});
process.on("disconnect", () => process.exit());
