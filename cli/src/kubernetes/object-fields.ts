import type { Field } from "../conversion/field.ts";
import { decodeBase64, encodeBase64 } from "./base64.ts";
import type { Item } from "./item.ts";
import {
  type Draft,
  flag,
  lost,
  NO_SCOPE,
  noEffect,
  oneOf,
  part,
  type Rules,
  readFields,
  text,
  textsOf,
} from "./rules.ts";

const ELSEWHERE = noEffect("read on its own");
const IMMUTABLE = lost("has no counterpart: objects can be changed");
const OBJECT: Rules = {
  apiVersion: ELSEWHERE,
  kind: ELSEWHERE,
  metadata: ELSEWHERE,
  status: noEffect("the server of a cluster sets it"),
};

const BASE64 = /^(?:[A-Za-z\d+/]{4})*(?:[A-Za-z\d+/]{2}==|[A-Za-z\d+/]{3}=)?$/;

/** Reads values in base64, which may contain line breaks. */
const encoded = (field: Field, into: Draft): void => {
  for (const [key, value] of field.entries()) {
    const base64 = value.kind === "null" ? "" : value.text().replaceAll(/\s/g, "");
    if (!BASE64.test(base64)) value.fail("must be base64");
    put(into, key, base64);
  }
};
const plain = (field: Field, into: Draft): void => {
  for (const [key, value] of Object.entries(textsOf(field))) put(into, key, encodeBase64(value));
};
function put(into: Draft, key: string, base64: string): void {
  into.data = { ...(into.data as object), [key]: base64 };
}

export const CONFIG_MAP_FIELDS: Rules = {
  ...OBJECT,
  binaryData: encoded,
  data: plain,
  immutable: IMMUTABLE,
};

export const SECRET_FIELDS: Rules = {
  ...OBJECT,
  data: encoded,
  immutable: IMMUTABLE,
  stringData: noEffect("read after data, which it goes before"),
  type: text,
};

export const CLAIM_RESOURCES_FIELDS: Rules = {
  limits: lost("has no counterpart: the request is the capacity"),
  requests: (field, into) => {
    for (const [name, value] of field.entries())
      if (name === "storage") into.capacity = value.text();
      else value.fail("is an unknown field; there is storage");
  },
};

const ONE_PLACE = lost("has no counterpart: a claim is a directory of the node that its first pod is on");

export const CLAIM_FIELDS: Rules = {
  accessModes: (field) => {
    for (const item of field.items())
      if (!["ReadWriteOnce", "ReadWriteOncePod"].includes(item.text()))
        item.lose(`"${item.text()}" has no counterpart: pods with the claim share its node`);
  },
  dataSource: lost("has no counterpart: claims begin empty"),
  dataSourceRef: lost("has no counterpart: claims begin empty"),
  resources: (field, into) => void readFields(field, CLAIM_RESOURCES_FIELDS, NO_SCOPE, into),
  selector: ONE_PLACE,
  storageClassName: ONE_PLACE,
  volumeAttributesClassName: ONE_PLACE,
  volumeMode: oneOf(["Filesystem"], "has no counterpart: claims are directories", true),
  volumeName: ONE_PLACE,
};

export const PRIORITY_CLASS_FIELDS: Rules = {
  ...OBJECT,
  description: text,
  globalDefault: flag,
  preemptionPolicy: (field, into) => {
    const policy = field.text();
    if (policy !== "Never" && policy !== "PreemptLowerPriority")
      field.fail("is neither Never nor PreemptLowerPriority");
    into.never_preempts = policy === "Never";
  },
  value: (field, into) => {
    const written = field.text();
    if (/^-?\d{1,10}$/.test(written)) into.value = Number(written);
    else field.fail("must be a whole number");
  },
};

export const NAMESPACE_FIELDS: Rules = {
  ...OBJECT,
  spec: part({ finalizers: noEffect("the server of a cluster sets it") }),
};

