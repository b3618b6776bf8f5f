import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { until } from "../../../test/support/until.ts";
import { openSshPort } from "./ssh-port.ts";

const LIMIT = { timeout: 60_000 };
const CONNECTIONS = 5;

test("keeps no reference to a closed connection", LIMIT, async (t) => {
  setFlagsFromString("--expose-gc");
  const collectGarbage = runInNewContext("gc") as () => void;
  const passed: WeakRef<Socket>[] = [];
  let open = 0;
  const port = await openSshPort({ listen: "127.0.0.1:0" }, (connection) => {
    passed.push(new WeakRef(connection));
    open += 1;
    connection.once("close", () => {
      open -= 1;
    });
    connection.resume();
  });
  t.after(() => port.close());
  for (let visit = 1; visit <= CONNECTIONS; visit++) {
    const visitor = connect(port.address.port, port.address.host);
    await once(visitor, "connect");
    await until("the port has the connection", () => passed.length === visit);
    visitor.destroy();
  }
  await until("all connections are closed", () => open === 0);
  await until("the memory of all but the last is free", () => {
    collectGarbage();
    return passed.filter((connection) => connection.deref() !== undefined).length <= 1;
  });
});

test("closes open connections when it closes", LIMIT, async () => {
  const passed: unknown[] = [];
  const port = await openSshPort({ listen: "127.0.0.1:0" }, (connection) => void passed.push(connection));
  const visitor = connect(port.address.port, port.address.host).on("error", () => {});
  await until("the port has the connection", () => passed.length === 1);
  const closed = once(visitor.resume(), "close");
  await port.close();
  await closed;
  assert.equal(visitor.destroyed, true);
});
