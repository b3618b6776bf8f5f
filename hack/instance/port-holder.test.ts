import assert from "node:assert/strict";
import { type AddressInfo, createServer } from "node:net";
import { test } from "node:test";
import { assertPortFree, programName } from "./port-holder.ts";

test("the error for a used port names the program that uses it, not its main thread", async (t) => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => void server.close());
  const { port } = server.address() as AddressInfo;
  await assert.rejects(assertPortFree(`127.0.0.1:${port}`, "--grpc"), {
    message: new RegExp(`^127\\.0\\.0\\.1:${port} is taken by node \\S+ \\(pid ${process.pid}\\)$`),
  });
});

test("a program is named with its script, without other arguments", () => {
  const cases: readonly (readonly [readonly string[], string])[] = [
    [["/usr/sbin/nginx", "-g", "x"], "nginx"],
    [["nginx: master process /usr/sbin/nginx"], "nginx"],
    [
      ["/opt/node/bin/node", "--flag", "/srv/dist/coordinator.mjs", "--token", "s3cret"],
      "node coordinator.mjs",
    ],
    [["python3.11", "/usr/bin/x y\u001b[2J"], "python3.11 x?y??2J"],
    [["node"], "node"],
    [["sshd", ""], "sshd"],
    [[""], "a process"],
    [["\u001b[2J"], "a process"],
  ];
  for (const [words, expected] of cases) assert.equal(programName(words), expected, words.join(" "));
});