/** Returns the specification of an object, such as `{ config_map: … }`. */
export function readConfigMap({ field }: Item): Draft {
  return { config_map: { data: {}, ...readFields(field, CONFIG_MAP_FIELDS, NO_SCOPE) } };
}

export function readClaim({ spec }: Item): Draft {
  return { claim: spec === undefined ? {} : readFields(spec, CLAIM_FIELDS, NO_SCOPE) };
}

export function readPriorityClass({ field }: Item): Draft {
  return { priority_class: readFields(field, PRIORITY_CLASS_FIELDS, NO_SCOPE) };
}

/**
 * Reads a namespace. It needs no conversion, because a namespace exists once it contains something.
 * Labels that request a policy are reported.
 */
export function readNamespace({ field, labels }: Item): undefined {
  readFields(field, NAMESPACE_FIELDS, NO_SCOPE);
  const asked = Object.keys(labels).find((key) => key.startsWith("pod-security.kubernetes.io/enforce"));
  if (asked !== undefined)
    field
      .get("metadata")
      ?.get("labels")
      ?.get(asked)
      ?.lose("has no counterpart in a manifest: use forage namespace policy set NAMESPACE");
}

const KEYED_TYPES = ["", "Opaque", "kubernetes.io/tls", "kubernetes.io/basic-auth", "kubernetes.io/ssh-auth"];
const DOCKER_CONFIG = "kubernetes.io/dockerconfigjson";

/** Reads a secret, which may become a registry credential. Its values appear in no message. */
export function readSecret({ field }: Item): Draft | undefined {
  const { type = "", data = {} } = readFields(field, SECRET_FIELDS, NO_SCOPE) as {
    readonly type?: string;
    readonly data?: Readonly<Record<string, string>>;
  };
  const written: Draft = { data };
  const strings = field.get("stringData");
  if (strings !== undefined) plain(strings, written);
  if (type === DOCKER_CONFIG) return credentialOf(field, written.data as Readonly<Record<string, string>>);
  if (!KEYED_TYPES.includes(type)) {
    field.get("type")?.lose(`"${type}" has no counterpart`);
    return undefined;
  }
  return { secret: written };
}

function credentialOf(field: Field, data: Readonly<Record<string, string>>): Draft | undefined {
  const servers = serversOf(data[".dockerconfigjson"] ?? "");
  if (servers === undefined)
    return field.fail("holds no .dockerconfigjson with auths, each with a username and a password");
  const [first, ...more] = servers;
  if (first === undefined || more.length > 0)
    return field.lose(`holds ${servers.length} registries: a credential has one`);
  return { registry_credential: first };
}

/** Returns the registries of a Docker configuration in base64; undefined if it is malformed. */
function serversOf(base64: string): Draft[] | undefined {
  try {
    const { auths } = JSON.parse(decodeBase64(base64)) as { readonly auths?: unknown };
    if (typeof auths !== "object" || auths === null) return undefined;
    return Object.entries(auths as Record<string, Draft>).map(([address, entry]) => {
      const { username: ownName, password: ownPassword, auth } = entry;
      const isWritten = typeof ownName === "string" && typeof ownPassword === "string";
      const [user, ...rest] = isWritten ? [] : decodeBase64(String(auth ?? "")).split(":");
      const username = typeof ownName === "string" ? ownName : user;
      const password = typeof ownPassword === "string" ? ownPassword : rest.join(":");
      if (!username || !password) throw new TypeError("an entry has no user or password");
      return { server: serverOf(address), username, password };
    });
  } catch {
    return undefined;
  }
}

/**
 * Returns the server of a registry's address. `https://index.docker.io/v1/` is an old name of
 * Docker Hub.
 */
function serverOf(address: string): string {
  const host = address.replace(/^https?:\/\//, "").replace(/\/.*$/, "");
  return host === "index.docker.io" ? "docker.io" : host;
}
