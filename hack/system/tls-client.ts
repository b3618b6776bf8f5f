import { once } from "node:events";
import { request as plainRequest } from "node:http";
import { Agent, request } from "node:https";
import { setTimeout as delay } from "node:timers/promises";
import type { TLSSocket } from "node:tls";

export interface SecurePlace {
  readonly hostname: string;
  /** The port on 127.0.0.1. */
  readonly port: number;
  /** The only trusted root, in PEM. */
  readonly ca: string;
}

export interface SecureAnswer {
  readonly status: number;
  readonly body: string;
  /** The serial number of the presented certificate. */
  readonly serial: string;
}

const ANSWER_LIMIT_MS = 10_000;

/** Sends one request on a new connection. Rejects if the certificate is for another hostname or from another root. */
export async function secureGet(place: SecurePlace): Promise<SecureAnswer> {
  const agent = new Agent({ keepAlive: false, maxCachedSessions: 0 });
  try {
    return await get(place, agent);
  } finally {
    agent.destroy();
  }
}

/** Sends one request in plain text. Redirects are not followed. */
export async function plainGet(
  hostname: string,
  port: number,
): Promise<{ readonly status: number; readonly location: string }> {
  const outgoing = plainRequest({ host: "127.0.0.1", port, headers: { host: hostname }, agent: false });
  outgoing.end();
  const [response] = await once(outgoing, "response");
  response.resume();
  return { status: response.statusCode, location: response.headers.location ?? "" };
}

/** Sends one request after another on a single connection. */
export class SteadyClient {
  readonly failures: string[] = [];
  readonly #place: SecurePlace;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  readonly #running: Promise<void>;
  #count = 0;
  #serial = "";
  #stopped = false;

  static async start(place: SecurePlace): Promise<SteadyClient> {
    const client = new SteadyClient(place);
    await client.answered(1);
    return client;
  }

  private constructor(place: SecurePlace) {
    this.#place = place;
    this.#running = this.#run();
  }

  /** The serial number of the certificate with which its connection was made. */
  get serial(): string {
    return this.#serial;
  }

  /** Waits for `more` further answers. */
  async answered(more: number): Promise<void> {
    const target = this.#count + more;
    const untilMs = performance.now() + 60_000;
    while (this.#count < target && this.failures.length === 0) {
      if (performance.now() > untilMs) throw new Error(`no ${more} answers within a minute`);
      await delay(20);
    }
  }

  stop(): void {
    this.#stopped = true;
    void this.#running.finally(() => this.#agent.destroy());
  }

  async #run(): Promise<void> {
    let port: number | undefined;
    while (!this.#stopped) {
      try {
        const { status, serial, localPort } = await get(this.#place, this.#agent);
        if (status !== 200) this.failures.push(`status ${status}`);
        if (port !== undefined && localPort !== port) this.failures.push("the connection was closed");
        port = localPort;
        this.#serial ||= serial;
        this.#count++;
      } catch (error) {
        this.failures.push(String(error));
        return;
      }
      await delay(10);
    }
  }
}

async function get(
  { hostname, port, ca }: SecurePlace,
  agent: Agent,
): Promise<SecureAnswer & { readonly localPort: number | undefined }> {
  const outgoing = request({
    host: "127.0.0.1",
    port,
    ca,
    agent,
    servername: hostname,
    headers: { host: hostname },
    timeout: ANSWER_LIMIT_MS,
  });
  outgoing.on("timeout", () => outgoing.destroy(new Error("no answer")));
  outgoing.end();
  const [response] = await once(outgoing, "response");
  const socket = response.socket as TLSSocket;
  const serial = socket.getPeerCertificate().serialNumber;
  const { localPort } = socket;
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return { status: response.statusCode, body: Buffer.concat(chunks).toString(), serial, localPort };
}
