import { RuntimeError } from "./runtime.ts";

// Docker's grammar: https://pkg.go.dev/github.com/distribution/reference
const COMPONENT = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*";
const HOST =
  "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])(?:\\.(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9]))*";
const REFERENCE = new RegExp(
  `^(?:(?<domain>(?:${HOST}|\\[[a-fA-F0-9:]+\\])(?::[0-9]+)?)/)?(?<path>${COMPONENT}(?:/${COMPONENT})*)` +
    "(?::(?<tag>[\\w][\\w.-]{0,127}))?(?:@(?<digest>sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}))?$",
);
const NAME_MAX_LENGTH = 255;
const DEFAULT_DOMAIN = "docker.io";
const HUB_HOSTS: ReadonlySet<string> = new Set([
  "index.docker.io",
  "registry-1.docker.io",
  "registry.hub.docker.com",
]);

/**
 * Returns the full form of an image name, as it is stored: `busybox` becomes `docker.io/library/busybox:latest`.
 * Rejects with IMAGE_INVALID. Only full names may reach nerdctl, which also accepts `oci-archive://` (any tar file of
 * the host), `ipfs://` and prefixes of digests.
 */
export function normalizeImage(reference: string): string {
  const { domain, path, tag, digest } = parse(reference);
  const explicit =
    domain !== undefined &&
    (/[.:]/.test(domain) || domain === "localhost" || domain !== domain.toLowerCase());
  const host = !explicit ? DEFAULT_DOMAIN : domain === "index.docker.io" ? DEFAULT_DOMAIN : domain;
  const remainder = explicit || domain === undefined ? path : `${domain}/${path}`;
  const repository = host === DEFAULT_DOMAIN && !remainder.includes("/") ? `library/${remainder}` : remainder;
  const suffix = tag === undefined && digest === undefined ? ":latest" : tag === undefined ? "" : `:${tag}`;
  return `${host}/${repository}${suffix}${digest === undefined ? "" : `@${digest}`}`;
}

/**
 * Returns the SHA-256 digest at the end of a full name. Undefined if the name has none; it may then refer to another
 * image later.
 */
export function namedDigest(full: string): string | undefined {
  return /@(sha256:[0-9a-f]{64})$/.exec(full)?.[1];
}

/** Like `normalizeImage`, but returns a malformed name unchanged. The result then equals no image's name. */
export function fullForm(reference: string): string {
  try {
    return normalizeImage(reference);
  } catch {
    return reference;
  }
}

/** Returns the host and port of the image's registry. Throws IMAGE_INVALID if the reference is malformed. */
export function registryOf(reference: string): string {
  const full = normalizeImage(reference);
  return full.slice(0, full.indexOf("/"));
}

/**
 * Returns the name of a registry as image names contain it: `https://Example.com/v1/` becomes `example.com`, and all
 * names of Docker Hub become `docker.io`.
 */
export function registryName(server: string): string {
  const host = server
    .trim()
    .toLowerCase()
    .replace(/^https?:\/\//, "")
    .replace(/\/.*$/, "");
  return host === "" || HUB_HOSTS.has(host) ? DEFAULT_DOMAIN : host;
}

function parse(reference: string): { domain?: string; path: string; tag?: string; digest?: string } {
  const groups = reference.length > NAME_MAX_LENGTH * 3 ? undefined : REFERENCE.exec(reference)?.groups;
  const path = groups?.path;
  if (groups === undefined || path === undefined) throw invalid(reference, "is not the name of an image");
  if (`${groups.domain ?? ""}/${path}`.length > NAME_MAX_LENGTH) throw invalid(reference, "is too long");
  if (/^[0-9a-f]{64}$/.test(reference)) throw invalid(reference, "is an id, not the name of an image");
  return {
    path,
    ...(groups.domain !== undefined && { domain: groups.domain }),
    ...(groups.tag !== undefined && { tag: groups.tag }),
    ...(groups.digest !== undefined && { digest: groups.digest }),
  };
}

function invalid(reference: string, why: string): RuntimeError {
  const shown = reference.length > NAME_MAX_LENGTH ? `${reference.slice(0, NAME_MAX_LENGTH)}…` : reference;
  return new RuntimeError("IMAGE_INVALID", `${JSON.stringify(shown)} ${why}`, { retryable: false });
}
