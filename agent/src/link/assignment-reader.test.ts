import assert from "node:assert/strict";
import { test } from "node:test";
import { type IdentityToken, PodAssignment } from "@forage/proto/forage/agent/v1/agent";
import { PodConfig } from "@forage/proto/forest/v1/forage";
import { aHost } from "../../test/a-host.ts";
import type { Pod } from "../pods/pod.ts";
import { AssignmentReader } from "./assignment-reader.ts";

test("parses assignments with the newest token and the current authority", () => {
  const assigned = new Map([["u1", anAssignment()]]);
  let authorityPem: string | undefined;
  const reader = new AssignmentReader(aHost(), new Map(), () => authorityPem);
  assert.deepEqual(filesOf(reader.read(anAssignment())), { token: "first", namespace: "shop" });

  authorityPem = "old";
  assert.equal(filesOf(reader.read(anAssignment()))["ca.crt"], "old");

  authorityPem = "new";
  const byPodUid = { u1: aToken("second", 2n), u2: aToken("other", 2n) };
  const renewed = reader.renew({ byPodUid }, assigned).map(filesOf);
  assert.deepEqual(renewed, [{ token: "second", namespace: "shop", "ca.crt": "new" }]);
  assert.equal(filesOf(reader.read(anAssignment())).token, "second");
});

function anAssignment(): PodAssignment {
  return PodAssignment.fromPartial({
    uid: "u1",
    namespace: "shop",
    name: "web-1",
    specHash: "h",
    identityToken: aToken("first", 1n),
    template: {
      container: { name: "main", image: "app:1" },
      podConfig: PodConfig.fromPartial({ serviceAccountName: "builder" }),
    },
  });
}

function aToken(token: string, seconds: bigint): IdentityToken {
  return { token, expiresAt: { seconds, nanos: 0 } };
}

function filesOf({ volumes }: Pod): Readonly<Record<string, string>> {
  const source = volumes?.volumes[0]?.source;
  const contents = source?.type === "files" ? source.contents : undefined;
  const decoder = new TextDecoder();
  return Object.fromEntries([...(contents ?? [])].map(([name, bytes]) => [name, decoder.decode(bytes)]));
}
