import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { waitFor } from "../../lib/wait-for.ts";
import { containerOf, type Json, type PodLab, shell, startPodLab } from "../../system/pod-lab.ts";
import { freeAddresses } from "../../system/system.ts";

const LIMIT = { timeout: 180_000 };

const LOG: Json = { volume_mounts: [{ name: "v", mount_path: "/v" }] };
const note = (text: string, more = ""): Json => ({
  ...LOG,
  command: ["sh", "-c", `echo ${text} >> /v/log${more}`],
});
/** Records its start and its SIGTERM. */
const noting = (name: string): Json =>
  note(
    `${name} started`,
    `; trap 'echo ${name} stopped >> /v/log; exit 0' TERM; while :; do sleep 0.1; done`,
  );
const withLog = (dir: string, name: string, spec: Json): Json => ({
  ...spec,
  volumes: [{ name: "v", host_path: { path: `${dir}/${name}`, type: "DirectoryOrCreate" } }],
});

function services(dir: string, freePort: number, takenPort: number): Readonly<Record<string, Json>> {
  const resolv = shell("cat /etc/resolv.conf");
  const servers = { nameservers: ["192.0.2.53"], searches: ["example.com", "a.example."] };
  const options = [{ name: "ndots", value: "2" }, { name: "rotate" }];
  return {
    order: withLog(dir, "order", {
      init_containers: [
        { name: "first", ...note("first", "; sleep 1; test -e /v/again || { touch /v/again; exit 1; }") },
        { name: "second", ...note("second") },
      ],
      sidecars: [{ name: "side", ...noting("side") }],
      container: noting("main"),
      pod_config: { termination_grace_period_seconds: 60 },
    }),
    alone: {
      sidecars: [
        { name: "side", command: ["sh", "-c", "until test -e /tmp/die; do sleep 0.1; done; exit 1"] },
      ],
      container: shell("true"),
    },
    stuck: { init_containers: [{ name: "broken", command: ["false"] }], container: shell("true") },
    "ends-never": { container: { command: ["sh", "-c", "exit 3"] }, pod_config: { restart_policy: "Never" } },
    "ends-well": { container: { command: ["true"] }, pod_config: { restart_policy: "OnFailure" } },
    "ends-badly": { container: { command: ["false"] }, pod_config: { restart_policy: "OnFailure" } },
    "dns-first": { container: resolv },
    "dns-default": { container: resolv, pod_config: { dns_policy: "Default" } },
    "dns-none": {
      container: resolv,
      pod_config: { dns_policy: "None", dns_config: { ...servers, options } },
    },
    "dns-added": { container: resolv, pod_config: { dns_config: { ...servers, options } } },
    host: {
      container: {
        ...shell(`httpd -p ${freePort} -h /etc; ls -l /proc/self/ns/net`),
        ports: [{ container_port: freePort }],
      },
      pod_config: { host_network: true },
    },
    "host-taken": {
      container: {
        command: ["sh", "-c", `exec httpd -f -p ${takenPort} -h /etc`],
        ports: [{ container_port: takenPort }],
      },
      pod_config: { host_network: true },
    },
    "never-pulled": {
      container: { image: "localhost:1/no/such:1", image_pull_policy: "Never", ...shell("true") },
    },
    "present-only": { container: { image_pull_policy: "IfNotPresent", ...shell("true") } },
    "image-missing": { container: { image: "127.0.0.1:1/no/such:1", ...shell("true") } },
    "no-entrypoint": { container: { command: ["/no/such/program"] } },
    "like-an-option": { container: { args: ["--privileged", "-v", "/:/host"], command: ["echo", "--rm"] } },
  };
}

