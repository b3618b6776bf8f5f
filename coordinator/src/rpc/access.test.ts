import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { nodeId } from "@forage/identity";
import { ROLES, type Role } from "@forage/identity/authorize";
import { WorkspaceManagerService } from "@forage/proto/core";
import { WorkspaceContentServiceService } from "@forage/proto/forage/workspaces/v1/content";
import { WorkspaceNodeServiceService } from "@forage/proto/forage/workspaces/v1/workspaces";
import { CoordinatorError } from "../errors.ts";
import { followerDefinitions, servedDefinitions } from "../services.ts";
import { assertMayCall, assertNamespace, methodTable } from "./access.ts";
import type { Caller } from "./caller.ts";

const definitions = [
  ...servedDefinitions,
  ...followerDefinitions,
  WorkspaceManagerService,
  WorkspaceContentServiceService,
  WorkspaceNodeServiceService,
];
const methods = definitions.flatMap((definition) => Object.values(definition).map(({ path }) => path));
const node: Caller = { type: "node", nodeId: nodeId("n1") };
const ANONYMOUS: Caller = { type: "anonymous" };

type Required = Role | "node" | "anyone" | "coordinator" | "cluster admin" | "cluster viewer";

/**
 * The required role of each method, repeated here on purpose, so that a change of rights fails this
 * test.
 */
