import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** The backend's response, a hundred bytes. */
const body = "x".repeat(100);
const server = createServer((_, response) => response.end(body));
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1", () => process.send?.((server.address() as AddressInfo).port));
