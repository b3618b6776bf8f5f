import assert from "node:assert/strict";
import { type TestContext, type TestOptions, test } from "node:test";
import { ServiceState } from "@forage/proto/forage/agent/v1/agent";
import type { RunCommand } from "../src/network/run-command.ts";
import { ServiceRules } from "../src/services/service-rules.ts";

export const TABLE = "forage-test-services";
const SERVICE = "shop/web";

/** A host without tables of services. */
export interface TablesUnderTest {
  readonly run: RunCommand;
  /** Removes the table, as another program or a reboot would. */
  lose(table: string): Promise<void>;
}

/** Tests the contract of the commands for service rules, on the kernel and on a simulation. IPv4 only. */
export function testServiceTables(
  name: string,
  open: (t: TestContext) => Promise<TablesUnderTest>,
  options: TestOptions = {},
): void {
  const check = (what: string, run: (host: Host) => Promise<void>) =>
    test(`${name}: ${what}`, { timeout: 60_000, ...options }, async (t) => run(new Host(await open(t))));

  check("a host has the table from its creation until it is lost", async (host) => {
    const rules = host.startAgent();
    assert.equal(await rules.hasTable(), false);
    await rules.start();
    assert.equal(await rules.hasTable(), true);
    await host.lose();
    assert.equal(await rules.hasTable(), false);
    assert.equal(await rules.repair(), true);
    assert.equal(await rules.repair(), false);
  });

  check("a change of the unchanged table succeeds", async (host) => {
    const rules = host.startAgent();
    await rules.start();
    await host.change(rules, "192.0.2.1");
    await host.change(rules, "192.0.2.2");
    assert.equal(host.tablesMade, 1);
  });

  check("a change of a lost table is rejected", async (host) => {
    const rules = host.startAgent();
    await rules.start();
    await host.lose();
    await host.change(rules, "192.0.2.1");
    assert.equal(host.tablesMade, 2);
    assert.equal(await rules.hasTable(), true);
  });

  check(
    "the next agent keeps the table that it would create, and creates it if it was lost",
    async (host) => {
      const rules = host.startAgent();
      await rules.start();
      await host.change(rules, "192.0.2.1");
      const made = host.tablesMade;
      await host.startAgent().start();
      assert.equal(host.tablesMade, made);
      await host.lose();
      await host.startAgent().start();
      assert.equal(host.tablesMade, made + 1);
    },
  );
}

class Host {
  /** The number of whole tables that the kernel has accepted. */
  tablesMade = 0;
  readonly #tables: TablesUnderTest;
  readonly #services = new Map<string, ServiceState>();

  constructor(tables: TablesUnderTest) {
    this.#tables = tables;
    this.#serve("192.0.2.9");
  }

  startAgent(): ServiceRules {
    return new ServiceRules({
      services: { services: this.#services, virtualIpRanges: ["10.96.0.0/16"], clusterDomain: "" },
      viewpoint: { node: "n0", reach: [4] },
      table: TABLE,
      podCidr: "10.64.0.0/16",
      gateway: "10.64.0.1",
      bridge: "bridge0",
      run: this.#run,
      onProblem: (event) => assert.equal(event, "service-table-differs"),
    });
  }

  lose(): Promise<void> {
    return this.#tables.lose(TABLE);
  }

  change(rules: ServiceRules, podIp: string): Promise<void> {
    this.#serve(podIp);
    return rules.update(new Set([SERVICE]));
  }

  #serve(podIp: string): void {
    const about = { namespace: "shop", name: "web", type: "ClusterIP", virtualIps: ["10.96.0.5"] };
    const ports = [{ name: "http", port: 80, protocol: "TCP", targetPort: 8080 }];
    const endpoints = [{ pod: "web", node: "n1", podIp, hostIp: podIp, hostPorts: [20_000] }];
    this.#services.set(SERVICE, ServiceState.fromPartial({ ...about, ports, endpoints }));
  }

  /** Only nft is part of the contract: routes need a bridge, and connections are tracked on request only. */
  readonly #run: RunCommand = async (file, args, options) => {
    if (file !== "nft") return "";
    const output = await this.#tables.run(file, args, options);
    if (options?.input?.includes("delete table")) this.tablesMade++;
    return output;
  };
}
