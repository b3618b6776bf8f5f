import { after, before } from "node:test";
import { testContainerLives } from "./container-lives-contract.ts";
import { type NerdctlUnderTest, openNerdctl } from "./nerdctl-under-test.ts";
import { type RuntimeUnderTest, testRuntime } from "./runtime-contract.ts";

const sh = (script: string) => ["sh", "-c", script];

let opened: NerdctlUnderTest;
let underTest: RuntimeUnderTest;

before(async () => {
  opened = await openNerdctl();
  const { host, runtime, spec } = opened;
  const registry = await host.startRegistry();
  underTest = {
    runtime,
    image: host.image,
    pullable: await opened.publish(registry, "forage/pulled:1"),
    unknownImage: `${registry.address}/forage/unknown:1`,
    spec: (command) => spec(command),
    programs: {
      sleep: ["sleep", "1000"],
      stubborn: sh("trap '' TERM; while :; do sleep 1000; done"),
      fail: sh("exit 7"),
      missing: ["/no/such/program"],
    },
    execs: {
      say: sh("printf out; printf err >&2; exit 3"),
      echo: ["cat"],
      sleep: sh("trap '' TERM HUP INT; sleep 1000"),
      missing: ["no-such-program"],
    },
  };
});
after(() => opened?.close());

testContainerLives("nerdctl", () => underTest);
testRuntime("nerdctl", () => underTest);
