import assert from "node:assert/strict";
import { test } from "node:test";
import { NamespaceRecord, ObjectRecord } from "@forage/proto/forage/store/v1/store";
import { aView } from "../../../test/support/view.ts";
import { encodeRecord } from "../../model/codec.ts";
import { namespaceKey, objectKey } from "../../model/keys.ts";
import type { Caller } from "../../rpc/caller.ts";
import { NamespaceRules } from "./namespace-rules.ts";

const EDITOR: Caller = { type: "user", name: "a", grants: [{ role: "editor", namespaces: ["shop"] }] };
const SECRET = { namespace: "shop", kind: "secret", name: "db" } as const;

test("an object above a lowered quota may shrink, but not grow", async (t) => {
  const view = await aView(t);
  const record = ObjectRecord.fromPartial({ ...SECRET, versions: ["v1"], sizes: { a: 3_000 } } as object);
  const quota = NamespaceRecord.fromPartial({ name: "shop", quota: { bytes: "2Ki", objects: "1" } });
  const { revision } = await view.store.txn(
    [],
    [
      { type: "put", key: objectKey(SECRET), value: encodeRecord(ObjectRecord, record) },
      { type: "put", key: namespaceKey("shop"), value: encodeRecord(NamespaceRecord, quota) },
    ],
  );
  await view.state.reached(revision);
  const rules = new NamespaceRules(view.state);
  rules.checkObject(SECRET, 3_000, EDITOR);
  rules.checkObject(SECRET, 2_500, EDITOR);
  assert.throws(() => rules.checkObject(SECRET, 3_001, EDITOR), /exceeds the quota .* for bytes/);
  assert.throws(() => rules.checkObject({ ...SECRET, name: "other" }, 0, EDITOR), /for objects/);
});
