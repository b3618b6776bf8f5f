import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export type RegistryMood =
  | { readonly type: "status"; readonly status: number }
  /** Accepts requests and never responds. */
  | { readonly type: "silent" }
  /** Serves an image with one layer that is sent in pieces, each when `next` resolves, and is never complete. */
  | { readonly type: "drip"; readonly next: () => Promise<void> };

/** A registry that misbehaves on demand. */
export interface StubRegistry {
  readonly address: string;
  /** The paths of all requests. */
  readonly requests: readonly string[];
  mood: RegistryMood;
  close(): Promise<void>;
}

const LAYER_BYTES = 50_000_000;
const PIECE = Buffer.alloc(1_000_000, "x");

export async function startStubRegistry(mood: RegistryMood): Promise<StubRegistry> {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`);
    answer(registry.mood, request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const registry: StubRegistry = {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    mood,
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
  return registry;
}

async function answer(mood: RegistryMood, request: IncomingMessage, response: ServerResponse): Promise<void> {
  switch (mood.type) {
    case "silent":
      return;
    case "status":
      if (mood.status === 401) response.setHeader("www-authenticate", 'Basic realm="x"');
      response.writeHead(mood.status).end();
      return;
    case "drip":
      return drip(mood.next, request, response);
    default:
      mood satisfies never;
  }
}

async function drip(
  next: () => Promise<void>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { manifest, config } = anImage();
  const url = request.url ?? "";
  if (url.includes("/manifests/")) {
    response.setHeader("content-type", "application/vnd.oci.image.manifest.v1+json");
    response.setHeader("docker-content-digest", digest(manifest));
    response.setHeader("content-length", manifest.length);
    response.end(request.method === "HEAD" ? undefined : manifest);
  } else if (url.endsWith(digest(config))) {
    response.end(config);
  } else {
    response.setHeader("content-length", LAYER_BYTES);
    for (let sent = 0; sent < LAYER_BYTES - PIECE.length && !response.destroyed; sent += PIECE.length) {
      response.write(PIECE);
      await next();
    }
  }
}

function anImage(): { readonly manifest: Buffer; readonly config: Buffer } {
  const layer = `sha256:${"0".repeat(64)}`;
  const config = Buffer.from(
    JSON.stringify({
      architecture: arch(),
      os: "linux",
      config: {},
      rootfs: { type: "layers", diff_ids: [layer] },
    }),
  );
  const manifest = {
    schemaVersion: 2,
    mediaType: "application/vnd.oci.image.manifest.v1+json",
    config: {
      mediaType: "application/vnd.oci.image.config.v1+json",
      digest: digest(config),
      size: config.length,
    },
    layers: [{ mediaType: "application/vnd.oci.image.layer.v1.tar", digest: layer, size: LAYER_BYTES }],
  };
  return { manifest: Buffer.from(JSON.stringify(manifest)), config };
}

function arch(): string {
  return process.arch === "x64" ? "amd64" : process.arch;
}

function digest(content: Buffer): string {
  return `sha256:${createHash("sha256").update(content).digest("hex")}`;
}