const EXPECTED: Readonly<Record<string, Required>> = {
  "/forest.v1.ForageService/ApplyResources": "editor",
  "/forest.v1.ForageService/WatchRollout": "viewer",
  "/forest.v1.ForageService/DeleteResources": "editor",
  "/forage.operator.v1.OperatorService/ListResources": "viewer",
  "/forage.operator.v1.OperatorService/ListPods": "viewer",
  "/forage.operator.v1.OperatorService/ListNodes": "cluster viewer",
  "/forage.operator.v1.OperatorService/ListEndpoints": "viewer",
  "/forage.operator.v1.OperatorService/GetRollout": "viewer",
  "/forage.operator.v1.OperatorService/ListRevisions": "viewer",
  "/forage.operator.v1.OperatorService/UpdateRollout": "editor",
  "/forage.operator.v1.OperatorService/Delete": "editor",
  "/forage.operator.v1.OperatorService/Logs": "viewer",
  "/forage.operator.v1.OperatorService/Exec": "editor",
  "/forage.operator.v1.OperatorService/PortForward": "editor",
  "/forage.operator.v1.OperatorService/Copy": "editor",
  "/forage.operator.v1.OperatorService/PushImage": "editor",
  "/forage.operator.v1.OperatorService/PrefetchImage": "editor",
  "/forage.operator.v1.OperatorService/RemoveImage": "editor",
  "/forage.operator.v1.OperatorService/UpdateNode": "cluster admin",
  "/forage.operator.v1.OperatorService/DrainNode": "cluster admin",
  "/forage.operator.v1.OperatorService/WatchDrain": "cluster viewer",
  "/forage.operator.v1.OperatorService/ForgetNode": "cluster admin",
  "/forage.operator.v1.OperatorService/Rebalance": "cluster admin",
  "/forage.operator.v1.OperatorService/ListEvents": "viewer",
  "/forage.operator.v1.OperatorService/WatchEvents": "viewer",
  "/forage.operator.v1.OperatorService/Apply": "editor",
  "/forage.operator.v1.OperatorService/Plan": "viewer",
  "/forage.operator.v1.OperatorService/WhatIf": "cluster viewer",
  "/forage.operator.v1.OperatorService/Capacity": "cluster viewer",
  "/forage.operator.v1.OperatorService/Why": "viewer",
  "/forage.operator.v1.OperatorService/PutObject": "editor",
  "/forage.operator.v1.OperatorService/PlanObject": "editor",
  "/forage.operator.v1.OperatorService/GetObject": "viewer",
  "/forage.operator.v1.OperatorService/ListObjects": "viewer",
  "/forage.operator.v1.OperatorService/DeleteObject": "editor",
  "/forage.operator.v1.OperatorService/RevealObject": "editor",
  "/forage.operator.v1.OperatorService/PutMetric": "editor",
  "/forage.operator.v1.OperatorService/ListMetrics": "viewer",
  "/forage.operator.v1.OperatorService/DeleteMetric": "editor",
  "/forage.operator.v1.OperatorService/RunCronJob": "editor",
  "/forage.operator.v1.OperatorService/ListCertificates": "cluster viewer",
  "/forage.operator.v1.OperatorService/RenewCertificate": "cluster admin",
  "/forage.operator.v1.OperatorService/GetCertificateAuthority": "cluster viewer",
  "/forage.operator.v1.OperatorService/CreateBackup": "cluster admin",
  "/forage.operator.v1.OperatorService/ListBackups": "cluster admin",
  "/forage.operator.v1.OperatorService/GetBackup": "cluster admin",
  "/forage.operator.v1.OperatorService/ListAuthorities": "cluster viewer",
  "/forage.operator.v1.OperatorService/RollAuthority": "cluster admin",
  "/forage.operator.v1.OperatorService/RetireAuthority": "cluster admin",
  "/forage.operator.v1.OperatorService/ListNotifications": "cluster admin",
  "/forage.operator.v1.OperatorService/TestNotification": "cluster admin",
  "/forage.operator.v1.OperatorService/GetSupportBundle": "cluster admin",
  "/forage.operator.v1.OperatorService/ExamineNodes": "cluster admin",
  "/forage.operator.v1.OperatorService/CreateJoinToken": "cluster admin",
  "/forage.operator.v1.OperatorService/CreateCoordinatorToken": "cluster admin",
  "/forage.operator.v1.OperatorService/ListCoordinators": "cluster viewer",
  "/forage.operator.v1.OperatorService/CreateApiToken": "cluster admin",
  "/forage.operator.v1.OperatorService/ListApiTokens": "cluster admin",
  "/forage.operator.v1.OperatorService/ListAudit": "cluster admin",
  "/forage.operator.v1.OperatorService/RevokeApiToken": "cluster admin",
  "/forage.operator.v1.OperatorService/ListNamespaces": "viewer",
  "/forage.operator.v1.OperatorService/SetNamespacePolicy": "cluster admin",
  "/forage.operator.v1.OperatorService/SetNamespaceQuota": "cluster admin",
  "/grpc.health.v1.Health/Check": "anyone",
  "/grpc.health.v1.Health/Watch": "destination-reader",
  "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo": "viewer",
  "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": "viewer",
  "/forage.agent.v1.EnrollmentService/Join": "anyone",
  "/forage.coordinator.v1.CoordinatorEnrollmentService/Join": "anyone",
  "/forage.coordinator.v1.CoordinatorService/Report": "coordinator",
  "/forage.coordinator.v1.CoordinatorService/Http": "coordinator",
  "/forage.coordinator.v1.FollowerService/GetSupportFiles": "coordinator",
  "/forage.agent.v1.AgentService/Connect": "node",
  "/forage.agent.v1.AgentService/Renew": "node",
  "/forage.agent.v1.AgentService/Serve": "node",
  "/forage.agent.v1.AgentService/FetchImage": "node",
  "/io.linkerd.proxy.destination.Destination/Get": "destination-reader",
  "/io.linkerd.proxy.destination.Destination/GetProfile": "destination-reader",
  "/forage.workspaces.v1.WorkspaceNodeService/Sync": "node",
  "/forage.workspaces.v1.WorkspaceNodeService/Upload": "node",
  "/forage.workspaces.v1.WorkspaceNodeService/Download": "node",
  "/forage.workspaces.v1.WorkspaceContentService/ListContent": "viewer",
  "/forage.workspaces.v1.WorkspaceContentService/RetryContent": "editor",
  "/forage.workspaces.v1.WorkspaceContentService/DiscardContent": "editor",
  "/forage.workspaces.v1.WorkspaceContentService/DownloadContent": "editor",
  "/wsman.WorkspaceManager/GetWorkspaces": "viewer",
  "/wsman.WorkspaceManager/StartWorkspace": "editor",
  "/wsman.WorkspaceManager/StopWorkspace": "editor",
  "/wsman.WorkspaceManager/DescribeWorkspace": "viewer",
  "/wsman.WorkspaceManager/BackupWorkspace": "editor",
  "/wsman.WorkspaceManager/Subscribe": "viewer",
  "/wsman.WorkspaceManager/MarkActive": "editor",
  "/wsman.WorkspaceManager/SetTimeout": "editor",
  "/wsman.WorkspaceManager/ControlPort": "editor",
  "/wsman.WorkspaceManager/TakeSnapshot": "editor",
  "/wsman.WorkspaceManager/ControlAdmission": "editor",
  "/wsman.WorkspaceManager/DeleteVolumeSnapshot": "editor",
  "/wsman.WorkspaceManager/UpdateSSHKey": "editor",
  "/wsman.WorkspaceManager/DescribeCluster": "viewer",
};

