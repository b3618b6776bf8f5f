import { randomBytes } from "node:crypto";
import { ObjectRecord, ObjectVersionRecord } from "@forage/proto/forage/store/v1/store";
import { encodeRecord } from "../../../src/model/codec.ts";
import { objectKey, objectVersionKey } from "../../../src/model/keys.ts";
import { KeyRing } from "../../../src/objects/key-ring.ts";
import { type Content, Vault } from "../../../src/objects/vault.ts";
import type { Op } from "../../../src/store/index.ts";

/** A vault, and what writes secrets that only it opens. */
export function secretsOf(namespace = "shop") {
  const vault = new Vault(
    new KeyRing([{ id: "test", bytes: randomBytes(32) }], randomBytes),
    randomBytes(32),
  );
  const put = (secret: string, content: Content): Op[] => {
    const name = { namespace, kind: "secret", name: secret } as const;
    const version = vault.versionOf(name, content);
    const record = ObjectRecord.fromPartial({ ...name, versions: [version] });
    const stored = vault.record(name, content, version, 1);
    return [
      { kind: "put", key: objectVersionKey(name, version), value: encodeRecord(ObjectVersionRecord, stored) },
      { kind: "put", key: objectKey(name), value: encodeRecord(ObjectRecord, record) },
    ];
  };
  return { vault, put };
}
