import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { ProxyProgram } from "../src/gateway/proxy-program.ts";

/** Returns the proxy as a new agent finds it: the process outlives agents. */
export type ConnectProxy = () => ProxyProgram;

/** Tests the contract of the gateway's proxy. */
export function testProxyProgram(name: string, open: (t: TestContext) => Promise<ConnectProxy>): void {
  test(`${name}: runs from its start until it is killed, also for the next agent`, async (t) => {
    const connect = await open(t);
    const proxy = connect();
    assert.equal(await proxy.isRunning(), false);
    await proxy.start();
    assert.equal(await proxy.isRunning(), true);
    const next = connect();
    assert.equal(await next.isRunning(), true);
    await next.kill();
    assert.deepEqual([await next.isRunning(), await proxy.isRunning()], [false, false]);
    await proxy.start();
    assert.deepEqual([await proxy.isRunning(), await next.isRunning()], [true, true]);
    await proxy.kill();
  });

  test(`${name}: a stop without a running process changes nothing, and the log is empty`, async (t) => {
    const proxy = (await open(t))();
    await proxy.kill();
    assert.deepEqual([await proxy.isRunning(), await proxy.lastWords()], [false, ""]);
    const stop = proxy.onExit(() => assert.fail("nothing has ended"));
    stop();
  });
}