test("has an entry for each served method, and no other entries", () => {
  assert.deepEqual([...methods].sort(), Object.keys(methodTable).sort());
  assert.deepEqual([...methods].sort(), Object.keys(EXPECTED).sort());
});

for (const method of methods) {
  describe(method, () => {
    const required = EXPECTED[method] ?? "node";
    const role = ROLES.find((r) => required === r || required === `cluster ${r}`);

    test("allows callers without credentials only if anyone may call it", () => {
      const code = required === "anyone" ? undefined : "UNAUTHENTICATED";
      assert.equal(refusal(ANONYMOUS, method, "shop"), code);
    });
    test("allows nodes only if it is for nodes or for anyone", () => {
      const allowed = required === "anyone" || required === "node";
      assert.equal(refusal(node, method, "shop"), allowed ? undefined : "PERMISSION_DENIED");
    });
    test("allows other coordinators only if it is for coordinators or for anyone", () => {
      const caller: Caller = { ...ANONYMOUS, forwarded: true, coordinator: "c2" };
      const allowed = required === "anyone" || required === "coordinator";
      assert.equal(refusal(caller, method, "shop"), allowed ? undefined : "UNAUTHENTICATED");
    });
    for (const held of ROLES) {
      test(`allows a token with the role ${held} in all namespaces if that role includes the required one`, () => {
        const enough = required === "anyone" || (role !== undefined && includes(held, role));
        assert.equal(refusal(user(held, "*"), method, "shop"), enough ? undefined : "PERMISSION_DENIED");
      });
    }
    test("refuses a token without any role", () => {
      const code = required === "anyone" ? undefined : "PERMISSION_DENIED";
      assert.equal(refusal({ type: "user", name: "u", grants: [] }, method, "shop"), code);
    });
    if (role === undefined) return;
    test("allows a token for the namespace unless a role in the cluster is required", () => {
      const code = required.startsWith("cluster") ? "PERMISSION_DENIED" : undefined;
      assert.equal(refusal(user("admin", ["shop"]), method, "shop"), code);
    });
    test("refuses a token for another namespace", () => {
      assert.equal(refusal(user("admin", ["other"]), method, "shop"), "PERMISSION_DENIED");
    });
    test("refuses a token for one namespace in a request for all namespaces", () => {
      assert.equal(refusal(user("admin", ["shop"]), method, ""), "PERMISSION_DENIED");
    });
  });
}

test("refuses every caller of a method without an entry", () => {
  for (const caller of [ANONYMOUS, node, user("admin", "*")]) {
    for (const method of ["/forest.v1.ForageService/Other", "", "toString", "/grpc.health.v1.Health/Other"])
      assert.throws(() => assertMayCall(caller, method, {}), { code: "PERMISSION_DENIED" });
  }
});

test("reports the problem with invalid credentials", () => {
  const problem = "the token has expired";
  assert.throws(() => assertMayCall({ type: "anonymous", problem }, methods[0] ?? "", {}), {
    code: "UNAUTHENTICATED",
    message: problem,
  });
});

test("keeps a role in one namespace from extending a lesser role in another namespace", () => {
  const grants = [
    { role: "editor", namespaces: ["a"] },
    { role: "viewer", namespaces: ["b"] },
  ] as const;
  const caller: Caller = { type: "user", name: "u", grants };
  const apply = "/forest.v1.ForageService/ApplyResources";
  assert.equal(refusal(caller, apply, "a"), undefined);
  assert.equal(refusal(caller, apply, "b"), "PERMISSION_DENIED");
  assert.equal(refusal(caller, "/forage.operator.v1.OperatorService/ListPods", "b"), undefined);
});

/**
 * Returns the code with which a call for the namespace is refused: by the access table, or by the
 * handler if only the handler can determine the namespace.
 */
function refusal(caller: Caller, method: string, namespace: string): string | undefined {
  const byHandler =
    /WatchRollout|GetRollout|Exec$|PortForward|Copy$|PushImage|Destination|Health|Reflection|WorkspaceManager|WorkspaceContent/.test(
      method,
    );
  try {
    assertMayCall(caller, method, byHandler ? {} : { namespace });
    if (byHandler) assertNamespace(caller, method, namespace);
    return undefined;
  } catch (error) {
    assert.ok(error instanceof CoordinatorError);
    return error.code;
  }
}

function user(role: Role, namespaces: "*" | readonly string[]): Caller {
  return { type: "user", name: "token:1", grants: [{ role, namespaces }] };
}

function includes(held: Role, required: Role): boolean {
  return ROLES.indexOf(held) >= ROLES.indexOf(required);
}
