import type { Field } from "../conversion/field.ts";
import type { Item } from "./item.ts";
import { OF_TOOLS } from "./metadata-fields.ts";
import {
  type Draft,
  list,
  lost,
  NO_SCOPE,
  noEffect,
  part,
  type ReadField,
  type Rules,
  readFields,
  text,
  texts,
  whole,
} from "./rules.ts";

/**
 * Returns the number of a named port of a service in the files; undefined if the files do not
 * contain it.
 */
export type PortOf = (namespace: string | undefined, service: string, port: string) => number | undefined;

export const BACKEND_PORT_FIELDS: Rules = { name: text, number: whole };
export const BACKEND_SERVICE_FIELDS: Rules = { name: text, port: part(BACKEND_PORT_FIELDS) };
export const BACKEND_FIELDS: Rules = {
  resource: lost("has no counterpart: requests are led to services"),
  service: part(BACKEND_SERVICE_FIELDS),
};

const backend: ReadField = (field, into) => {
  into.backend = field;
};

const PATH_TYPES: Readonly<Record<string, string>> = {
  Exact: "Exact",
  Prefix: "PathPrefix",
  ImplementationSpecific: "PathPrefix",
};

export const INGRESS_PATH_FIELDS: Rules = {
  backend,
  path: text,
  pathType: (field, into) => {
    into.path_type =
      PATH_TYPES[field.text()] ?? field.fail("is none of Exact, Prefix, ImplementationSpecific");
  },
};
export const INGRESS_HTTP_FIELDS: Rules = { paths: list(INGRESS_PATH_FIELDS) };
export const INGRESS_RULE_FIELDS: Rules = { host: text, http: part(INGRESS_HTTP_FIELDS) };
export const INGRESS_TLS_FIELDS: Rules = { hosts: texts, secretName: text };

/** The rules for all fields of an Ingress. */
export const INGRESS_FIELDS: Rules = {
  defaultBackend: backend,
  ingressClassName: noEffect("the default gateway serves it"),
  rules: list(INGRESS_RULE_FIELDS),
  tls: list(INGRESS_TLS_FIELDS),
};

interface Tls {
  readonly hosts?: readonly string[];
  readonly secret_name?: string;
}

interface Rule {
  readonly host?: string;
  readonly http?: { readonly paths?: readonly Draft[] };
}

/**
 * Converts an Ingress to one route for each host, because each may have its own rules and
 * certificate.
 */
export function readIngress(
  item: Item,
  portOf: PortOf,
): readonly { readonly name: string; readonly route: Draft }[] {
  const { spec, field, name } = item;
  if (spec === undefined) return field.fail("has no spec") ?? [];
  loseAnnotations(item);
  const read = readFields(spec, INGRESS_FIELDS, NO_SCOPE);
  const byHost = new Map<string, Draft[]>();
  for (const { host = "", http } of (read.rules ?? []) as readonly Rule[])
    byHost.set(host, [...(byHost.get(host) ?? []), ...(http?.paths ?? [])]);
  if (read.backend !== undefined) byHost.set("", [...(byHost.get("") ?? []), { backend: read.backend }]);
  const routes = [...byHost].map(([host, paths]) => {
    const tls = tlsOf(host, (read.tls ?? []) as readonly Tls[], item);
    return {
      name: byHost.size === 1 ? name : nameOf(name, host),
      route: {
        ...(host !== "" && { hostnames: [host] }),
        rules: paths.map((path) => ruleOf(path, item, portOf)),
        ...(tls !== undefined && { tls }),
      },
    };
  });
  return routes.length > 0 ? routes : (spec.fail("has no rules and no defaultBackend") ?? []);
}

function ruleOf({ path = "/", path_type, backend: at }: Draft, item: Item, portOf: PortOf): Draft {
  const type = path_type === "Exact" ? "Exact" : "PathPrefix";
  const matches = [{ path: { type, value: path } }];
  if (at === undefined) {
    item.field.fail("has a path without a backend");
    return { matches };
  }
  return { matches, backends: [backendOf(at as Field, item, portOf)] };
}

function backendOf(field: Field, { namespace }: Item, portOf: PortOf): Draft {
  const { service } = readFields(field, BACKEND_FIELDS, NO_SCOPE) as {
    readonly service?: {
      readonly name?: string;
      readonly port?: { readonly name?: string; readonly number?: number };
    };
  };
  const { name, port = {} } = service ?? {};
  if (name === undefined) return field.fail("has no service with a name") ?? {};
  const number = port.number ?? portOf(namespace, name, port.name ?? "");
  if (number === undefined)
    field.fail(`the service "${name}" with a port of this name is not in the files: write the port's number`);
  return { service: name, ...(number !== undefined && { port: number }) };
}

/**
 * Returns the TLS settings of a host. Without a secret, or if cert-manager would create the secret,
 * the cluster's issuer issues the certificate.
 */
function tlsOf(host: string, all: readonly Tls[], { annotations }: Item): Draft | undefined {
  const own = all.find(({ hosts = [] }) => (hosts.length === 0 ? host !== "" : hosts.includes(host)));
  if (own === undefined) return undefined;
  const isIssued = Object.keys(annotations).some((key) => ISSUER.test(key));
  if (own.secret_name === undefined || isIssued) return { mode: "Terminate" };
  return { mode: "Terminate", certificate_ref: own.secret_name };
}

const ISSUER = /^cert-manager\.io\/(cluster-)?issuer$/;
/** Annotations for the class and the certificate, which are read elsewhere. */
const READ_ELSEWHERE = /^cert-manager\.io\/|^kubernetes\.io\/(ingress\.class|tls-acme)$/;
/**
 * Annotations that redirect to HTTPS. Forage's gateway always redirects plain HTTP by 308 for
 * hostnames with a certificate.
 */
const REDIRECTS = /^nginx\.ingress\.kubernetes\.io\/(force-)?ssl-redirect$/;

/**
 * Reports annotations that ingress controllers use as settings, because routes have no such
 * settings.
 */
function loseAnnotations({ field }: Item): void {
  for (const [key, value] of field.get("metadata")?.get("annotations")?.entries() ?? []) {
    if (OF_TOOLS.test(key) || READ_ELSEWHERE.test(key) || (REDIRECTS.test(key) && value.text() === "true"))
      continue;
    value.lose("is a setting of one controller: check whether a field of routes does the same");
  }
}

/** Builds a name from a name and a host: `shop` and `a.example` become `shop-a-example`. */
function nameOf(name: string, host: string): string {
  const words = host === "" ? "default" : host.replace(/^\*/, "any").replaceAll(/[^a-z\d]+/g, "-");
  return `${name}-${words}`.slice(0, 63).replace(/-+$/, "");
}
