import { authorize, type Denial, type MethodTable, type Role } from "@forage/identity/authorize";
import { CoordinatorError } from "../errors.ts";
import type { Caller } from "./caller.ts";

const ANYONE = { who: "anyone" } as const;
const COORDINATOR = { who: "coordinator" } as const;
const NODE = { who: "node" } as const;
const inNamespace = (role: Role) => ({ who: "user", role, scope: "namespace" }) as const;
const inCluster = (role: Role) => ({ who: "user", role, scope: "cluster" }) as const;

/**
 * The served methods, each with the role that its caller needs. A method that is not listed is
 * refused.
 */
export const methodTable: MethodTable = {
  "/forest.v1.ForageService/ApplyResources": inNamespace("editor"),
  "/forest.v1.ForageService/WatchRollout": inNamespace("viewer"),
  "/forest.v1.ForageService/DeleteResources": inNamespace("editor"),
  "/forage.operator.v1.OperatorService/ListResources": inNamespace("viewer"),
  "/forage.operator.v1.OperatorService/ListPods": inNamespace("viewer"),
  "/forage.operator.v1.OperatorService/ListNodes": inCluster("viewer"),
  "/forage.operator.v1.OperatorService/ListEndpoints": inNamespace("viewer"),
  "/forage.operator.v1.OperatorService/GetRollout": inNamespace("viewer"),
  "/forage.operator.v1.OperatorService/ListRevisions": inNamespace("viewer"),
  "/forage.operator.v1.OperatorService/UpdateRollout": inNamespace("editor"),
  "/forage.operator.v1.OperatorService/Delete": inNamespace("editor"),
  "/forage.operator.v1.OperatorService/Logs": inNamespace("viewer"),
  "/forage.operator.v1.OperatorService/Exec": inNamespace("editor"),
  "/forage.operator.v1.OperatorService/PortForward": inNamespace("editor"),
  "/forage.operator.v1.OperatorService/Copy": inNamespace("editor"),
  "/forage.operator.v1.OperatorService/PushImage": inNamespace("editor"),
  "/forage.operator.v1.OperatorService/PrefetchImage": inNamespace("editor"),
  "/forage.operator.v1.OperatorService/RemoveImage": inNamespace("editor"),
  "/forage.operator.v1.OperatorService/PutObject": inNamespace("editor"),
  "/forage.operator.v1.OperatorService/PlanObject": inNamespace("editor"),
  "/forage.operator.v1.OperatorService/GetObject": inNamespace("viewer"),
  "/forage.operator.v1.OperatorService/ListObjects": inNamespace("viewer"),
  "/forage.operator.v1.OperatorService/DeleteObject": inNamespace("editor"),
  "/forage.operator.v1.OperatorService/RevealObject": inNamespace("editor"),
  "/forage.operator.v1.OperatorService/RunCronJob": inNamespace("editor"),
  "/forage.operator.v1.OperatorService/ListEvents": inNamespace("viewer"),
  "/forage.operator.v1.OperatorService/WatchEvents": inNamespace("viewer"),
  "/forage.operator.v1.OperatorService/Apply": inNamespace("editor"),
  "/forage.operator.v1.OperatorService/Plan": inNamespace("viewer"),
  "/forage.operator.v1.OperatorService/WhatIf": inCluster("viewer"),
  "/forage.operator.v1.OperatorService/Capacity": inCluster("viewer"),
  "/forage.operator.v1.OperatorService/Why": inNamespace("viewer"),
  "/forage.operator.v1.OperatorService/UpdateNode": inCluster("admin"),
  "/forage.operator.v1.OperatorService/PutMetric": inNamespace("editor"),
  "/forage.operator.v1.OperatorService/ListMetrics": inNamespace("viewer"),
  "/forage.operator.v1.OperatorService/DeleteMetric": inNamespace("editor"),
  "/forage.operator.v1.OperatorService/DrainNode": inCluster("admin"),
  "/forage.operator.v1.OperatorService/WatchDrain": inCluster("viewer"),
  "/forage.operator.v1.OperatorService/ForgetNode": inCluster("admin"),
  "/forage.operator.v1.OperatorService/Rebalance": inCluster("admin"),
  "/forage.operator.v1.OperatorService/CreateJoinToken": inCluster("admin"),
  "/forage.operator.v1.OperatorService/CreateCoordinatorToken": inCluster("admin"),
  "/forage.operator.v1.OperatorService/ListCoordinators": inCluster("viewer"),
  "/forage.operator.v1.OperatorService/CreateApiToken": inCluster("admin"),
  "/forage.operator.v1.OperatorService/ListNamespaces": inNamespace("viewer"),
  "/forage.operator.v1.OperatorService/SetNamespacePolicy": inCluster("admin"),
  "/forage.operator.v1.OperatorService/SetNamespaceQuota": inCluster("admin"),
  "/forage.operator.v1.OperatorService/ListApiTokens": inCluster("admin"),
  "/forage.operator.v1.OperatorService/RevokeApiToken": inCluster("admin"),
  "/forage.operator.v1.OperatorService/ListAudit": inCluster("admin"),
  "/forage.operator.v1.OperatorService/ListCertificates": inCluster("viewer"),
  "/forage.operator.v1.OperatorService/RenewCertificate": inCluster("admin"),
  "/forage.operator.v1.OperatorService/GetCertificateAuthority": inCluster("viewer"),
  "/forage.operator.v1.OperatorService/CreateBackup": inCluster("admin"),
  "/forage.operator.v1.OperatorService/ListBackups": inCluster("admin"),
  "/forage.operator.v1.OperatorService/GetBackup": inCluster("admin"),
  "/forage.operator.v1.OperatorService/ListAuthorities": inCluster("viewer"),
  "/forage.operator.v1.OperatorService/RollAuthority": inCluster("admin"),
  "/forage.operator.v1.OperatorService/RetireAuthority": inCluster("admin"),
  "/forage.operator.v1.OperatorService/ListNotifications": inCluster("admin"),
  "/forage.operator.v1.OperatorService/TestNotification": inCluster("admin"),
  "/forage.operator.v1.OperatorService/GetSupportBundle": inCluster("admin"),
  "/forage.operator.v1.OperatorService/ExamineNodes": inCluster("admin"),
  "/grpc.health.v1.Health/Check": ANYONE,
  // A stream occupies a slot for as long as its caller likes, so a token is required.
  "/grpc.health.v1.Health/Watch": inNamespace("destination-reader"),
  "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo": inNamespace("viewer"),
  "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": inNamespace("viewer"),
  "/forage.agent.v1.EnrollmentService/Join": ANYONE,
  "/forage.coordinator.v1.CoordinatorEnrollmentService/Join": ANYONE,
  "/forage.coordinator.v1.CoordinatorService/Report": COORDINATOR,
  "/forage.coordinator.v1.CoordinatorService/Http": COORDINATOR,
  "/forage.coordinator.v1.FollowerService/GetSupportFiles": COORDINATOR,
  "/forage.agent.v1.AgentService/Connect": NODE,
  "/forage.agent.v1.AgentService/Renew": NODE,
  "/forage.agent.v1.AgentService/Serve": NODE,
  "/forage.agent.v1.AgentService/FetchImage": NODE,
  "/io.linkerd.proxy.destination.Destination/Get": inNamespace("destination-reader"),
  "/io.linkerd.proxy.destination.Destination/GetProfile": inNamespace("destination-reader"),
  "/forage.workspaces.v1.WorkspaceNodeService/Sync": NODE,
  "/forage.workspaces.v1.WorkspaceNodeService/Upload": NODE,
  "/forage.workspaces.v1.WorkspaceNodeService/Download": NODE,
  "/forage.workspaces.v1.WorkspaceContentService/ListContent": inNamespace("viewer"),
  "/forage.workspaces.v1.WorkspaceContentService/RetryContent": inNamespace("editor"),
  "/forage.workspaces.v1.WorkspaceContentService/DiscardContent": inNamespace("editor"),
  "/forage.workspaces.v1.WorkspaceContentService/DownloadContent": inNamespace("editor"),
  "/wsman.WorkspaceManager/GetWorkspaces": inNamespace("viewer"),
  "/wsman.WorkspaceManager/StartWorkspace": inNamespace("editor"),
  "/wsman.WorkspaceManager/StopWorkspace": inNamespace("editor"),
  "/wsman.WorkspaceManager/DescribeWorkspace": inNamespace("viewer"),
  "/wsman.WorkspaceManager/BackupWorkspace": inNamespace("editor"),
  "/wsman.WorkspaceManager/Subscribe": inNamespace("viewer"),
  "/wsman.WorkspaceManager/MarkActive": inNamespace("editor"),
  "/wsman.WorkspaceManager/SetTimeout": inNamespace("editor"),
  "/wsman.WorkspaceManager/ControlPort": inNamespace("editor"),
  "/wsman.WorkspaceManager/TakeSnapshot": inNamespace("editor"),
  "/wsman.WorkspaceManager/ControlAdmission": inNamespace("editor"),
  "/wsman.WorkspaceManager/DeleteVolumeSnapshot": inNamespace("editor"),
  "/wsman.WorkspaceManager/UpdateSSHKey": inNamespace("editor"),
  "/wsman.WorkspaceManager/DescribeCluster": inNamespace("viewer"),
};

