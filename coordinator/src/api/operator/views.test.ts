import assert from "node:assert/strict";
import { test } from "node:test";
import { aNode, aPod, aServiceEntry, aWorkloadEntry } from "../../../test/support/entries.ts";
import { aView } from "../../../test/support/view.ts";
import { resourceView } from "./views.ts";

test("shows ready endpoints for a service, but not for other resources with its name", async (t) => {
  const hostPorts = [{ container: "main", containerPort: 8080, protocol: "TCP", hostPort: 20_001 }];
  const status = { ready: true, hostPorts };
  const { state } = await aView(t, {
    resources: [aWorkloadEntry(), aServiceEntry()],
    nodes: [aNode()],
    pods: ["a", "b"].map((name) => aPod({ name, workload: "web", node: "n1", status })),
  });
  const shown = state.resources().map((entry) => resourceView(state, entry, 0));
  assert.deepEqual(
    shown.map(({ kind, name, readyEndpoints }) => `${kind}/${name} ${readyEndpoints}`).sort(),
    ["container_service/web 0", "service/web 2"],
  );
});
