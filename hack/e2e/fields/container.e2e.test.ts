import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { after, before, describe, test } from "node:test";
import { waitFor } from "../../lib/wait-for.ts";
import { containerOf, type Json, type PodLab, shell, startPodLab } from "../../system/pod-lab.ts";

const LIMIT = { timeout: 180_000 };
const ENTRY = "localhost/forage/entry:1";
const SAY = { text: '#!/bin/sh\necho "$0: $*"\necho "(that is all)"\nexec sleep 1000000\n', mode: 0o755 };

/** The largest value of a memory limit that means no limit, and the files of it in cgroups v2 and v1. */
const MEMORY_LIMIT =
  "cat /sys/fs/cgroup/memory.max 2>/dev/null || cat /sys/fs/cgroup/memory/memory.limit_in_bytes";
const CPU_LIMIT =
  "cat /sys/fs/cgroup/cpu.max 2>/dev/null || cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us /sys/fs/cgroup/cpu/cpu.cfs_period_us";
const CPU_SHARE = "cat /sys/fs/cgroup/cpu.weight 2>/dev/null || cat /sys/fs/cgroup/cpu/cpu.shares";

const services: Readonly<Record<string, Json>> = {
  named: { container: { name: "front", ...shell("hostname") } },
  neither: { container: { image: ENTRY } },
  "only-args": { container: { image: ENTRY, args: ["a b", "--privileged", ""] } },
  "only-command": { container: { image: ENTRY, command: ["/say.sh", "own"] } },
  both: { container: { image: ENTRY, command: ["/say.sh", "own"], args: ["and", "more"] } },
  expanded: {
    container: {
      image: ENTRY,
      env: [
        { name: "WHO", value: "forage" },
        { name: "GREETING", value: "hello $(WHO)" },
        { name: "LATER", value: "$(LAST)" },
        { name: "LAST", value: "z" },
      ],
      args: ["$(GREETING)", "$$(WHO)", "$(NOBODY)", "$(LATER)", "$WHO"],
    },
  },
  env: {
    container: {
      env: [
        { name: "EMPTY", value: "" },
        { name: "LINES", value: "one\ntwo" },
        { name: "with.dots-and", value: "--privileged" },
        { name: "QUOTES", value: `"a" 'b' \\ $HOME` },
      ],
      ...shell(
        `printf '[%s][%s][%s]\\n' "$EMPTY" "$LINES" "$QUOTES"; tr '\\0' '\\n' < /proc/1/environ | grep '^with.dots'`,
      ),
    },
  },
  workdir: { container: { working_dir: "/usr/./bin/", ...shell("pwd") } },
  "new-workdir": { container: { working_dir: "/made/for me", ...shell("pwd") } },
  ports: {
    container: {
      ...shell("httpd -p 8080 -h /etc"),
      ports: [
        { name: "http", container_port: 8080 },
        { name: "echo", container_port: 9090, protocol: "UDP" },
      ],
    },
  },
  sctp: { container: { ...shell("true"), ports: [{ container_port: 9090, protocol: "SCTP" }] } },
  resources: {
    container: {
      ...shell(`${MEMORY_LIMIT}; ${CPU_LIMIT}; ${CPU_SHARE}`),
      resources: { requests: { cpu: "500m", memory: "16Mi" }, limits: { cpu: "750m", memory: "48Mi" } },
    },
  },
  oom: {
    container: {
      command: ["sh", "-c", "echo filling; exec dd if=/dev/zero of=/dev/null bs=100M count=1"],
      resources: { limits: { memory: "16Mi" } },
    },
  },
};

