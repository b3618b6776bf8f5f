import assert from "node:assert/strict";
import { test } from "node:test";
import { verifyLoginCode } from "@forage/identity/workspace-login";
import { AdmissionLevel, PortVisibility, WorkspaceStatus } from "@forage/proto/core";
import { loginLink } from "./workspace-open.ts";

const TOKEN = "t".repeat(32);
const workspace = WorkspaceStatus.fromPartial({
  id: "i1",
  spec: {
    url: "https://w1.ws.example.org",
    exposedPorts: [
      { port: 3000, url: "https://3000-w1.ws.example.org" },
      { port: 8080, url: "https://8080-w1.ws.example.org/", visibility: PortVisibility.PUBLIC },
    ],
  },
  auth: { ownerToken: TOKEN },
});

test("creates a link with a code for the host, without the owner token", () => {
  for (const [port, host] of [
    [undefined, "w1.ws.example.org"],
    [3000, "3000-w1.ws.example.org"],
  ] as const) {
    const link = new URL(loginLink(workspace, port, 1_000));
    assert.equal(link.origin + link.pathname, `https://${host}/.forage/login`);
    const code = link.searchParams.get("code") ?? "";
    assert.equal(verifyLoginCode(code, { ownerToken: TOKEN, host, nowMs: 1_000 }).type, "accepted");
    assert.ok(!link.href.includes(TOKEN));
  }
});

test("returns the plain URL if everyone may visit the workspace", () => {
  assert.equal(loginLink(workspace, 8080, 0), "https://8080-w1.ws.example.org/");
  const admitted = { ...workspace, auth: { ownerToken: "", admission: AdmissionLevel.ADMIT_EVERYONE } };
  assert.equal(loginLink(admitted, undefined, 0), "https://w1.ws.example.org");
});

test("explains an unexposed port, and a token that may not see the owner token", () => {
  assert.throws(() => loginLink(workspace, 4000, 0), {
    code: "NOT_FOUND",
    message: /does not expose port 4000/,
  });
  const seen = { ...workspace, auth: { ownerToken: "", admission: AdmissionLevel.ADMIT_OWNER_ONLY } };
  assert.throws(() => loginLink(seen, undefined, 0), { code: "DENIED", message: /role editor/ });
});