describe("whole pods on a real host", { concurrency: false }, () => {
  let lab: PodLab;
  let dir = "";
  let freePort = 0;
  before(async () => {
    lab = await startPodLab();
    dir = lab.host.dir;
    const [free = ""] = await freeAddresses(1);
    freePort = Number(free.split(":")[1]);
    // The agent's own port, on which no other program can listen.
    const takenPort = Number(lab.system.agentHttp.split(":")[1]);
    await lab.apply(services(dir, freePort, takenPort));
  }, LIMIT);
  after(() => lab?.close(), LIMIT);

  const lines = (name: string): string[] => readFileSync(`${dir}/${name}/log`, "utf8").trim().split("\n");

  test(
    "init_containers: each runs to its end in order, again if it fails, before all other containers",
    LIMIT,
    async () => {
      const { status } = await lab.ready("order");
      await waitFor(() => lines("order").includes("main started"), {
        what: "main has begun",
        limitMs: 60_000,
      });
      assert.deepEqual(lines("order"), ["first", "first", "second", "side started", "main started"]);
      const inits = status?.containers?.filter(({ init }) => init === true).map(({ name }) => name);
      assert.deepEqual(inits, ["first", "second"]);
    },
  );

  test(
    "init_containers: one that never succeeds keeps the pod from starting, and the status gives the reason",
    LIMIT,
    async () => {
      const pod = await lab.until("stuck", "waits", (it) => {
        return (containerOf(it, "broken")?.terminations?.length ?? 0) > 0;
      });
      assert.notEqual(pod.status?.ready, true);
      assert.equal(containerOf(pod)?.running, undefined);
    },
  );

  test("sidecars: start before the main container and stop after it", LIMIT, async () => {
    await lab.ready("order");
    const args = ["delete", "container_service/order", "-n", "e2e", "--wait", "--timeout", "120s"];
    const { exitCode, stderr } = await lab.system.forage(args);
    assert.equal(exitCode, 0, stderr);
    assert.deepEqual(lines("order").slice(-4), [
      "side started",
      "main started",
      "main stopped",
      "side stopped",
    ]);
  });

  test("sidecars: restart independently while the main container continues to run", LIMIT, async () => {
    await lab.ready("alone");
    await lab.exec("alone", ["touch", "/tmp/die"], "side");
    const pod = await lab.until("alone", "its sidecar was restarted", (it) => {
      return (containerOf(it, "side")?.restartCount ?? 0) > 0 && containerOf(it)?.running !== undefined;
    });
    assert.equal(containerOf(pod)?.restartCount ?? 0, 0);
  });

  test(
    "restart_policy: pods with Never and OnFailure may end and are replaced, and OnFailure restarts failed containers",
    LIMIT,
    async () => {
      const failed = await lab.until(
        "ends-never",
        "has failed",
        (it) => it.status?.phase === "POD_PHASE_FAILED",
      );
      assert.equal(containerOf(failed)?.restartCount ?? 0, 0);
      await lab.until("ends-never", "is replaced", ({ uid }) => uid !== failed.uid);
      const well = await lab.until(
        "ends-well",
        "has ended",
        (it) => it.status?.phase === "POD_PHASE_SUCCEEDED",
      );
      await lab.until("ends-well", "is replaced", ({ uid }) => uid !== well.uid);
      await lab.until("ends-badly", "was restarted", (it) => (containerOf(it)?.restartCount ?? 0) > 0);
    },
  );

  test("dns_policy: the host's servers, or only those of dns_config", LIMIT, async () => {
    const hosts = readFileSync("/etc/resolv.conf", "utf8").match(/^nameserver .*$/gm) ?? [];
    const usable = hosts.filter((line) => !/ (127\.|::1)/.test(line));
    const inherited = await lab.output("dns-default");
    for (const line of usable.slice(0, 3)) assert.ok(inherited.includes(line), inherited);
    // The agent's own server, on the bridge of the pod.
    assert.match(await lab.output("dns-first"), /^nameserver 10\.\d+\.\d+\.1$/m);
    const own = (await lab.output("dns-none")).match(/^nameserver .*$/gm);
    assert.deepEqual(own, ["nameserver 192.0.2.53"]);
  });

  test("dns_config: adds servers, search domains and options to those of the policy", LIMIT, async () => {
    for (const service of ["dns-none", "dns-added"]) {
      const text = await lab.output(service);
      assert.match(text, /^nameserver 192\.0\.2\.53$/m);
      assert.match(text, /^search .*example\.com a\.example/m);
      assert.match(text, /^options .*ndots:2.*rotate/m);
    }
  });

  test("host_network: the host's own network, with unchanged ports", LIMIT, async () => {
    const pod = await lab.ready("host");
    const answer = await fetch(`http://127.0.0.1:${freePort}/passwd`);
    assert.match(await answer.text(), /^root:/);
    assert.equal(pod.status?.hostPorts?.[0]?.hostPort, freePort);
  });

  test("host_network: a port that is in use on the host is reported", LIMIT, async () => {
    const pod = await lab.until("host-taken", "has failed or waits", (it) => {
      const container = containerOf(it);
      return container?.lastTermination !== undefined || (it.status?.message ?? "") !== "";
    });
    assert.match(JSON.stringify(pod.status), /in use|taken/i);
  });

  test("image_pull_policy: Never and IfNotPresent request no image that is present", LIMIT, async () => {
    await lab.ready("present-only");
    const pod = await lab.until("never-pulled", "says why", (it) => {
      return (containerOf(it)?.waiting?.message ?? "") !== "";
    });
    assert.match(containerOf(pod)?.waiting?.message ?? "", /not (present|here|there)|Never/i);
  });

  test("image: a failed pull is reported with the registry's answer", LIMIT, async () => {
    const pod = await lab.until("image-missing", "says why", (it) => {
      return (
        /ImagePull|ErrImage/.test(containerOf(it)?.waiting?.reason ?? "") &&
        (containerOf(it)?.waiting?.message ?? "").includes("no/such")
      );
    });
    assert.notEqual(pod.status?.ready, true);
  });

  test("command: a program that isn't in the image is named in the status", LIMIT, async () => {
    const pod = await lab.until("no-entrypoint", "says why", (it) => {
      return JSON.stringify(it.status ?? {}).includes("/no/such/program");
    });
    assert.notEqual(pod.status?.ready, true);
  });

  test("command and args: text that looks like an option is passed on", LIMIT, async () => {
    const pod = await lab.until("like-an-option", "has ended", (it) => {
      return containerOf(it)?.lastTermination !== undefined;
    });
    assert.equal(containerOf(pod)?.lastTermination?.exitCode ?? 0, 0);
    assert.match(containerOf(pod)?.lastTermination?.message ?? "", /--rm --privileged -v \/:\/host/);
  });

  test(
    "image: a name that looks like an option, or a path out of a volume, is rejected before anything is stored",
    LIMIT,
    async () => {
      const image = await lab.refused({ bad: { container: { image: "--privileged", ...shell("true") } } });
      assert.match(image, /container\.image: is not an image reference/);
      const mount = { name: "v", mount_path: "/v", sub_path: "a/../../b" };
      const path = await lab.refused({
        bad: {
          container: { ...shell("true"), volume_mounts: [mount] },
          volumes: [{ name: "v", empty_dir: {} }],
        },
      });
      assert.match(path, /volume_mounts\[0\]\.sub_path: must not contain '\.\.'/);
      const unknown = await lab.refused({
        bad: { container: { ...shell("true"), volume_mounts: [{ ...mount, sub_path: "" }] } },
      });
      assert.match(unknown, /is not the name of a volume/);
    },
  );
});