describe("fields of containers on a real host", { concurrency: false }, () => {
  let lab: PodLab;
  before(async () => {
    lab = await startPodLab();
    await lab.host.loadImage({
      name: ENTRY,
      entrypoint: ["/say.sh", "image"],
      cmd: ["default"],
      files: { "/say.sh": SAY },
    });
    await lab.apply(services);
  }, LIMIT);
  after(() => lab?.close(), LIMIT);

  test("container.name: commands and logs identify it by its name", LIMIT, async () => {
    assert.match(await lab.output("named", "front"), /^named-/);
    const { stderr, exitCode } = await lab.exec("named", ["true"], "front");
    assert.equal(exitCode, 0, stderr);
  });

  test("container.command and args: combine with ENTRYPOINT and CMD as in Kubernetes", LIMIT, async () => {
    assert.equal(await lab.output("neither"), "/say.sh: image default\n");
    assert.equal(await lab.output("only-args"), "/say.sh: image a b --privileged \n");
    assert.equal(await lab.output("only-command"), "/say.sh: own\n");
    assert.equal(await lab.output("both"), "/say.sh: own and more\n");
  });

  test("container.command and args: $(NAME) becomes the variable's value", LIMIT, async () => {
    assert.equal(await lab.output("expanded"), "/say.sh: image hello forage $(WHO) $(NOBODY) $(LAST) $WHO\n");
  });

  test("env.name and value: any text arrives unchanged", LIMIT, async () => {
    const expected = `[][one\ntwo]["a" 'b' \\ $HOME]\nwith.dots-and=--privileged\n`;
    assert.equal(await lab.output("env"), expected);
  });

  test("container.working_dir: the process starts in it, and it is made if missing", LIMIT, async () => {
    assert.equal(await lab.output("workdir"), "/bin\n");
    assert.equal(await lab.output("new-workdir"), "/made/for me\n");
  });

  test("ports: TCP and UDP get ports of the host that lead to the container", LIMIT, async () => {
    const { status } = await lab.ready("ports");
    const hostPort = (containerPort: number, protocol: string) =>
      status?.hostPorts?.find((it) => it.containerPort === containerPort && it.protocol === protocol)
        ?.hostPort ?? 0;
    const answer = await fetch(`http://127.0.0.1:${hostPort(8080, "TCP")}/passwd`);
    assert.match(await answer.text(), /^root:/);
    // No socket listens there. The pod's network stack counts the datagrams.
    await knockUntil(hostPort(9090, "UDP"), async () => {
      const { stdout } = await lab.exec("ports", ["cat", "/proc/net/snmp"]);
      const [, , noPorts] = /^Udp: (\d+) (\d+) /m.exec(stdout) ?? [];
      return Number(noPorts) > 0;
    });
  });

  test("ports: SCTP is translated, or refused if the kernel does not support it", LIMIT, async () => {
    const decided = await lab.until("sctp", "is ready or refused", ({ status }) => {
      return status?.ready === true || status?.reason === "InvalidSpec";
    });
    const { reason, message, hostPorts } = decided.status ?? {};
    if (reason === "InvalidSpec") assert.match(message ?? "", /port 9090: .*kernel has no SCTP/);
    else assert.equal(hostPorts?.[0]?.protocol, "SCTP");
  });

  test("resources.limits.memory and cpu, requests.cpu: the container's cgroup has them", LIMIT, async () => {
    const lines = (await lab.output("resources")).trim().split(/\s+/);
    const [memory, quota, period, share] = lines.map(Number);
    assert.equal(memory, 48 * 1024 * 1024);
    assert.equal((quota ?? 0) / (period ?? 1), 0.75);
    // 512 shares, converted to v2's weights.
    assert.ok([512, 20].includes(share ?? 0), `${share}`);
  });

  test(
    "resources.limits.memory: a container that exceeds it is killed, and the status contains OOMKilled",
    LIMIT,
    async () => {
      const pod = await lab.until(
        "oom",
        "was killed",
        (it) => containerOf(it)?.lastTermination !== undefined,
      );
      assert.equal(containerOf(pod)?.lastTermination?.reason, "OOMKilled");
    },
  );
});

async function knockUntil(port: number, heard: () => Promise<boolean>): Promise<void> {
  const socket = createSocket("udp4");
  // A closed port is reported as an error of the socket.
  socket.on("error", () => {});
  const again = setInterval(() => socket.send("knock", port, "127.0.0.1"), 100);
  try {
    await waitFor(heard, { what: "a datagram has reached the pod", limitMs: 60_000 });
  } finally {
    clearInterval(again);
    socket.close();
  }
}
