import assert from "node:assert/strict";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { Browser } from "./dashboard-browser.ts";

interface Target {
  readonly namespace: string;
  readonly pod: string;
  readonly port: number;
}

/** A browser that has opened a port of a pod in the dashboard. */
export class PodPortVisitor {
  readonly #host: string;
  readonly #cookie: string;

  /** Logs in to the coordinator, given as HOST:PORT, opens the port there, and opens its first address. */
  static async open(http: string, token: string, target: Target): Promise<PodPortVisitor> {
    const browser = new Browser(portOf(http));
    assert.equal((await browser.login(token)).status, 200);
    const opened = await browser.post("ports", target);
    const { url } = (await opened.json()) as { readonly url: string };
    const { hostname, pathname, search } = new URL(url);
    const entered = await get(http, `${pathname}${search}`, { host: hostname });
    assert.equal(entered.statusCode, 303);
    const [cookie = ""] = entered.headers["set-cookie"]?.[0]?.split(";") ?? [];
    return new PodPortVisitor(hostname, cookie);
  }

  private constructor(host: string, cookie: string) {
    this.#host = host;
    this.#cookie = cookie;
  }

  /** Requests the page of the port through a coordinator. */
  async visit(http: string): Promise<{ readonly status: number | undefined; readonly body: string }> {
    const response = await get(http, "/", { host: this.#host, cookie: this.#cookie });
    let body = "";
    for await (const chunk of response) body += String(chunk);
    return { status: response.statusCode, body };
  }
}

async function get(http: string, path: string, headers: Readonly<Record<string, string>>) {
  const sent = request({ host: "127.0.0.1", port: portOf(http), path, headers, agent: false }).end();
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  return response;
}

function portOf(http: string): number {
  return Number(http.split(":").at(-1));
}
