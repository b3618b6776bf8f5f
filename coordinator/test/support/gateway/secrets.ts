import { randomBytes } from "node:crypto";
import { ObjectRecord, ObjectVersionRecord } from "@forage/proto/forage/store/v1/store";
import { encodeRecord } from "../../../src/model/codec.ts";
import { objectKey, objectVersionKey } from "../../../src/model/keys.ts";
import { KeyRing } from "../../../src/objects/key-ring.ts";
import { type Content, Vault } from "../../../src/objects/vault.ts";
import type { Op } from "../../../src/store/index.ts";

/** Returns a vault, and a function that writes secrets that only this vault can decrypt. */
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
      { type: "put", key: objectVersionKey(name, version), value: encodeRecord(ObjectVersionRecord, stored) },
      { type: "put", key: objectKey(name), value: encodeRecord(ObjectRecord, record) },
    ];
  };
  return { vault, put };
}
