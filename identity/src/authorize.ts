import type { NodeId } from "./node-id.ts";

export const ROLES = ["destination-reader", "viewer", "editor", "admin"] as const;
export type Role = (typeof ROLES)[number];

/** A role in some namespaces, or in all and in what belongs to none. */
export interface Grant {
  readonly role: Role;
  readonly namespaces: "*" | readonly string[];
}

/** An authenticated caller. */
export type Caller =
  | { readonly kind: "anonymous" }
  | { readonly kind: "node"; readonly nodeId: NodeId }
  | { readonly kind: "user"; readonly name: string; readonly grants: readonly Grant[] };

/**
 * A method's requirement of its caller. `anyone`: the method checks for itself, as joining does with its token. `node`: an
 * agent's certificate. `coordinator`: the certificate of another coordinator. `user`: a role in the request's namespace, or in all namespaces (`cluster`).
 */
export type Requirement =
  | { readonly who: "anyone" }
  | { readonly who: "node" }
  | { readonly who: "coordinator" }
  | { readonly who: "user"; readonly role: Role; readonly scope: "namespace" | "cluster" };

/** Keyed by full method path, e.g. `/forest.v1.ForageService/ApplyResources`. */
export type MethodTable = Readonly<Record<string, Requirement>>;

export type Decision = { readonly ok: true } | { readonly ok: false; readonly reason: Denial };

/**
 * `UNAUTHENTICATED` means that credentials are missing. The others mean that other credentials are needed. `UNKNOWN_METHOD`: the
 * table lacks the method.
 */
export type Denial =
  | "UNKNOWN_METHOD"
  | "UNAUTHENTICATED"
  | "NODES_ONLY"
  | "USERS_ONLY"
  | "COORDINATORS_ONLY"
  | "MISSING_ROLE"
  | "WRONG_NAMESPACE";

/** Each role with all roles that it includes. */
const INCLUDES: Readonly<Record<Role, readonly Role[]>> = {
  "destination-reader": ["destination-reader"],
  viewer: ["viewer", "destination-reader"],
  editor: ["editor", "viewer", "destination-reader"],
  admin: ["admin", "editor", "viewer", "destination-reader"],
};

const ALLOWED: Decision = { ok: true };

/**
 * Decides whether this caller may use this method on this namespace. Methods that the table doesn't name are denied.
 * `namespace` is `undefined` for requests that reach over all namespaces; those need a grant for `*`.
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
  if (caller.kind === "anonymous") return denied("UNAUTHENTICATED");
  if (requirement.who === "coordinator") return denied("COORDINATORS_ONLY");
  if (requirement.who === "node") return caller.kind === "node" ? ALLOWED : denied("NODES_ONLY");
  if (caller.kind !== "user") return denied("USERS_ONLY");
  const able = caller.grants.filter(({ role }) => INCLUDES[role]?.includes(requirement.role));
  if (able.length === 0) return denied("MISSING_ROLE");
  const wanted = requirement.scope === "cluster" ? undefined : namespace;
  return able.some((grant) => covers(grant, wanted)) ? ALLOWED : denied("WRONG_NAMESPACE");
}

/** Reports whether text from a user or a file is a role. */
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
