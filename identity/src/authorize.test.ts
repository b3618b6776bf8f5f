import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  authorize,
  type Caller,
  type Denial,
  isRole,
  type MethodTable,
  ROLES,
  type Role,
} from "./authorize.ts";
import { nodeId } from "./node-id.ts";

const TABLE: MethodTable = {
  "/s/Join": { who: "anyone" },
  "/s/Connect": { who: "node" },
  "/s/Report": { who: "coordinator" },
  "/s/Get": { who: "user", role: "viewer", scope: "namespace" },
  "/s/Apply": { who: "user", role: "editor", scope: "namespace" },
  "/s/Drain": { who: "user", role: "admin", scope: "cluster" },
  "/s/Resolve": { who: "user", role: "destination-reader", scope: "namespace" },
};

const ANONYMOUS: Caller = { type: "anonymous" };
const node: Caller = { type: "node", nodeId: nodeId("n1") };

function user(role: Role, namespaces: "*" | readonly string[]): Caller {
  return { type: "user", name: "u", grants: [{ role, namespaces }] };
}

function verdict(caller: Caller, method: string, namespace?: string): Denial | "ok" {
  const decision = authorize(caller, method, namespace, TABLE);
  return decision.ok ? "ok" : decision.reason;
}

describe("authorize", () => {
  it("denies nodes and users the methods of coordinators", () => {
    assert.equal(verdict(ANONYMOUS, "/s/Report"), "UNAUTHENTICATED");
    for (const caller of [node, user("admin", "*")])
      assert.equal(verdict(caller, "/s/Report", "shop"), "COORDINATORS_ONLY");
  });

  it("denies everybody a method that the table lacks", () => {
    for (const caller of [ANONYMOUS, node, user("admin", "*")]) {
      for (const method of ["/s/Unknown", "", "constructor", "__proto__", "toString", "/S/GET"]) {
        assert.equal(verdict(caller, method, "shop"), "UNKNOWN_METHOD");
      }
    }
  });

  it("answers anonymous callers with UNAUTHENTICATED", () => {
    assert.equal(verdict(ANONYMOUS, "/s/Join"), "ok");
    for (const method of ["/s/Connect", "/s/Get", "/s/Drain"]) {
      assert.equal(verdict(ANONYMOUS, method, "shop"), "UNAUTHENTICATED");
    }
  });

  it("keeps nodes from the methods of users, and users from those of nodes", () => {
    assert.equal(verdict(node, "/s/Connect"), "ok");
    assert.equal(verdict(user("admin", "*"), "/s/Connect"), "NODES_ONLY");
    for (const method of ["/s/Get", "/s/Apply", "/s/Drain", "/s/Resolve"]) {
      assert.equal(verdict(node, method, "shop"), "USERS_ONLY");
    }
  });

  it("grants each role its own methods and those of lower roles", () => {
    const allowed: Record<Role, readonly string[]> = {
      "destination-reader": ["/s/Resolve"],
      viewer: ["/s/Get", "/s/Resolve"],
      editor: ["/s/Get", "/s/Apply", "/s/Resolve"],
      admin: ["/s/Get", "/s/Apply", "/s/Drain", "/s/Resolve"],
    };
    for (const role of ROLES) {
      const can = Object.keys(TABLE).filter((method) => TABLE[method]?.who === "user");
      assert.deepEqual(
        can.filter((method) => verdict(user(role, "*"), method, "shop") === "ok"),
        allowed[role],
        role,
      );
    }
  });

  it("limits a role to the namespaces of its grant", () => {
    const caller: Caller = {
      type: "user",
      name: "u",
      grants: [
        { role: "editor", namespaces: ["shop", "lab"] },
        { role: "viewer", namespaces: "*" },
      ],
    };
    assert.equal(verdict(caller, "/s/Apply", "shop"), "ok");
    assert.equal(verdict(caller, "/s/Apply", "bank"), "WRONG_NAMESPACE");
    assert.equal(verdict(caller, "/s/Get", "bank"), "ok");
    assert.equal(verdict(caller, "/s/Drain", "shop"), "MISSING_ROLE");
  });

  it("requires a grant for all namespaces for requests that span all namespaces", () => {
    assert.equal(verdict(user("viewer", ["shop"]), "/s/Get", undefined), "WRONG_NAMESPACE");
    assert.equal(verdict(user("viewer", "*"), "/s/Get", undefined), "ok");
    assert.equal(verdict(user("admin", ["shop"]), "/s/Drain", "shop"), "WRONG_NAMESPACE");
  });

  it("does not treat a namespace called * as all namespaces", () => {
    assert.equal(verdict(user("viewer", ["*"]), "/s/Get", "shop"), "WRONG_NAMESPACE");
    assert.equal(verdict(user("viewer", ["shop"]), "/s/Get", ""), "WRONG_NAMESPACE");
  });

  it("grants an unknown role nothing", () => {
    assert.equal(verdict(user("root" as Role, "*"), "/s/Get", "shop"), "MISSING_ROLE");
    assert.equal(isRole("root"), false);
    assert.equal(isRole("admin"), true);
  });
});

it("grants a token for a namespace without a name nothing that spans all namespaces", () => {
  const table = { "/m": { who: "user", role: "viewer", scope: "namespace" } } as const;
  const caller = { type: "user", name: "u", grants: [{ role: "viewer", namespaces: [""] }] } as const;
  assert.deepEqual(authorize(caller, "/m", undefined, table), { ok: false, reason: "WRONG_NAMESPACE" });
});
