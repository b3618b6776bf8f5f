import { createSocket } from "node:dgram";
import { Resolver } from "node:dns/promises";
import { existsSync } from "node:fs";
import { connect, isIPv6 } from "node:net";
import { argv, stdout } from "node:process";
import { setTimeout as delay } from "node:timers/promises";

/*
 * A client or server for tests. It runs in the network namespace of a pod or a host:
 *   ask tcp|udp ADDRESS PORT TIMES [OWN_PORT]   prints the answers, as a JSON list
 *   dns SERVER TYPE NAME                        prints the records, or the error's code, as JSON
 *   load ADDRESS PORT CLIENTS                   runs until SIGTERM, then prints a `LoadResult`
 *   endpoints ADDRESS PORT PATH                 prints the number of Destination's first endpoints, or the status' code, as JSON
 *   answer NAME PORT                            answers each UDP datagram with its name
 */

/** The result of requests until SIGTERM. */
export interface LoadResult {
  /** The number of each answer. */
  readonly answers: Readonly<Record<string, number>>;
  readonly answered: number;
  readonly failed: number;
  /** The descriptions of the first failures. */
  readonly failures: readonly string[];
  readonly slowestMs: number;
}

const PATIENCE_MS = 30_000;
/** The shorter time-out of requests that are repeated after one without an answer. */
const SHORT_PATIENCE_MS = 10_000;
/** The interval of repetition, because datagrams may get lost. */
const ASK_AGAIN_MS = 1_000;
/** The pause of each client after a request. Without one, some clients would take all processor time from what is tested. */
const LOAD_PAUSE_MS = 25;
const MAX_FAILURES = 20;

/** Returns the last line of the page at `/`, over a new connection. Rejects if the page is incomplete. */
function askByTcp(address: string, port: number, timeout: number): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    const request = "GET / HTTP/1.0\r\n\r\n";
    const socket = connect({ host: address, port, timeout }, () => socket.write(request));
    socket.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
    });
    socket.on("timeout", () => socket.destroy(new Error("silent")));
    socket.on("error", reject);
    socket.on("close", () => {
      const [head = "", body = ""] = text.split("\r\n\r\n");
      if (head.includes(" 200 ") && body.endsWith("\n")) resolve(body.trim());
      else reject(new Error(`cut short: ${JSON.stringify(text)}`));
    });
  });
}

function askByUdp(address: string, port: number, ownPort: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = createSocket(isIPv6(address) ? "udp6" : "udp4");
    const ask = (): void => socket.send("?", (error) => error && fail(error));
    const again = setInterval(ask, ASK_AGAIN_MS);
    const end = setTimeout(() => fail(new Error("silent")), SHORT_PATIENCE_MS);
    const close = (): void => {
      clearInterval(again);
      clearTimeout(end);
      socket.close();
    };
    const fail = (error: Error): void => {
      close();
      reject(error);
    };
    socket.once("error", fail);
    socket.once("message", (bytes) => {
      close();
      resolve(bytes.toString());
    });
    socket.bind(ownPort, () => socket.connect(port, address, ask));
  });
}

async function ask([protocol, address = "", port, times, ownPort]: readonly string[]): Promise<string[]> {
  const answers: string[] = [];
  for (let i = 0; i < Number(times); i++) {
    const answer =
      protocol === "udp"
        ? askByUdp(address, Number(port), Number(ownPort ?? 0))
        : askByTcp(address, Number(port), SHORT_PATIENCE_MS);
    answers.push(await answer.catch(codeOf));
  }
  return answers;
}

async function dns([server = "", type = "A", name = ""]: readonly string[]): Promise<unknown> {
  const resolver = new Resolver({ timeout: 5_000, tries: 4 });
  resolver.setServers([server]);
  return resolver.resolve(name, type).catch(codeOf);
}

async function load([address = "", port, clients]: readonly string[]): Promise<LoadResult> {
  const answers: Record<string, number> = {};
  const failures: string[] = [];
  let ended = false;
  let failed = 0;
  let slowestMs = 0;
  process.once("SIGTERM", () => {
    ended = true;
  });
  const client = async (): Promise<void> => {
    while (!ended) {
      const startMs = performance.now();
      try {
        const answer = await askByTcp(address, Number(port), PATIENCE_MS);
        answers[answer] = (answers[answer] ?? 0) + 1;
        slowestMs = Math.max(slowestMs, Math.round(performance.now() - startMs));
      } catch (error) {
        failed += 1;
        if (failures.length < MAX_FAILURES) failures.push(`${new Date().toISOString()} ${error}`);
      }
      await delay(LOAD_PAUSE_MS);
    }
  };
  stdout.write("started\n");
  await Promise.all(Array.from({ length: Number(clients) }, client));
  const answered = Object.values(answers).reduce((sum, count) => sum + count, 0);
  return { answers, answered, failed, failures, slowestMs };
}

function answer([name = "", port]: readonly string[]): void {
  const ipv6 = existsSync("/proc/net/if_inet6");
  const socket = createSocket(ipv6 ? "udp6" : "udp4");
  socket.on("message", (_, from) => socket.send(name, from.port, from.address));
  socket.bind(Number(port), ipv6 ? "::" : "0.0.0.0", () => stdout.write("started\n"));
}

/** Prints the number of endpoints. gRPC is loaded only here, because loading it takes longer than everything else. */
async function endpoints([address = "", port, path = ""]: readonly string[]): Promise<number | string> {
  const [{ Client, credentials, status }, { DestinationService, Update }] = await Promise.all([
    import("@grpc/grpc-js"),
    import("@forage/proto/destination"),
  ]);
  const client = new Client(`${address}:${port}`, credentials.createInsecure());
  const { path: method, requestSerialize } = DestinationService.get;
  const deadline = Date.now() + SHORT_PATIENCE_MS;
  const request = { scheme: "", path, contextToken: "" };
  const call = client.makeServerStreamRequest(method, requestSerialize, (bytes) => bytes, request, {
    deadline,
  });
  try {
    return await new Promise((resolve) => {
      call.on("data", (bytes: Buffer) => {
        const { update } = Update.decode(bytes);
        resolve(update?.$case === "add" ? update.value.addrs.length : 0);
      });
      call.on("error", (error: Error & { code?: number }) => resolve(status[error.code ?? 2] ?? "UNKNOWN"));
    });
  } finally {
    call.cancel();
    client.close();
  }
}

function codeOf(error: NodeJS.ErrnoException): string {
  return error.code ?? error.message;
}

if (import.meta.main) {
  const [what, ...rest] = argv.slice(2);
  const print = (value: unknown) => stdout.write(`${JSON.stringify(value)}\n`);
  if (what === "ask") print(await ask(rest));
  else if (what === "dns") print(await dns(rest));
  else if (what === "endpoints") print(await endpoints(rest));
  else if (what === "load") print(await load(rest));
  else if (what === "answer") answer(rest);
  else throw new RangeError(`ask, dns, endpoints, load or answer, not ${what}`);
}
