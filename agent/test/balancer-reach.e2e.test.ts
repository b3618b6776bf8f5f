import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { execPath } from "node:process";
import { type TestContext, test } from "node:test";
import { enterOwnNetwork, whyNoOwnIpv6, whyNoOwnNetwork } from "../../hack/lib/own-network.ts";
import { putAddress } from "../src/load-balancer/host-addresses.ts";
import { runCommand } from "../src/network/run-command.ts";
import { ask } from "./ask.ts";
import { askFrom } from "./host-under-test.ts";
import {
  NODE_PORT,
  nameOf,
  PLACES,
  type Scene,
  type SceneAddresses,
  setUpScene,
  who,
} from "./services-scene.ts";

const obstacle = whyNoOwnNetwork();
if (obstacle === undefined) enterOwnNetwork();
let hosts = 0;

/** Addresses in the network of the host and its neighbour. */
const BALANCER_IPS = { 4: "10.9.0.50", 6: "fd09::50" } as const;

for (const [family, why] of [
  [4, obstacle],
  [6, whyNoOwnIpv6()],
] as const) {
  const limit = { skip: why ?? false, timeout: 120_000 };
  const ip = BALANCER_IPS[family];

  test(
    `IPv${family}: where a load balancer's address is announced it leads everyone to the pods`,
    limit,
    async (t) => {
      const { scene, set, from } = await setUp(t, PLACES[family], ip);
      const { endpoints, outside, a } = scene;
      const { outside: client, host } = PLACES[family];
      for (const protocol of ["TCP", "UDP"] as const) {
        await set({ endpoints: [endpoints.a] });
        assert.equal(
          await askFrom(outside, protocol, ip, 80),
          `a ${client}`,
          `${protocol}: its own address is seen`,
        );
        for (const [place, answer] of await from(protocol, 80))
          assert.equal(who(answer), "a", `${place}, ${protocol}`);
        await set({ endpoints: [endpoints.far] });
        assert.equal(await askFrom(outside, protocol, ip, 80), `far ${host}`);
        for (const [place, answer] of await from(protocol, 80))
          assert.equal(who(answer), "far", `${place}, ${protocol}`);
      }
      const udp = { udpPort: 40_001 };
      assert.equal(who(await ask("UDP", ip, 80, udp)), "far");
      await set({ endpoints: [endpoints.b] });
      assert.equal(who(await ask("UDP", ip, 80, udp)), "b", "a UDP client is led on");
      await set({ endpoints: [endpoints.a, endpoints.b, endpoints.far], affinitySeconds: 100 });
      const answers = new Set<string>();
      for (let i = 0; i < 12; i++) answers.add(who(await askFrom(outside, "TCP", ip, 80)));
      assert.equal(answers.size, 1, "it stays with its pod");
      assert.equal(who(await askFrom(nameOf(a), "TCP", ip, 80)).length > 0, true);
      assert.deepEqual(scene.problems, []);
    },
  );

  test(
    `IPv${family}: a load balancer's address gives access to nothing else on the host`,
    limit,
    async (t) => {
      const { scene, set, from } = await setUp(t, PLACES[family], ip);
      const { endpoints, outside } = scene;
      // A server of the host's own that listens on all its addresses, and a node port of the service.
      await set({ endpoints: [endpoints.a] });
      await answerHere(t, 9_090);
      assert.equal(who(await askFrom(outside, "TCP", PLACES[family].host, 9_090)), "host");
      for (const port of [81, NODE_PORT, 9_090])
        for (const [place, answer] of await from("TCP", port))
          assert.equal(answer, "refused", `${place}, ${port}`);
      for (const [place, answer] of await from("UDP", 9_090))
        assert.equal(answer, place === "the host" ? "EPERM" : "refused", `${place}, UDP`);
      assert.equal(who(await askFrom(outside, "TCP", PLACES[family].host, NODE_PORT)), "a");
      await set({ endpoints: [] });
      for (const [place, answer] of await from("TCP", 80))
        assert.equal(answer, "refused", `${place}: no endpoint serves`);
      await runCommand("ip", ["netns", "exec", outside, "busybox", "ping", "-c", "1", "-w", "10", ip]);
      await scene.set();
      assert.equal(
        who(await askFrom(outside, "TCP", ip, 9_090)),
        "host",
        "it is no service's address any more",
      );
    },
  );
}

/** Answers "host" to all clients of the host itself. */
async function answerHere(t: TestContext, port: number): Promise<void> {
  const script = join(import.meta.dirname, "answer.ts");
  const child = spawn(execPath, [script, "host", String(port)], { stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => child.kill("SIGKILL"));
  await once(child.stdout, "data");
}

interface Balanced {
  readonly scene: Scene;
  set(fields: object): Promise<void>;
  /** Returns the answers to clients on the host, in a pod and on the other host. */
  from(protocol: "TCP" | "UDP", port: number): Promise<[string, string][]>;
}

async function setUp(t: TestContext, places: SceneAddresses, ip: string): Promise<Balanced> {
  const scene = await setUpScene(t, hosts++, places);
  await putAddress(runCommand, { ip, interface: "uplink0" }, undefined);
  return {
    scene,
    set: (fields) => scene.set({ type: "LoadBalancer", loadBalancerIps: [ip], ...fields }),
    from: async (protocol, port) => [
      ["the host", await ask(protocol, ip, port)],
      ["a pod", await askFrom(nameOf(scene.a), protocol, ip, port)],
      ["the other host", await askFrom(scene.outside, protocol, ip, port)],
    ],
  };
}
