import assert from "node:assert/strict";
import { test } from "node:test";
import { HostPatterns } from "./host-patterns.ts";

const TEMPLATES = {
  urlTemplate: "https://{{.Prefix}}.ws.{{.Host}}",
  portUrlTemplate: "https://{{.WorkspacePort}}-{{.Prefix}}.ws.{{.Host}}",
  host: "example.org",
  ingressPort: 8443,
};

test("finds workspaces and ports by the default templates", () => {
  const patterns = new HostPatterns(TEMPLATES);
  assert.deepEqual(patterns.targetsOf("Gray-Wolf.ws.example.org:8443"), [
    { by: "prefix", name: "gray-wolf", port: undefined },
  ]);
  assert.deepEqual(patterns.targetsOf("3000-wolf.ws.example.org"), [
    { by: "prefix", name: "wolf", port: 3000 },
    { by: "prefix", name: "3000-wolf", port: undefined },
  ]);
  for (const host of [
    "",
    "ws.example.org",
    "a.b.ws.example.org",
    "wolf.ws.example.org.evil.test",
    "wolf.wsxexample.org",
  ])
    assert.deepEqual(patterns.targetsOf(host), [], host);
  assert.deepEqual(patterns.targetsOf("99999-wolf.ws.example.org"), [
    { by: "prefix", name: "99999-wolf", port: undefined },
  ]);
});

test("finds workspaces by id if the templates contain the id", () => {
  const patterns = new HostPatterns({
    ...TEMPLATES,
    urlTemplate: "http://ws-{{ .ID }}.{{.Host}}:{{.IngressPort}}/",
    portUrlTemplate: "http://ws-{{.ID}}-p{{.WorkspacePort}}.{{.Host}}:{{.IngressPort}}/",
  });
  assert.deepEqual(patterns.targetsOf("ws-6f1e-2-p80.example.org:8443")[0], {
    by: "id",
    name: "6f1e-2",
    port: 80,
  });
  assert.deepEqual(patterns.targetsOf("ws-6f1e.example.org"), [{ by: "id", name: "6f1e", port: undefined }]);
});

test("refuses templates whose host does not contain the workspace's name", () => {
  for (const urlTemplate of ["https://{{.Host}}/{{.Prefix}}", "https://{{.Host}}", "{{.Prefix}}"])
    assert.throws(() => new HostPatterns({ ...TEMPLATES, urlTemplate }), { code: "FAILED_PRECONDITION" });
});
