import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { run } from "../../lib/run.ts";
import { waitFor } from "../../lib/wait-for.ts";
import { putObject } from "../../system/objects.ts";
import { type Json, type PodLab, shell, startPodLab } from "../../system/pod-lab.ts";

const LIMIT = { timeout: 180_000 };

/** A value in a secret that no container prints. */
const CANARY = "canary-3f9c1e";
const AT = "/v";
const withVolume = (source: Json, script: string, mount: Json = {}): Json => ({
  volumes: [{ name: "v", ...source }],
  container: { ...shell(script), volume_mounts: [{ name: "v", mount_path: AT, ...mount }] },
});

const services: Readonly<Record<string, Json>> = {
  env: {
    container: {
      env: [
        { name: "PASSWORD", secret_ref: { secret_name: "db", key: "password" } },
        { name: "MODE", config_ref: { config_name: "app", key: "mode" } },
        { name: "URL", value: "postgres://user:$(PASSWORD)@db/$(MODE)" },
      ],
      ...shell('echo "$URL"'),
    },
  },
  late: {
    container: {
      env: [{ name: "TOKEN", secret_ref: { secret_name: "late", key: "token" } }],
      ...shell('echo "$TOKEN"'),
    },
  },
  secret: withVolume(
    { secret: { secret_name: "db" } },
    "stat -f -c %T /v; stat -L -c '%n %a' /v/*; cat /v/password",
  ),
  chosen: withVolume(
    {
      secret: {
        secret_name: "db",
        default_mode: 0o440,
        items: [
          { key: "password", path: "a/pw" },
          { key: "user", path: "u", mode: 0o400 },
        ],
      },
    },
    "cd /v; stat -L -c '%n %a' a/pw u; ls",
  ),
  optional: withVolume({ secret: { secret_name: "none", optional: true } }, "ls -A /v"),
  config: withVolume({ config_map: { config_map_name: "app" } }, "cat /v/mode; touch /v/x 2>&1"),
  "config-chosen": withVolume(
    {
      config_map: {
        config_map_name: "app",
        default_mode: 0o400,
        items: [{ key: "mode", path: "the/mode", mode: 0o444 }],
      },
    },
    "cat /v/the/mode; stat -L -c %a /v/the/mode; ls /v",
  ),
  "config-missing": withVolume({ config_map: { config_map_name: "none" } }, "true"),
  "config-optional": withVolume({ config_map: { config_map_name: "none", optional: true } }, "ls -A /v"),
  claimed: withVolume({ pvc: { claim_name: "data" } }, "test -e /v/kept && cat /v/kept; echo kept > /v/kept"),
  "claim-read": withVolume({ pvc: { claim_name: "data", read_only: true } }, "touch /v/x 2>&1; true"),
  "claim-missing": withVolume({ pvc: { claim_name: "none" } }, "true"),
  account: {
    container: shell(
      "cat /var/run/secrets/forage.dev/serviceaccount/token; echo; cat /var/run/secrets/forage.dev/serviceaccount/namespace; echo",
    ),
    pod_config: { service_account_name: "web" },
  },
};

describe("secrets, config maps, claims and identities in pods on a real host", { concurrency: false }, () => {
  let lab: PodLab;
  const text = (values: Readonly<Record<string, string>>) =>
    Object.fromEntries(Object.entries(values).map(([key, value]) => [key, Buffer.from(value)]));
  const putSecret = (name: string, values: Readonly<Record<string, string>>) =>
    putObject(lab.system, "e2e", { name, spec: { $case: "secret", value: { data: text(values) } } });
  before(async () => {
    lab = await startPodLab();
    await putSecret("db", { user: CANARY, password: "first" });
    const config = { data: text({ mode: "fast" }) };
    await putObject(lab.system, "e2e", { name: "app", spec: { $case: "configMap", value: config } });
    await putObject(lab.system, "e2e", {
      name: "data",
      spec: { $case: "claim", value: { capacity: "16Mi" } },
    });
    await lab.apply(services);
  }, LIMIT);
  after(() => lab?.close(), LIMIT);

  const trouble = async (service: string, pattern: RegExp): Promise<void> => {
    await lab.until(service, `says ${pattern}`, (it) => {
      return pattern.test(`${JSON.stringify(it.status ?? {})} ${it.unschedulable}`);
    });
  };

  test("env.secret_ref and config_ref: values of a secret and a config map", LIMIT, async () => {
    assert.equal(await lab.output("env"), "postgres://user:first@db/fast\n");
  });

  test(
    "env.secret_ref: a missing secret is named in the status, and the container starts once it exists",
    LIMIT,
    async () => {
      await trouble("late", /secret late doesn't exist/);
      await putSecret("late", { token: "here" });
      assert.equal(await lab.output("late"), "here\n");
    },
  );

  test("volumes.secret: files on tmpfs with their modes, every key or selected ones", LIMIT, async () => {
    assert.equal(await lab.output("secret"), "tmpfs\n/v/password 644\n/v/user 644\nfirst");
    assert.equal(await lab.output("chosen"), "a/pw 440\nu 400\na\nu\n");
  });

  test("volumes.secret.optional: starts without the secret", LIMIT, async () => {
    assert.match(await lab.output("optional"), /^(\.\..*\n)*$/);
  });

  test(
    "volumes.config_map: read-only files, every key or selected ones, with their modes",
    LIMIT,
    async () => {
      assert.match(await lab.output("config"), /^fast.*Read-only file system\n$/);
      assert.equal(await lab.output("config-chosen"), "fast444\nthe\n");
    },
  );

  test("volumes.config_map.optional: starts without it, or waits and reports that", LIMIT, async () => {
    await lab.output("config-optional");
    await trouble("config-missing", /config map none doesn't exist/);
  });

  test("volumes.secret: a change reaches the files of running pods, all at once", LIMIT, async () => {
    await lab.output("secret");
    await putSecret("db", { user: "other", password: "second" });
    const cat = async () => (await lab.exec("secret", ["sh", "-c", "cat /v/user /v/password"])).stdout;
    await waitFor(async () => (await cat()) === "othersecond", {
      what: "the files have changed",
      limitMs: 60_000,
    });
  });

  test("volumes.pvc: content remains for later pods, and read_only forbids writing", LIMIT, async () => {
    assert.equal(await lab.output("claimed"), "");
    assert.match(await lab.output("claim-read"), /Read-only file system/);
    const args = ["delete", "container_service/claimed", "-n", "e2e", "--wait", "--timeout", "120s"];
    assert.equal((await lab.system.forage(args)).exitCode, 0);
    const { claimed } = services;
    await lab.apply({ later: claimed ?? {} });
    assert.equal(await lab.output("later"), "kept\n");
  });

  test("volumes.pvc: a missing claim is named in the status", LIMIT, async () => {
    await trouble("claim-missing", /claim .*none.*doesn't exist/);
  });

  test("service_account_name: a signed token in a file, which names the service account", LIMIT, async () => {
    const [token = "", namespace] = (await lab.output("account")).split("\n");
    assert.equal(namespace, "e2e");
    const claims = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());
    assert.match(JSON.stringify(claims), /"web"|:web"/);
    assert.ok(claims.exp * 1000 > Date.now());
  });

  test("secrets: no value is on a disk unencrypted", LIMIT, async () => {
    await lab.output("secret");
    // Other file systems, such as the tmpfs with the files of pods, are skipped.
    const search = ["-xdev", "-type", "f", "-exec", "grep", "-la", CANARY, "{}", "+"];
    const { stdout } = await run("find", [lab.host.dir, ...search], { allowFailure: true });
    assert.equal(stdout, "");
  });
});
