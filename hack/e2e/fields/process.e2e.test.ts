import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { containerOf, type Json, type PodLab, shell, startPodLab } from "../../system/pod-lab.ts";

const LIMIT = { timeout: 180_000 };

const field = (name: string, field_ref: string) => ({ name, field_ref });
const amount = (name: string, resource_field_ref: string) => ({ name, resource_field_ref });
const DEVICE = "example.com/log";

const services: Readonly<Record<string, Json>> = {
  facts: {
    container: {
      env: [
        field("NAME", "metadata.name"),
        field("NAMESPACE", "metadata.namespace"),
        field("POD_UID", "metadata.uid"),
        field("TIER", "metadata.labels['example.com/tier']"),
        field("NOTE", "metadata.annotations['example.com/note']"),
        field("NOTHING", "metadata.labels['nothing']"),
        field("NODE", "spec.nodeName"),
        field("ACCOUNT", "spec.serviceAccountName"),
        field("POD_IP", "status.podIP"),
        field("HOST_IP", "status.hostIP"),
        { name: "BOTH", value: "$(NODE)/$(TIER)" },
      ],
      ...shell("tr '\\0' '\\n' < /proc/1/environ; hostname -i"),
    },
    pod_config: {
      labels: { "example.com/tier": "front" },
      annotations: { "example.com/note": "any $(NODE) text" },
    },
  },
  amounts: {
    container: {
      env: [
        amount("REQUESTED_CPU", "requests.cpu"),
        amount("REQUESTED_MEMORY", "requests.memory"),
        amount("REQUESTED_DISK", "requests.ephemeral-storage"),
        amount("CPU", "limits.cpu"),
        amount("MEMORY", "limits.memory"),
        amount("DISK", "limits.ephemeral-storage"),
      ],
      resources: { requests: { cpu: "250m", memory: "16Mi" }, limits: { cpu: "1500m", memory: "32Mi" } },
      ...shell('echo "$REQUESTED_CPU $REQUESTED_MEMORY $REQUESTED_DISK $CPU $MEMORY"; echo "$DISK"'),
    },
  },
  open: { container: { stdin: true, command: ["sh", "-c", "cat; echo ended; exec sleep 1000000"] } },
  closed: { container: shell("cat; echo ended") },
  terminal: { container: { tty: true, stdin: true, ...shell("test -t 0 && test -t 1 && tty") } },
  plain: { container: shell("tty; true") },
  device: {
    container: { ...shell("ls /dev/forage*"), resources: { limits: { extended: { [DEVICE]: "1" } } } },
  },
  "no-device": {
    container: { ...shell("true"), resources: { limits: { extended: { [DEVICE]: "2" } } } },
  },
  other: { container: shell("true"), pod_config: { runtime_class_name: "wrapped" } },
  "no-such-class": { container: shell("true"), pod_config: { runtime_class_name: "elsewhere" } },
};

describe("environment of a process in its pod and on its host", { concurrency: false }, () => {
  let lab: PodLab;
  let wrapper = "";
  before(async () => {
    lab = await startPodLab({
      agent: (dir) => {
        wrapper = `${dir}/wrapped-runc`;
        writeFileSync(wrapper, `#!/bin/sh\necho "$@" >> ${dir}/wrapped.log\nexec runc "$@"\n`, {
          mode: 0o755,
        });
        return {
          runtimeClasses: { wrapped: wrapper },
          devices: { [DEVICE]: [{ path: "/dev/null", containerPath: "/dev/forage0" }] },
        };
      },
    });
    await lab.apply(services);
  }, LIMIT);
  after(() => lab?.close(), LIMIT);

  test("env.field_ref: fields of the pod and its node", LIMIT, async () => {
    const text = await lab.output("facts");
    const pod = await lab.ready("facts");
    const lines = new Set(text.split("\n"));
    for (const [name, value] of Object.entries({
      NAME: pod.name,
      NAMESPACE: "e2e",
      POD_UID: pod.uid,
      TIER: "front",
      NOTE: "any $(NODE) text",
      NOTHING: "",
      NODE: "n1",
      ACCOUNT: "",
      POD_IP: pod.status?.podIp,
      HOST_IP: "127.0.0.1",
      BOTH: "n1/front",
    }))
      assert.ok(lines.has(`${name}=${value}`), `${name}=${value} is not in\n${text}`);
    assert.match(text, new RegExp(`^${pod.status?.podIp}\\s*$`, "m"), "the address is the interface's");
  });

  test("env.resource_field_ref: whole cores and bytes, the node's if there is no limit", LIMIT, async () => {
    const [amounts, disk] = (await lab.output("amounts")).split("\n");
    assert.equal(amounts, `1 ${16 * 1024 ** 2} 0 2 ${32 * 1024 ** 2}`);
    assert.ok(Number(disk) > 1024 ** 2, disk);
  });

  test("stdin: remains open, or is at its end from the start", LIMIT, async () => {
    await lab.output("closed");
    await lab.ready("open");
    const { stdout } = await lab.exec("open", ["sh", "-c", "tr '\\0' ' ' < /proc/1/cmdline"]);
    assert.match(stdout, /cat; echo ended/, "the script has not gone on");
    assert.equal(await lab.output("closed"), "ended\n");
  });

  test("tty: a terminal for the process, or none", LIMIT, async () => {
    assert.match(await lab.output("terminal"), /^\/dev\//);
    assert.match(await lab.output("plain"), /not a tty/);
  });

  test("resources.extended: devices that the agent declares, as many as there are", LIMIT, async () => {
    assert.equal(await lab.output("device"), "/dev/forage0\n");
    const refused = await lab.until("no-device", "has a reason", (pod) => (pod.unschedulable ?? "") !== "");
    assert.match(refused.unschedulable ?? "", /insufficient example\.com\/log/);
  });

  test(
    "runtime_class_name: the runtime that the agent declares, and no node where none does",
    LIMIT,
    async () => {
      await lab.ready("other");
      assert.match(readFileSync(`${lab.host.dir}/wrapped.log`, "utf8"), /create/);
      const refused = await lab.until(
        "no-such-class",
        "has a reason",
        (pod) => (pod.unschedulable ?? "") !== "",
      );
      assert.match(refused.unschedulable ?? "", /runtime class/i);
      assert.equal(containerOf(refused), undefined);
    },
  );
});
