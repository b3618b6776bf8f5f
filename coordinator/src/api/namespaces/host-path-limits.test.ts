import assert from "node:assert/strict";
import { test } from "node:test";
import { PodPolicy } from "@forage/proto/forage/operator/v1/operator";
import { NamespaceRecord, PodRecord, ResourceRecord } from "@forage/proto/forage/store/v1/store";
import type { Volume } from "@forage/proto/forest/v1/forage";
import { namespaceKey } from "../../model/keys.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import { hostPathLimitsIn } from "./host-path-limits.ts";

type Policy = Parameters<typeof PodPolicy.fromPartial>[0];

test("limits a pod by the policy for the token that applied its workload", () => {
  const policies: Policy[] = [{ role: "editor", profile: "baseline", hostPaths: ["/data", "/reference:ro"] }];
  assert.deepEqual(limits("editor", policies)?.prefixes, ["/data", "/reference"]);
  assert.deepEqual(limits("admin", policies)?.prefixes, [], "the default profile of namespaced tokens");
  assert.equal(limits("", policies), undefined, "global tokens are not limited by default");
});

test("sets no limits for a privileged policy, or for a pod without host paths", () => {
  assert.equal(limits("editor", [{ role: "editor", profile: "privileged" }]), undefined);
  assert.equal(
    limits("editor", [{ role: "editor", profile: "baseline" }], { hasHostPath: false }),
    undefined,
  );
});

function limits(policyRole: string, policies: readonly Policy[], { hasHostPath = true } = {}) {
  const volumes: Parameters<typeof Volume.fromPartial>[0][] = hasHostPath
    ? [{ name: "v", source: { $case: "hostPath", value: { path: "/data/link" } } }]
    : [{ name: "v", source: { $case: "emptyDir", value: {} } }];
  const record = PodRecord.fromPartial({ namespace: "shop", template: { volumes } });
  const namespace = NamespaceRecord.fromPartial({
    policies: policies.map((it) => PodPolicy.fromPartial(it)),
  });
  const resource = ResourceRecord.fromPartial({ policyRole });
  const state = {
    namespaces: new Map([[namespaceKey("shop"), { record: namespace }]]),
    resource: () => ({ record: resource }),
  } as unknown as Pick<ClusterView, "namespaces" | "resource">;
  return hostPathLimitsIn(state)({ record, workloadKey: "shop/container_service/web" });
}
