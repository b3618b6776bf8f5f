import assert from "node:assert/strict";
import { test } from "node:test";
import { instanceNames } from "./instance-names.ts";
import type { PortMapping } from "./network.ts";
import { PortTable } from "./port-table.ts";
import { CommandFailed, type RunCommand } from "./run-command.ts";

/** Replaces nft and conntrack: stores the input, and fails as scripted. */
class FakeKernel {
  readonly transactions: string[] = [];
  readonly forgotten: string[] = [];
  readonly problems: string[] = [];
  failures = 0;
  readonly run: RunCommand = async (file, args, options) => {
    if (file === "conntrack") this.forgotten.push(args.join(" "));
    if (file !== "nft") return "";
    await new Promise((resolve) => setImmediate(resolve));
    if (this.failures-- > 0) throw new CommandFailed("nft", "", "No such file or directory");
    this.transactions.push(options?.input ?? "");
    return "";
  };

  table(): PortTable {
    return new PortTable({
      names: instanceNames("x"),
      podCidr: "10.64.0.0/16",
      run: this.run,
      onProblem: (event) => this.problems.push(event),
    });
  }
}

test("changes in one turn are one transaction, and changes during an update are one more", async () => {
  const kernel = new FakeKernel();
  const table = kernel.table();
  await table.replace();
  const first = Array.from({ length: 40 }, (_, index) =>
    table.set(`a${index}`, "10.64.0.2", web(20_000 + index)),
  );
  await new Promise((resolve) => queueMicrotask(() => queueMicrotask(() => resolve(undefined))));
  const second = Array.from({ length: 40 }, (_, index) =>
    table.set(`b${index}`, "10.64.0.3", web(21_000 + index)),
  );
  await Promise.all([...first, ...second]);
  assert.equal(kernel.transactions.length, 3);
  assert.deepEqual(
    kernel.transactions.map((text) => text.match(/ : 10\.64/g)?.length ?? 0),
    [0, 40, 40],
  );
});

test("sends no transaction without a change", async () => {
  const kernel = new FakeKernel();
  const table = kernel.table();
  await table.replace();
  await table.set("a", "10.64.0.2", web(20_000));
  await table.set("a", "10.64.0.2", web(20_000));
  await table.delete("unknown");
  assert.equal(kernel.transactions.length, 2);
});

test("a change that the kernel rejects replaces the whole table", async () => {
  const kernel = new FakeKernel();
  const table = kernel.table();
  table.preset("a", "10.64.0.2", web(20_000));
  await table.replace();
  kernel.failures = 1;
  await table.set("b", "10.64.0.3", web(20_001));
  assert.match(kernel.transactions.at(-1) ?? "", /^add table.*tcp \. 20000 : .*tcp \. 20001 : /s);
  assert.deepEqual(kernel.problems, ["host-port-table-differs"]);
});

test("if the kernel rejects the replacement too, the call fails and the next change replaces the table", async () => {
  const kernel = new FakeKernel();
  const table = kernel.table();
  await table.replace();
  kernel.failures = 2;
  await assert.rejects(table.set("a", "10.64.0.2", web(20_000)), CommandFailed);
  await table.set("b", "10.64.0.3", web(20_001));
  assert.match(kernel.transactions.at(-1) ?? "", /^add table.*tcp \. 20000 : .*tcp \. 20001 : /s);
});

test("a replacement that is requested during a change is not lost", async () => {
  const kernel = new FakeKernel();
  const table = kernel.table();
  await table.replace();
  const change = table.set("a", "10.64.0.2", web(20_000));
  await new Promise((resolve) => queueMicrotask(() => queueMicrotask(() => resolve(undefined))));
  await Promise.all([change, table.replace()]);
  assert.match(kernel.transactions.at(-1) ?? "", /^add table.*tcp \. 20000/s);
});

test("forgets peers of changed UDP ports, but not of TCP ports", async () => {
  const kernel = new FakeKernel();
  const table = kernel.table();
  await table.replace();
  await table.set("a", "10.64.0.2", [...web(20_000), { ...web(20_001)[0], protocol: "UDP" } as PortMapping]);
  await table.delete("a");
  const one = "-D -f ipv4 -p udp --orig-port-dst 20001";
  assert.deepEqual(kernel.forgotten, [one, one]);
});

function web(hostPort: number): PortMapping[] {
  return [{ container: "web", containerPort: 80, protocol: "TCP", hostPort }];
}
