import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { rootFileSystem } from "../lib/busybox-image.ts";
import { packOciArchive } from "../lib/oci-archive.ts";
import { run } from "../lib/run.ts";
import { packTar } from "../lib/tar.ts";
import { waitFor } from "../lib/wait-for.ts";
import { type Fleet, type FleetNode, startFleet } from "../system/fleet.ts";

const LIMIT = { timeout: 180_000 };
const LIMIT_MS = 90_000;
const HOSTNAME = "kubernetes.io/hostname";

/** Serves its own name to every client on port 8080. */
const APP = "mkdir -p /tmp/www && echo $POD > /tmp/www/index.html && exec httpd -f -p 8080 -h /tmp/www";
/** `get HOST PORT` requests a page with nc, because busybox's statically linked wget fails to resolve names. */
const GET = `get() { printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 5 $1 $2 | tail -n 1; }; `;

interface PodJson {
  readonly name: string;
  readonly node?: string;
  readonly stopping?: boolean;
  readonly nodeLost?: boolean;
  readonly workloadName: string;
  readonly status?: { readonly ready?: boolean };
}

describe("a fleet of two nodes with networks of their own", { concurrency: false }, () => {
  let fleet: Fleet;
  let nodePort = 0;

  before(async () => {
    // Short times, because the test measures replacements.
    const nodes = { unreachableTolerationSeconds: 3, recoveryGraceSeconds: 0 };
    fleet = await startFleet(2, { nodes }, { agent: { images: { tagsFrom: ["n1"] } } });
    const spread = [
      {
        maxSkew: 1,
        topologyKey: HOSTNAME,
        whenUnsatisfiable: "ScheduleAnyway",
        labelSelector: { matchLabels: { app: "web" } },
      },
    ];
    const web = { labels: { app: "web" }, topologySpreadConstraints: spread };
    await apply([
      workload("web", 2, APP, web),
      workload("client-1", 1, "exec sleep 100000", { nodeSelector: { [HOSTNAME]: "n1" } }),
      workload("client-2", 1, "exec sleep 100000", { nodeSelector: { [HOSTNAME]: "n2" } }),
      {
        name: "web",
        service: { target: "web", type: "NodePort", ports: [{ name: "http", port: 80, targetPort: 8080 }] },
      },
    ]);
    await waitFor(
      async () =>
        (await serving("web")).length === 2 &&
        (await serving("client-1")).length === 1 &&
        (await serving("client-2")).length === 1,
      { what: "all pods are ready", limitMs: LIMIT_MS },
    );
    const [service] = await fleet.ask<{ nodePorts?: { nodePort: number }[] }[]>([
      "get",
      "services",
      "-n",
      "e2e",
    ]);
    nodePort = service?.nodePorts?.[0]?.nodePort ?? 0;
  }, LIMIT);
  after(() => fleet?.close(), LIMIT);

  test("pods of every node reach a service's pods on all nodes by its name", LIMIT, async () => {
    const names = (await serving("web")).map(({ name }) => name).sort();
    assert.deepEqual((await serving("web")).map(({ node }) => node).sort(), ["n1", "n2"]);
    for (const client of ["client-1", "client-2"]) {
      await waitFor(async () => (await answers(client, 30)).join() === names.join(), {
        what: `${client} reaches both`,
        limitMs: LIMIT_MS,
      });
    }
  });

  test("a node gets an image from another node, without a registry", LIMIT, async () => {
    const image = "registry.invalid/shop/shared:1";
    const layer = packTar([{ type: "file", path: "random", content: randomBytes(1 << 20) }]);
    const path = join(fleet.nodes[0]?.host.dir ?? "", "shared.tar");
    writeFileSync(path, packOciArchive({ reference: image, layer, entrypoint: [], cmd: [], env: [] }));
    await fleet.ask(["image", "push", path, "--node", "n1", "-n", "e2e", "-o", "json"]);
    const prefetch = (namespace: string) =>
      fleet.forageInProcess(["image", "prefetch", image, "--from", "n1", "--node", "n2", "-n", namespace]);
    const foreign = await prefetch("other");
    assert.deepEqual(
      [foreign.exitCode, /is not on this node for the namespace other/.test(foreign.stderr)],
      [1, true],
    );
    // The second node finds the image there.
    for (const _ of [1, 2]) {
      const { exitCode, stdout, stderr } = await prefetch("e2e");
      assert.deepEqual([exitCode, stdout], [0, `n2: ${image} is on the node\n`], stderr);
    }
    const removed = await fleet.forageInProcess(["image", "rm", image, "--node", "n2", "-n", "e2e"]);
    assert.equal(removed.stdout, `n2: ${image} removed\n`, removed.stderr);
  });

  test(
    "a pod whose registry is down gets its image from another node, by the digest of an index",
    LIMIT,
    async () => {
      const layer = packTar([...(await rootFileSystem({}))]);
      // No program listens there, so a pull fails at once.
      const name = "127.0.0.1:1/shop/indexed";
      const [{ host }] = fleet.nodes as [FleetNode, ...FleetNode[]];
      const path = join(host.dir, "indexed.tar");
      const cmd = ["sleep", "100000"];
      const content = { layer, entrypoint: [], cmd, env: ["PATH=/bin"], indexed: true };
      writeFileSync(path, packOciArchive({ reference: `${name}:1`, ...content }));
      const ctr = (...args: string[]) =>
        run("ctr", ["--address", host.containerd.address, "--namespace", host.namespace, "images", ...args]);
      await ctr("import", path);
      const { stdout } = await ctr("ls", `name==${name}:1`);
      const digest = /sha256:[0-9a-f]{64}/.exec(stdout)?.[0] ?? "";
      const image = `${name}@${digest}`;
      await ctr("tag", `${name}:1`, image);
      // The agent lists its images again after it has changed one.
      await fleet.ask(["image", "push", join(host.dir, "shared.tar"), "--node", "n1", "-n", "e2e"]);
      await waitFor(
        async () =>
          (await fleet.ask<{ image: string }[]>(["image", "ls", "--node", "n1"])).some(
            (it) => it.image === image,
          ),
        { what: "n1 reports the image", limitMs: LIMIT_MS },
      );
      await apply([
        workload("indexed", 1, "", { nodeSelector: { [HOSTNAME]: "n2" } }, { image, command: cmd }),
      ]);
      await waitFor(async () => (await serving("indexed")).length === 1, {
        what: "the pod runs on n2",
        limitMs: LIMIT_MS,
      });
    },
  );

  test("a pod gets the image of a tag from the node that its host trusts", LIMIT, async () => {
    // No program listens there, so a pull fails at once.
    const image = "127.0.0.1:1/shop/tagged:1";
    const path = join(fleet.nodes[0]?.host.dir ?? "", "tagged.tar");
    const layer = packTar([...(await rootFileSystem({}))]);
    const command = ["sleep", "100000"];
    const content = { layer, entrypoint: [], cmd: command, env: ["PATH=/bin"] };
    writeFileSync(path, packOciArchive({ reference: image, ...content }));
    await fleet.ask(["image", "push", path, "--node", "n1", "-n", "e2e", "-o", "json"]);
    await apply([workload("tagged", 1, "", { nodeSelector: { [HOSTNAME]: "n2" } }, { image, command })]);
    await waitFor(async () => (await serving("tagged")).length === 1, {
      what: "the pod runs on n2",
      limitMs: LIMIT_MS,
    });
  });

  test("doctor finds a firewall between hosts, and a link with a smaller MTU", LIMIT, async () => {
    assert.deepEqual(await pathFindings(), ["path-mtu ok", "reachable ok"]);
    const network = `net-${fleet.nodes[1]?.host.name}`;
    const inside = (args: readonly string[], input?: string) =>
      run("nsenter", [`--net=/run/netns/${network}`, "--", ...args], input === undefined ? {} : { input });
    const ports = "table inet cut {\nchain in { type filter hook prerouting priority -300;";
    await inside(["nft", "-f", "-"], `${ports} ip saddr 198.18.0.0/16 tcp dport 20000-29999 drop; }\n}\n`);
    await inside(["ip", "link", "set", "eth0", "mtu", "1300"]);
    try {
      assert.deepEqual(await pathFindings(), ["path-mtu problem", "reachable problem"]);
    } finally {
      await inside(["nft", "delete", "table", "inet", "cut"]);
      await inside(["ip", "link", "set", "eth0", "mtu", "1500"]);
    }
  });

  test("a node port reaches the pods of all nodes from outside, on every node", LIMIT, async () => {
    const names = (await serving("web")).map(({ name }) => name).sort();
    for (const { address } of fleet.nodes) {
      const found = new Set<string>();
      for (let i = 0; i < 30; i++) found.add(await page(address, nodePort));
      assert.deepEqual([...found].sort(), names, address);
    }
  });

  test(
    "a node that is lost: its pods are replaced, clients use others, and it returns without surplus",
    LIMIT,
    async (t) => {
      const [, lost] = fleet.nodes;
      await lost?.connected(false);
      const sinceMs = performance.now();
      const replaced = async (): Promise<boolean> => {
        const pods = await serving("web");
        return pods.length === 2 && pods.every(({ node }) => node === "n1");
      };
      const gone = async (): Promise<boolean> =>
        (await fleet.ask<{ name: string; ready?: boolean }[]>(["node", "ls"])).some(
          ({ name, ready }) => name === lost?.name && ready !== true,
        );
      await waitFor(gone, { what: "the node is unreachable", limitMs: LIMIT_MS });
      t.diagnostic(`unreachable after ${seconds(sinceMs)} s`);
      await waitFor(replaced, { what: "both pods serve on the node that is left", limitMs: LIMIT_MS });
      t.diagnostic(`its pods were replaced after ${seconds(sinceMs)} s`);
      const names = (await serving("web")).map(({ name }) => name).sort();
      await waitFor(async () => (await answers("client-1", 30)).join() === names.join(), {
        what: "clients reach them only",
        limitMs: LIMIT_MS,
      });
      await lost?.connected(true);
      let seen: readonly PodJson[] = [];
      const settled = async (): Promise<boolean> => {
        const nodes = await fleet.ask<{ ready?: boolean }[]>(["node", "ls"]);
        seen = await allPods();
        const pods = seen.filter(({ workloadName }) => workloadName === "web");
        return nodes.every(({ ready }) => ready === true) && pods.length === 2 && pods.every(isServing);
      };
      await waitFor(settled, {
        what: "the node is back, and nothing of the old pods is left",
        limitMs: LIMIT_MS,
        explain: () => JSON.stringify(seen),
      });
    },
  );

  test("a drain never leaves fewer ready pods than the desired number", LIMIT, async (t) => {
    let fewest = 2;
    let watching = true;
    const watch = (async () => {
      while (watching) {
        fewest = Math.min(fewest, (await serving("web")).length);
        await delay(50);
      }
    })();
    const { exitCode, stderr, stdout } = await fleet.forage([
      "node",
      "drain",
      "n1",
      "--wait",
      "--timeout",
      "90s",
    ]);
    watching = false;
    await watch;
    // The client may only run on this node, so the drain can't finish.
    t.diagnostic(`drain: ${exitCode} ${stdout} ${stderr}`);
    const moved = await serving("web");
    assert.deepEqual(
      moved.map(({ node }) => node),
      ["n2", "n2"],
    );
    assert.equal(fewest, 2);
    assert.equal((await fleet.forage(["node", "uncordon", "n1"])).exitCode, 0);
  });

  /** Returns the results of the checks of the path to n2. Asserts that the hosts' own findings are included. */
  async function pathFindings(): Promise<string[]> {
    const { stdout, stderr } = await fleet.forageInProcess(["doctor", "--all", "-o", "json"]);
    const all = JSON.parse(stdout) as Record<"subject" | "check" | "state", string>[];
    for (const check of ["clock-difference", "pod-dns", "disk"])
      for (const subject of ["node/n1", "node/n2"])
        assert.ok(
          all.some((it) => it.subject === subject && it.check === check && it.state === "ok"),
          `${subject} ${check}: ${stdout}${stderr}`,
        );
    const paths = ["path-mtu", "reachable"];
    const found = all.filter(({ subject, check }) => subject === "node/n2" && paths.includes(check));
    return found.map(({ check, state }) => `${check} ${state}`).sort();
  }

  async function apply(resources: readonly object[]): Promise<void> {
    const { exitCode, stderr } = await fleet.forage(
      ["apply", "-f", "-"],
      JSON.stringify({ namespace: "e2e", resources }),
    );
    assert.equal(exitCode, 0, stderr);
  }

  function allPods(): Promise<PodJson[]> {
    return fleet.ask<PodJson[]>(["get", "pods", "-n", "e2e"]);
  }

  async function serving(workloadName: string): Promise<PodJson[]> {
    return (await allPods()).filter((pod) => pod.workloadName === workloadName && isServing(pod));
  }

  async function answers(client: string, times: number): Promise<string[]> {
    const [pod] = await serving(client);
    const script = `${GET} i=0; while [ $i -lt ${times} ]; do get web 80; i=$((i+1)); done`;
    const { stdout } = await fleet.forage(["exec", pod?.name ?? "", "-n", "e2e", "--", "sh", "-c", script]);
    return [...new Set(stdout.trim().split("\n"))].sort();
  }
});

