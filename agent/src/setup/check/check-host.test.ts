import assert from "node:assert/strict";
import { test } from "node:test";
import { readConfig } from "../../config.ts";
import type { PathSizes } from "../../examine/probe-path.ts";
import { checkHost, findingsText } from "./check-host.ts";
import type { CheckedHost, Finding } from "./finding.ts";

const GIBIBYTE = 2 ** 30;
const NOW_MS = Date.UTC(2030, 0, 1);

test("a host with everything required has no failure and no warning", async () => {
  const findings = await check({});
  assert.deepEqual(
    findings.filter(({ result }) => result !== "ok"),
    [],
  );
  assert.equal(new Set(findings.map(({ check }) => check)).size, 12);
});

const faults: Readonly<
  Record<string, [fault: Fault, result: Finding["result"], text: RegExp, remedy: RegExp]>
> = {
  "no overlay filesystem": [
    { texts: { "/proc/filesystems": "nodev\tproc\n" }, failing: ["modprobe"] },
    ...(["failure", /no overlay filesystem/, /load the module overlay/] as const),
  ],
  "cgroups v2 without the memory controller": [
    { texts: { "/sys/fs/cgroup/cgroup.controllers": "cpu pids\n" } },
    ...(["failure", /cgroups v2 lack memory/, /cgroup_enable=memory/] as const),
  ],
  "cgroups v1 without pids": [
    { texts: { "/sys/fs/cgroup/cgroup.controllers": undefined }, missing: ["/sys/fs/cgroup/pids"] },
    ...(["failure", /cgroups v1 lack pids/, /enable the controllers/] as const),
  ],
  "cgroups that can't be written to": [
    { readOnly: "/sys/fs/cgroup" },
    ...(["failure", /\/sys\/fs\/cgroup can't be written to/, /remount,rw/] as const),
  ],
  "no conntrack": [
    { missing: ["conntrack"] },
    ...(["failure", /conntrack is missing/, /apt install conntrack/] as const),
  ],
  "no NFS": [{ missing: ["mount.nfs"] }, "warning", /NFS volumes/, /apt install nfs-common/],
  "containerd that does not answer": [
    { failing: ["/usr/lib/forage/nerdctl --address"] },
    ...([
      "failure",
      /containerd does not answer on \/run\/containerd/,
      /systemctl enable --now containerd/,
    ] as const),
  ],
  "no CNI plugins": [
    { missing: ["/usr/lib/cni/bridge"] },
    ...(["failure", /\/usr\/lib\/cni lacks bridge/, /containernetworking-plugins/] as const),
  ],
  "a taken port": [
    { listenProblem: "listen EADDRINUSE", agentAnswers: false },
    ...(["failure", /127\.0\.0\.1:7602: listen EADDRINUSE/, /set http\.listen/] as const),
  ],
  "ports of the host among those of pods": [
    { texts: { "/proc/sys/net/ipv4/ip_local_port_range": "1024\t65000\n" } },
    ...(["warning", /1024-65000, and pods' ports are 20000-29999/, /don't overlap/] as const),
  ],
  "a pod network that the host is in": [
    { answers: { "ip -json": '[{"dst":"10.64.3.0/24","dev":"eth0","scope":"link"}]' } },
    ...(["failure", /overlaps 10\.64\.3\.0\/24/, /set podCidr/] as const),
  ],
  "a clock before the coordinator's certificate": [
    { certificate: { fromMs: NOW_MS + 3_600_000, toMs: NOW_MS + 7_200_000 } },
    ...(["failure", /the clock says 2030-01-01T00:00/, /compare the clocks/] as const),
  ],
  "a coordinator that can't be reached": [
    { certificate: undefined },
    ...(["failure", /10\.0\.0\.1:7600: refused/, /open the port in firewalls/] as const),
  ],
  "an unsynchronized clock": [
    { answers: { timedatectl: "no\n" } },
    ...(["warning", /not synchronized/, /systemd-timesyncd or chrony/] as const),
  ],
  "no name server": [
    { texts: { "/etc/resolv.conf": "search example\n" } },
    ...(["warning", /names no name server/, /no other names/] as const),
  ],
  "one of two name servers that keeps silent": [
    { silentServers: ["10.0.0.53"] },
    ...(["warning", /don't answer: 10\.0\.0\.53$/, /open port 53/] as const),
  ],
  "name servers that all keep silent": [
    { silentServers: ["10.0.0.53", "10.0.0.54"] },
    ...(["failure", /10\.0\.0\.53, 10\.0\.0\.54/, /\/etc\/resolv\.conf/] as const),
  ],
  "a path that takes smaller packets than the link": [
    { path: { link: "eth0", linkMtu: 1_500, pathMtu: 1_400 } },
    ...(["warning", /only those of up to 1400 reach 10\.0\.0\.1/, /ip link set eth0 mtu 1400/] as const),
  ],
  "a link that is too small for IPv6": [
    { path: { link: "eth0", linkMtu: 1_000, pathMtu: 1_000 } },
    ...(["warning", /MTU of 1000/, /mtu 1280/] as const),
  ],
  "a full disk": [{ freeBytes: 1 }, "failure", /0Mi of disk are left/, /free space/],
};

for (const [name, [fault, result, text, remedy]] of Object.entries(faults))
  test(`a host with ${name} gets a ${result} and its remedy`, async () => {
    const wrong = (await check(fault)).filter((it) => it.result !== "ok");
    assert.deepEqual(
      wrong.map((it) => it.result),
      [result],
    );
    assert.match(wrong[0]?.message ?? "", text);
    assert.match(wrong[0]?.remedy ?? "", remedy);
  });

test("a path that can't be measured is not a failure", async () => {
  for (const path of [undefined, { link: "eth0", linkMtu: 1_500, pathMtu: undefined }])
    assert.deepEqual(
      (await check({ path })).filter(({ result }) => result !== "ok"),
      [],
    );
});

test("a port that the running agent uses is not a failure", async () => {
  const findings = await check({ listenProblem: "listen EADDRINUSE", agentAnswers: true });
  assert.ok(findings.every(({ result }) => result === "ok"));
});

test("prints each finding in one line, followed by its remedy", () => {
  const text = findingsText([
    { check: "cni", result: "ok", message: "plugins" },
    { check: "containerd", result: "failure", message: "no\nanswer", remedy: "start it" },
  ]);
  assert.equal(
    text,
    "ok       cni         plugins\nfailure  containerd  no answer\n                     start it\n",
  );
});

interface Fault {
  readonly texts?: Readonly<Record<string, string | undefined>>;
  /** Missing paths, or their last names. */
  readonly missing?: readonly string[];
  readonly readOnly?: string;
  /** The first words of commands that fail. */
  readonly failing?: readonly string[];
  readonly answers?: Readonly<Record<string, string>>;
  readonly listenProblem?: string;
  readonly agentAnswers?: boolean;
  readonly freeBytes?: number;
  readonly silentServers?: readonly string[];
  /** The measured path. Undefined: no route leads to the coordinator. */
  readonly path?: PathSizes | undefined;
  readonly certificate?: { readonly fromMs: number; readonly toMs: number } | undefined;
}

async function check(fault: Fault): Promise<readonly Finding[]> {
  const config = await readConfig(
    ["--data-dir", "/var/lib/x", "--coordinator", "10.0.0.1:7600"],
    {},
    "host-1",
  );
  return await checkHost(aHost(fault), config);
}

function aHost(fault: Fault): CheckedHost {
  const texts: Readonly<Record<string, string | undefined>> = {
    "/proc/sys/kernel/osrelease": "6.1.0\n",
    "/proc/filesystems": "nodev\toverlay\n",
    "/etc/resolv.conf": "nameserver 10.0.0.53\nnameserver 10.0.0.54\n",
    "/proc/self/status": "Name:\tnode\nSeccomp:\t0\n",
    "/sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory pids\n",
    "/proc/sys/net/ipv4/ip_local_port_range": "32768\t60999\n",
    ...fault.texts,
  };
  const answers: Readonly<Record<string, string>> = {
    "/usr/lib/forage/nerdctl --version": "nerdctl version 2.3.5\n",
    "ip -json": "[]",
    timedatectl: "yes\n",
    ...fault.answers,
  };
  const path = "path" in fault ? fault.path : { link: "eth0", linkMtu: 1_500, pathMtu: 1_500 };
  const certificate = "certificate" in fault ? fault.certificate : { fromMs: NOW_MS - 1, toMs: NOW_MS + 1 };
  return {
    readText: async (path) => texts[path],
    exists: async (path) => !fault.missing?.some((it) => path === it || path.endsWith(`/${it}`)),
    isWritable: async (path) => path !== fault.readOnly,
    run: async (file, args) => {
      const line = [file, ...args].join(" ");
      if (fault.failing?.some((it) => line.startsWith(it))) return { ok: false, text: "no answer" };
      const found = Object.keys(answers).find((it) => line.startsWith(it));
      return { ok: true, text: answers[found ?? ""] ?? "" };
    },
    listenProblem: async () => fault.listenProblem,
    agentAnswers: async () => fault.agentAnswers ?? false,
    space: async () => ({
      ...{ totalBytes: 100 * GIBIBYTE, availableBytes: fault.freeBytes ?? 50 * GIBIBYTE },
      ...{ totalInodes: 0, availableInodes: 0 },
    }),
    certificatePeriod: async () => {
      if (certificate === undefined) throw new Error("refused");
      return certificate;
    },
    nameServerAnswers: async (address) => !fault.silentServers?.includes(address),
    pathSizes: async () => {
      if (path === undefined) throw new Error("no route");
      return path;
    },
    nowMs: () => NOW_MS,
  };
}