const RENEWAL = "/forage.agent.v1.AgentService/Renew";
const OF_COORDINATORS: ReadonlySet<string> = new Set(
  Object.keys(methodTable).filter((method) => methodTable[method] === COORDINATOR),
);
const CONNECTION = "/forage.agent.v1.AgentService/Connect";

const IN_NAMESPACE_OF_WORKSPACES =
  /^\/(wsman\.WorkspaceManager|forage\.workspaces\.v1\.WorkspaceContentService)\//;

/**
 * Methods whose namespace is not a field of the request: their handlers call `assertNamespace` once
 * they have determined it.
 */
const handlerDecides: ReadonlySet<string> = new Set([
  "/forest.v1.ForageService/WatchRollout",
  "/forage.operator.v1.OperatorService/GetRollout",
  "/forage.operator.v1.OperatorService/Exec",
  "/forage.operator.v1.OperatorService/PortForward",
  "/forage.operator.v1.OperatorService/Copy",
  "/forage.operator.v1.OperatorService/PushImage",
  "/grpc.health.v1.Health/Watch",
  "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
  "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
  "/io.linkerd.proxy.destination.Destination/Get",
  "/io.linkerd.proxy.destination.Destination/GetProfile",
  // The namespace of workspaces is a setting, not a field of the request.
  ...Object.keys(methodTable).filter((method) => IN_NAMESPACE_OF_WORKSPACES.test(method)),
]);

