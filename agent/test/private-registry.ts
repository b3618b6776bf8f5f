import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ReadableStream } from "node:stream/web";
import { CertificateAuthority } from "@forage/identity/ca";
import type { Registry } from "../../hack/lib/registry.ts";

export interface PrivateRegistry {
  readonly address: string;
  /** The credentials of clients in order: `name:password`, or an empty text. */
  readonly askers: readonly string[];
  close(): Promise<void>;
}

/** Serves `registry`'s content to clients with this name and password. */
export async function startPrivateRegistry(
  registry: Registry,
  login: { readonly username: string; readonly password: string },
): Promise<PrivateRegistry> {
  const askers: string[] = [];
  const server = createServer((request, response) => {
    const [, token = ""] = (request.headers.authorization ?? "").split(" ");
    const asker = Buffer.from(token, "base64").toString();
    askers.push(asker);
    if (asker === `${login.username}:${login.password}`) {
      passOn(registry, request, response).catch(() => response.destroy());
    } else {
      response.setHeader("www-authenticate", 'Basic realm="private"');
      response.writeHead(401).end();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    askers,
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

export interface TlsRegistry {
  readonly address: string;
  /** The PEM file of the authority that has signed its certificate. */
  readonly caFile: string;
  close(): Promise<void>;
}

/** Serves `registry`'s content by TLS, with a certificate of the authority in `caFile`. */
export async function startTlsRegistry(registry: Registry, caFile: string): Promise<TlsRegistry> {
  const authority = await CertificateAuthority.create("registry", { nowMs: Date.now, randomBytes });
  writeFileSync(caFile, authority.certPem);
  const { chainPem, keyPem } = await authority.issueServer({ dnsNames: [], ipAddresses: ["127.0.0.1"] });
  const server = createTlsServer({ cert: chainPem, key: keyPem }, (request, response) => {
    passOn(registry, request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    caFile,
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

async function passOn(registry: Registry, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { accept = "*/*" } = request.headers;
  const method = request.method ?? "GET";
  const answer = await fetch(`http://${registry.address}${request.url}`, { method, headers: { accept } });
  for (const name of ["content-type", "content-length", "docker-content-digest"]) {
    const value = answer.headers.get(name);
    if (value !== null) response.setHeader(name, value);
  }
  response.writeHead(answer.status);
  if (answer.body === null || method === "HEAD") response.end();
  else await pipeline(Readable.fromWeb(answer.body as ReadableStream), response);
}
