import assert from "node:assert/strict";
import { test } from "node:test";
import { ServiceState } from "@forage/proto/forage/agent/v1/agent";
import { CommandFailed, type RunCommand } from "../network/run-command.ts";
import { ServiceRules } from "./service-rules.ts";

const FIRST = { pod: "a", node: "n1", podIp: "10.64.0.2", hostIp: "192.0.2.1", hostPorts: [20_000] };
const SECOND = { ...FIRST, pod: "b", podIp: "10.64.0.3", hostPorts: [20_001] };

test("forgets connections to a pod that no longer serves", async () => {
  const kernel = new FakeKernel();
  const { rules, serve } = someRules(kernel);
  serve([FIRST, SECOND]);
  await rules.start();
  assert.deepEqual(kernel.forgotten, [], "what was there before the agent is left alone");

  serve([SECOND]);
  await rules.update(new Set(["shop/dns"]));

  assert.deepEqual(kernel.forgotten, ["-D -f ipv4 -p udp --orig-dst 10.96.0.5 --orig-port-dst 53"]);
});

test("after the kernel has rejected a change and the whole table, the next change replaces the whole table", async () => {
  const kernel = new FakeKernel();
  const { rules, serve } = someRules(kernel);
  serve([FIRST]);
  await rules.start();
  serve([SECOND]);
  kernel.failures = 2;
  await rules.update(new Set(["shop/dns"]));
  assert.deepEqual(kernel.problems, ["service-table-differs", "service-rules-not-set"]);

  kernel.transactions.length = 0;
  serve([FIRST, SECOND]);
  await rules.update(new Set(["shop/dns"]));

  assert.equal(kernel.transactions.length, 1);
  assert.match(kernel.transactions[0] ?? "", /^add table ip services\ndelete table ip services\n/);
});

function someRules(kernel: FakeKernel) {
  const services = new Map<string, ServiceState>();
  const rules = new ServiceRules({
    services: { services, clusterDomain: "", virtualIpRanges: ["10.96.0.0/16"] },
    viewpoint: { node: "n1", reach: [4] },
    table: "services",
    podCidr: "10.64.0.0/16",
    gateway: "10.64.0.1",
    bridge: "br0",
    run: kernel.run,
    onProblem: (event) => kernel.problems.push(event),
  });
  const serve = (endpoints: readonly (typeof FIRST)[]): void => {
    const ports = [{ port: 53, protocol: "UDP", targetPort: 5353 }];
    const about = { namespace: "shop", name: "dns", virtualIps: ["10.96.0.5"], ports };
    services.set("shop/dns", ServiceState.fromPartial({ ...about, endpoints: [...endpoints] }));
  };
  return { rules, serve };
}

/** Replaces nft, ip and conntrack, without anything from an earlier agent. */
class FakeKernel {
  readonly transactions: string[] = [];
  readonly forgotten: string[] = [];
  readonly problems: string[] = [];
  failures = 0;
  #isNew = true;

  readonly run: RunCommand = async (file, args, options) => {
    if (file === "conntrack") this.forgotten.push(args.join(" "));
    if (file !== "nft") return "";
    if (this.#isNew) {
      this.#isNew = false;
      throw new CommandFailed("nft", "", "No such file or directory");
    }
    if (this.failures-- > 0) throw new CommandFailed("nft", "", "No such file or directory");
    this.transactions.push(options?.input ?? "");
    return "";
  };
}
