import { registryName } from "../runtime/image-reference.ts";

/** The settings for pulls of a registry's images. */
export interface RegistryAccess {
  /** URLs that are tried in this order before the registry itself. */
  readonly mirrors: readonly string[];
  /** A PEM file with authorities that are trusted in addition to the host's, for the registry and its mirrors. */
  readonly caFile: string | undefined;
  readonly client: ClientFiles | undefined;
}

/** PEM files by which the host identifies itself to the registry and its mirrors. */
export interface ClientFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

/** Settings by the registry's name in images, such as `docker.io` or `registry.example:5000`. */
export type Registries = Readonly<Record<string, RegistryAccess>>;

const NAME = /^(?=[^/]{1,255}$)([a-z0-9]([a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:]+\])(:\d{1,5})?$/;
const PATH = /^\/[^"\n\0]{1,4000}$/;
const REGISTRIES_MAX = 64;
const MIRRORS_MAX = 10;

/**
 * Parses the `registries` setting: `mirrors`, `caFile`, `clientCertFile` and `clientKeyFile` by registry. Text is
 * parsed as JSON. @throws Error that describes valid values.
 */
export function parseRegistries(value: unknown): Registries {
  const given = typeof value === "string" ? fromJson(value) : value;
  if (!isMap(given)) throw new Error("names of registries, each with its mirrors and files");
  const entries = Object.entries(given);
  if (entries.length > REGISTRIES_MAX) throw new Error(`at most ${REGISTRIES_MAX} registries`);
  const read = new Map<string, RegistryAccess>();
  for (const [key, access] of entries) {
    const name = registryName(key);
    if (!NAME.test(key) || name !== key)
      throw new Error(`named like docker.io or registry.example:5000, which ${JSON.stringify(key)} is not`);
    read.set(name, accessOf(name, access));
  }
  return Object.fromEntries(read);
}

function accessOf(name: string, value: unknown): RegistryAccess {
  if (!isMap(value)) throw new Error(`${name}: mirrors, caFile, clientCertFile and clientKeyFile`);
  const { mirrors = [], caFile, clientCertFile, clientKeyFile, ...others } = value;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined)
    throw new Error(`${name}: without ${JSON.stringify(unknown)}, which is not a setting of a registry`);
  if (!Array.isArray(mirrors) || mirrors.length > MIRRORS_MAX)
    throw new Error(`${name}: with mirrors, a list of at most ${MIRRORS_MAX} URLs`);
  if ((clientCertFile === undefined) !== (clientKeyFile === undefined))
    throw new Error(`${name}: with both clientCertFile and clientKeyFile, or neither`);
  const client =
    clientCertFile === undefined
      ? undefined
      : {
          certFile: pathOf(name, "clientCertFile", clientCertFile),
          keyFile: pathOf(name, "clientKeyFile", clientKeyFile),
        };
  return {
    mirrors: mirrors.map((mirror) => mirrorOf(name, mirror)),
    caFile: caFile === undefined ? undefined : pathOf(name, "caFile", caFile),
    client,
  };
}

/** Parses a mirror's URL. A mirror decides which image a tag means, so it must prove its identity by TLS. */
function mirrorOf(name: string, value: unknown): string {
  const url = typeof value === "string" && URL.canParse(value) ? new URL(value) : undefined;
  const isPlain = url?.username === "" && url.password === "" && url.search === "" && url.hash === "";
  if (url?.protocol === "https:" && isPlain) return url.href.replace(/\/+$/, "");
  throw new Error(`${name}: with mirrors such as https://mirror.example:5000, without user and query`);
}

function pathOf(name: string, key: string, value: unknown): string {
  if (typeof value === "string" && PATH.test(value)) return value;
  throw new Error(`${name}: with ${key}, an absolute path`);
}

function fromJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error("JSON, when it is given as text");
  }
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
