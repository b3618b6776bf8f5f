import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Server as TcpServer } from "node:net";
import { after, before, describe, test } from "node:test";
import { containerOf, type Json, type PodLab, shell, startPodLab } from "../../system/pod-lab.ts";

const LIMIT = { timeout: 180_000 };

const exec = (script: string): Json => ({ exec: { command: ["sh", "-c", script] } });
const withVolume = (service: Json, path: string): Json => ({
  ...service,
  volumes: [{ name: "v", host_path: { path } }],
});
const MOUNTED: Json = { volume_mounts: [{ name: "v", mount_path: "/v" }] };

/** Ends at SIGTERM, and records that in the volume. */
const POLITE =
  "trap 'echo stopped >> /v/log; exit 0' TERM; echo started >> /v/log; while :; do sleep 0.1; done";

function services(dir: string, http: number, tcp: number): Readonly<Record<string, Json>> {
  const onHost = (lifecycle: Json): Json => ({
    container: { ...shell("true"), lifecycle },
    pod_config: { host_network: true },
  });
  const get = (path: string): Json => ({
    http_get: { path, port: http, http_headers: [{ name: "X-Hook", value: "yes" }] },
  });
  return {
    hooks: withVolume(
      {
        container: {
          ...MOUNTED,
          command: ["sh", "-c", POLITE],
          lifecycle: {
            post_start: exec("echo post_start >> /v/log"),
            pre_stop: exec("echo pre_stop >> /v/log"),
          },
        },
        pod_config: { termination_grace_period_seconds: 60 },
      },
      dir,
    ),
    http: onHost({ post_start: get("/post-start"), pre_stop: get("/pre-stop") }),
    tcp: onHost({ post_start: { tcp_socket: { port: tcp } }, pre_stop: { tcp_socket: { port: tcp } } }),
    failing: { container: { ...shell("true"), lifecycle: { post_start: exec("echo no luck >&2; exit 3") } } },
    deaf: {
      container: { ...shell("true"), lifecycle: { pre_stop: exec("sleep 100000") } },
      pod_config: { termination_grace_period_seconds: 2 },
    },
  };
}

describe("hooks and ends of containers on a real host", { concurrency: false }, () => {
  let lab: PodLab;
  let dir = "";
  const requests: string[] = [];
  const http = createServer(({ url = "", headers }, response) => {
    requests.push(`${url} ${headers["x-hook"]}`);
    response.end();
  });
  let connections = 0;
  const tcp = createTcpServer((socket) => {
    connections++;
    socket.on("error", () => {}).end();
  });
  before(async () => {
    lab = await startPodLab();
    dir = lab.host.dir;
    await lab.apply(services(dir, await listen(http), await listen(tcp)));
  }, LIMIT);
  after(async () => {
    http.closeAllConnections();
    http.close();
    tcp.close();
    await lab?.close();
  }, LIMIT);

  async function remove(service: string): Promise<void> {
    const args = ["delete", `container_service/${service}`, "-n", "e2e", "--wait", "--timeout", "120s"];
    const { exitCode, stderr } = await lab.system.forage(args);
    assert.equal(exitCode, 0, stderr);
  }

  test(
    "lifecycle.post_start and pre_stop.exec: in the container, after the start and before the signal",
    LIMIT,
    async () => {
      await lab.ready("hooks");
      await remove("hooks");
      const lines = readLines(`${dir}/log`);
      assert.deepEqual(lines.toSorted(), ["post_start", "pre_stop", "started", "stopped"]);
      assert.deepEqual(lines.slice(2), ["pre_stop", "stopped"]);
    },
  );

  test("lifecycle.post_start and pre_stop.http_get: requested with path and headers", LIMIT, async () => {
    await lab.ready("http");
    assert.deepEqual(requests, ["/post-start yes"]);
    await remove("http");
    assert.deepEqual(requests, ["/post-start yes", "/pre-stop yes"]);
  });

  test("lifecycle.post_start and pre_stop.tcp_socket: a connection is made", LIMIT, async () => {
    await lab.ready("tcp");
    assert.equal(connections, 1);
    await remove("tcp");
    assert.equal(connections, 2);
  });

  test(
    "lifecycle.post_start: a container whose hook fails is killed and restarted, and its status names the reason",
    LIMIT,
    async () => {
      const pod = await lab.until("failing", "was killed", (it) => {
        return containerOf(it)?.lastTermination !== undefined;
      });
      assert.match(JSON.stringify(pod.status), /post_?start|hook/i);
    },
  );

  test(
    "termination_grace_period_seconds: counts from the start of pre_stop, and SIGKILL follows",
    LIMIT,
    async () => {
      await lab.ready("deaf");
      const beganMs = performance.now();
      await remove("deaf");
      const tookMs = performance.now() - beganMs;
      // The hook would run for a day, and the process ignores SIGTERM.
      assert.ok(tookMs >= 2000, `${tookMs}`);
    },
  );
});

function readLines(path: string): string[] {
  return readFileSync(path, "utf8").trim().split("\n");
}

function listen(server: Server | TcpServer): Promise<number> {
  return new Promise((resolve) => {
    server.listen(0, "0.0.0.0", () => resolve((server.address() as AddressInfo).port));
  });
}
