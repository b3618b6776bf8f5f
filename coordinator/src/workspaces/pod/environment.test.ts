import assert from "node:assert/strict";
import { test } from "node:test";
import { WorkspaceType } from "@forage/proto/core";
import { InstanceRecord, InstanceSecrets } from "@forage/proto/forage/workspaces/v1/records";
import { WORKSPACES_SCHEMA } from "../settings.ts";
import { environmentOf, type Variable } from "./environment.ts";

const SETTINGS = WORKSPACES_SCHEMA.parse({
  ...{ enabled: true, host: "example.test" },
  classes: [{ id: "small", memory: "2Gi" }],
});

type Secrets = Parameters<typeof InstanceSecrets.fromPartial>[0];

function variablesOf(secrets: Secrets, type: WorkspaceType = WorkspaceType.REGULAR) {
  const record = InstanceRecord.fromPartial({
    ...{ id: "instance-1", type, workspaceLocation: "project/main" },
    metadata: { owner: "ada", metaId: "meta-1" },
    spec: { url: "https://meta-1.ws.example.test", class: "small" },
  });
  const variables = environmentOf(record, InstanceSecrets.fromPartial(secrets), SETTINGS);
  return new Map(variables.map(({ name, source }) => [name, source]));
}

function givenValue(source: Variable["source"] | undefined): string | undefined {
  return source?.type === "value" ? source.value : undefined;
}

test("passes on the variables of a request except empty and protected ones", () => {
  const variables = variablesOf({
    envvars: [
      { name: "PLAIN", value: "first" },
      { name: "PLAIN", value: "last" },
      { name: "EMPTY", value: "" },
      { name: "GITPOD_TASKS", value: "[]" },
      { name: "GITPOD_SECRET", value: "not from a request" },
      { name: "GITPOD_INSTANCE_ID", value: "another" },
      { name: "THEIA_WORKSPACE_ROOT", value: "/" },
    ],
  });
  assert.equal(givenValue(variables.get("PLAIN")), "last");
  assert.equal(givenValue(variables.get("GITPOD_TASKS")), "[]");
  assert.equal(variables.has("EMPTY"), false);
  assert.equal(variables.has("GITPOD_SECRET"), false);
  assert.equal(givenValue(variables.get("GITPOD_INSTANCE_ID")), "instance-1");
  assert.equal(givenValue(variables.get("THEIA_WORKSPACE_ROOT")), "/workspace/project/main");
});

test("refers to a secret for a variable without a value of its own", () => {
  const secret = { secretName: "tokens", key: "api" };
  const variables = variablesOf({
    envvars: [
      { name: "FROM_SECRET", value: "", secret },
      { name: "BOTH", value: "given", secret },
    ],
  });
  assert.deepEqual(variables.get("FROM_SECRET"), { type: "secret", secret: "tokens", key: "api" });
  assert.equal(givenValue(variables.get("BOTH")), "given");
});

test("sets variables that describe the workspace, its class and its user", () => {
  const variables = variablesOf({ git: { username: "Ada", email: "ada@example.test" } });
  const expected = {
    GITPOD_OWNER_ID: "ada",
    GITPOD_WORKSPACE_ID: "meta-1",
    GITPOD_WORKSPACE_URL: "https://meta-1.ws.example.test",
    GITPOD_WORKSPACE_CLUSTER_HOST: "example.test",
    GITPOD_WORKSPACE_CLASS: "small",
    GITPOD_HOST: "https://example.test",
    GITPOD_MEMORY: "2147",
    GITPOD_INTERVAL: "30000",
    GITPOD_THEIA_PORT: "23000",
    GITPOD_GIT_USER_NAME: "Ada",
    GITPOD_GIT_USER_EMAIL: "ada@example.test",
    GITPOD_REPO_ROOT: "/workspace",
  };
  for (const [name, value] of Object.entries(expected))
    assert.equal(givenValue(variables.get(name)), value, name);
  assert.equal(variables.has("GITPOD_HEADLESS"), false);
  const prebuild = variablesOf({}, WorkspaceType.PREBUILD);
  assert.equal(givenValue(prebuild.get("GITPOD_HEADLESS")), "true");
  assert.equal(prebuild.has("GITPOD_GIT_USER_NAME"), false);
});

test("lists the roots of all repositories in the order of the initializers", () => {
  const git = (checkoutLocation: string) =>
    ({ spec: { $case: "git", value: { checkoutLocation } } }) as const;
  const initializer = [git("/first/"), git("second")];
  const variables = variablesOf({ initializer: { spec: { $case: "composite", value: { initializer } } } });
  assert.equal(givenValue(variables.get("GITPOD_REPO_ROOT")), "/workspace/first");
  assert.equal(givenValue(variables.get("GITPOD_REPO_ROOTS")), "/workspace/first,/workspace/second");
});
