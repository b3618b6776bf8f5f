import type { NodeId } from "./node-id.ts";

export const ROLES = ["destination-reader", "viewer", "editor", "admin"] as const;
export type Role = (typeof ROLES)[number];

/** A role in some namespaces, or in all namespaces and for objects without a namespace. */
export interface Grant {
  readonly role: Role;
  readonly namespaces: "*" | readonly string[];
}

/** An authenticated caller. */
export type Caller =
  | { readonly type: "anonymous" }
  | { readonly type: "node"; readonly nodeId: NodeId }
  | { readonly type: "user"; readonly name: string; readonly grants: readonly Grant[] };

/**
 * The credentials that a method requires. `anyone`: the method authenticates by itself, as joining does with a join
 * token. `node`: an agent's certificate. `coordinator`: the certificate of another coordinator. `user`: a role in the
 * request's namespace, or in all namespaces (`cluster`).
 */
export type Requirement =
  | { readonly who: "anyone" }
  | { readonly who: "node" }
  | { readonly who: "coordinator" }
  | { readonly who: "user"; readonly role: Role; readonly scope: "namespace" | "cluster" };

/** The requirement of each method by its full path, e.g. `/forest.v1.ForageService/ApplyResources`. */
export type MethodTable = Readonly<Record<string, Requirement>>;

export type Decision = { readonly ok: true } | { readonly ok: false; readonly reason: Denial };

/**
 * `UNAUTHENTICATED`: the call has no credentials. `UNKNOWN_METHOD`: the table lacks the method. All others: the caller
 * needs other credentials.
 */
export type Denial =
  | "UNKNOWN_METHOD"
  | "UNAUTHENTICATED"
  | "NODES_ONLY"
  | "USERS_ONLY"
  | "COORDINATORS_ONLY"
  | "MISSING_ROLE"
  | "WRONG_NAMESPACE";

/** The roles that each role includes. */
const INCLUDES: Readonly<Record<Role, readonly Role[]>> = {
  "destination-reader": ["destination-reader"],
  viewer: ["viewer", "destination-reader"],
  editor: ["editor", "viewer", "destination-reader"],
  admin: ["admin", "editor", "viewer", "destination-reader"],
};

const ALLOWED: Decision = { ok: true };

/**
 * Decides whether this caller may use this method in this namespace. Denies methods that the table lacks. `namespace`
 * is `undefined` for requests that span all namespaces; they require a grant for `*`.
 */
export function authorize(
  caller: Caller,
  method: string,
  namespace: string | undefined,
  table: MethodTable,
): Decision {
  const requirement = Object.hasOwn(table, method) ? table[method] : undefined;
  if (requirement === undefined) return denied("UNKNOWN_METHOD");
  if (requirement.who === "anyone") return ALLOWED;
  if (caller.type === "anonymous") return denied("UNAUTHENTICATED");
  if (requirement.who === "coordinator") return denied("COORDINATORS_ONLY");
  if (requirement.who === "node") return caller.type === "node" ? ALLOWED : denied("NODES_ONLY");
  if (caller.type !== "user") return denied("USERS_ONLY");
  const able = caller.grants.filter(({ role }) => INCLUDES[role]?.includes(requirement.role));
  if (able.length === 0) return denied("MISSING_ROLE");
  const required = requirement.scope === "cluster" ? undefined : namespace;
  return able.some((grant) => covers(grant, required)) ? ALLOWED : denied("WRONG_NAMESPACE");
}

/** Reports whether the text, from a user or a file, is the name of a role. */
export function isRole(text: string): text is Role {
  return ROLES.some((role) => role === text);
}

function covers({ namespaces }: Grant, namespace: string | undefined): boolean {
  if (namespaces === "*") return true;
  return namespace !== undefined && namespaces.includes(namespace);
}

function denied(reason: Denial): Decision {
  return { ok: false, reason };
}
