import { readFileSync } from "node:fs";
import { argv, stdout } from "node:process";
import { bearerMetadata, channelCredentials } from "@forage/identity/credentials";
import { DestinationService, Update } from "@forage/proto/destination";
import { Client } from "@grpc/grpc-js";

/*
 * A client of Destination, for tests. It runs in the network of the hosts until SIGTERM:
 *   follow-endpoints.ts ADDRESS PORT PATH CA_FILE TOKEN_FILE
 * For each update it prints a line with the endpoints that it then has, as JSON: `{"atMs": …, "endpoints": ["192.0.2.1:80", …]}`, with
 * the time in ms since 1970. Ends with 1 and the reason when the stream ends.
 */

/** A printed line. */
export interface SeenEndpoints {
  readonly atMs: number;
  readonly endpoints: readonly string[];
}

type Address = NonNullable<Extract<Update["update"], { $case: "remove" }>["value"]["addrs"][number]>;

function follow([address = "", port = "", path = "", caFile = "", tokenFile = ""]: readonly string[]): void {
  const metadata = bearerMetadata(readFileSync(tokenFile, "utf8").trim());
  const client = new Client(
    `${address}:${port}`,
    channelCredentials({ caPem: readFileSync(caFile, "utf8") }),
  );
  const { path: method, requestSerialize } = DestinationService.get;
  const request = { scheme: "", path, contextToken: "" };
  const call = client.makeServerStreamRequest(
    method,
    requestSerialize,
    (bytes) => Update.decode(bytes),
    request,
    metadata,
  );
  const present = new Set<string>();
  call.on("data", (update: Update) => {
    apply(update, present);
    const line: SeenEndpoints = { atMs: Date.now(), endpoints: [...present].sort() };
    stdout.write(`${JSON.stringify(line)}\n`);
  });
  call.on("error", (error: Error) => {
    console.error(error.message);
    process.exit(1);
  });
}

function apply({ update }: Update, present: Set<string>): void {
  if (update?.$case === "add")
    for (const { addr } of update.value.addrs) if (addr !== undefined) present.add(textOf(addr));
  if (update?.$case === "remove") for (const addr of update.value.addrs) present.delete(textOf(addr));
  if (update?.$case === "noEndpoints") present.clear();
}

function textOf({ ip, port }: Address): string {
  if (ip?.ip?.$case !== "ipv4") return `?:${port}`;
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(ip.ip.value >>> 0);
  return `${bytes.join(".")}:${port}`;
}

if (import.meta.main) follow(argv.slice(2));