/** Throws UNAUTHENTICATED or PERMISSION_DENIED unless the caller may make this call. */
export function assertMayCall(caller: Caller, method: string, request: unknown): void {
  // An expired certificate permits only its own renewal.
  if (caller.type === "anonymous" && caller.expiredNode !== undefined && method === RENEWAL) return;
  // A node that is not in the store may have joined after the backup was made from which the store
  // was restored. Its hello is read before it is refused.
  if (caller.type === "anonymous" && caller.refusedNode !== undefined && method === CONNECTION) return;
  if (caller.type === "anonymous" && caller.coordinator !== undefined && OF_COORDINATORS.has(method)) return;
  if (!handlerDecides.has(method)) {
    check(caller, method, namespaceOf(request));
    return;
  }
  const candidates = caller.type === "user" ? caller.grants.flatMap(({ namespaces }) => namespaces) : [];
  const allowed = candidates.some((namespace) => authorize(caller, method, plain(namespace), methodTable).ok);
  if (!allowed) check(caller, method, undefined);
}

/** Throws PERMISSION_DENIED unless the caller may call the method for the namespace; undefined means all namespaces. */
export function assertNamespace(caller: Caller, method: string, namespace: string | undefined): void {
  check(caller, method, namespace);
}

/** Reports whether the caller may call the method for the namespace. */
export function mayCall(caller: Caller, method: string, namespace: string): boolean {
  return authorize(caller, method, namespace, methodTable).ok;
}

function check(caller: Caller, method: string, namespace: string | undefined): void {
  const decision = authorize(caller, method, namespace, methodTable);
  if (decision.ok) return;
  const code = decision.reason === "UNAUTHENTICATED" ? "UNAUTHENTICATED" : "PERMISSION_DENIED";
  throw new CoordinatorError(code, explain(decision.reason, caller, method, namespace));
}

function explain(reason: Denial, caller: Caller, method: string, namespace: string | undefined): string {
  const required = methodTable[method];
  switch (reason) {
    case "UNAUTHENTICATED":
      return caller.problem ?? "no credentials: send the metadata `authorization: Bearer <token>` over TLS";
    case "UNKNOWN_METHOD":
      return `${method} is not served to any caller`;
    case "NODES_ONLY":
      return `${method} is for nodes with a certificate only`;
    case "USERS_ONLY":
      return `${method} is not for nodes: use a token`;
    case "COORDINATORS_ONLY":
      return `${method} is for other coordinators only`;
    case "MISSING_ROLE":
      return `${method} needs the role ${required?.who === "user" ? required.role : ""}; this token does not hold it`;
    case "WRONG_NAMESPACE":
      return namespace === undefined
        ? `${method} would cover all namespaces, which this token does not: set a namespace that it covers`
        : `this token does not cover namespace "${namespace}"`;
    default:
      return reason satisfies never;
  }
}

function namespaceOf(request: unknown): string | undefined {
  const named = request as { readonly namespace?: unknown } | undefined;
  return typeof named?.namespace === "string" && named.namespace !== "" ? named.namespace : undefined;
}

function plain(namespace: string): string | undefined {
  return namespace === "*" ? undefined : namespace;
}