function isServing({ status, stopping, nodeLost }: PodJson): boolean {
  return status?.ready === true && stopping !== true && nodeLost !== true;
}

function seconds(sinceMs: number): string {
  return ((performance.now() - sinceMs) / 1000).toFixed(1);
}

/** Returns the page at `/`, or the error. */
function page(host: string, port: number): Promise<string> {
  return new Promise((resolve) => {
    let text = "";
    const socket = connect({ host, port, timeout: 10_000 }, () => socket.write("GET / HTTP/1.0\r\n\r\n"));
    socket.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
    });
    socket.on("timeout", () => socket.destroy(new Error("silent")));
    socket.on("error", (error) => resolve(error.message));
    socket.on("close", () => resolve(text.trim().split("\n").at(-1) ?? ""));
  });
}

function workload(
  name: string,
  replicas: number,
  script: string,
  podConfig: object,
  container: object = {},
): object {
  return {
    name,
    containerService: {
      scaling: { replicas },
      podConfig: { terminationGracePeriodSeconds: 1, ...podConfig },
      container: {
        name: "main",
        image: "localhost/forage/busybox:1",
        command: ["sh", "-c", script],
        env: [{ name: "POD", fieldRef: "metadata.name" }],
        ports: [{ name: "http", containerPort: 8080 }],
        resources: { requests: { cpu: "10m", memory: "16Mi" } },
        ...container,
      },
    },
  };
}
