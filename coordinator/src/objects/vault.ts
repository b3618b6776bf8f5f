import { createHmac } from "node:crypto";
import { ObjectContent, type ObjectVersionRecord, type Sealed } from "@forage/proto/forage/store/v1/store";
import { CoordinatorError } from "../errors.ts";
import { hashMessage } from "../model/hash.ts";
import { objectVersionKey } from "../model/keys.ts";
import type { ObjectName } from "../model/object-name.ts";
import { toTimestamp } from "../model/timestamp.ts";
import type { KeyRing } from "./key-ring.ts";

/** The values of an object, by key. */
export type Content = Readonly<Record<string, Uint8Array>>;

/** Converts contents of objects to records and back. Everything except config maps is encrypted. */
export class Vault {
  readonly #ring: KeyRing;
  readonly #versionKey: Uint8Array;

  /**
   * `versionKey` must never change: otherwise all versions would change, and all pods with a pinned version would restart.
   */
  constructor(ring: KeyRing, versionKey: Uint8Array) {
    this.#ring = ring;
    this.#versionKey = versionKey;
  }

  /**
   * Returns the version: equal for equal content of the same object. It is keyed and bound to the name, so that it reveals
   * nothing about a secret, not even whether two secrets are equal.
   */
  versionOf(name: ObjectName, content: Content): string {
    const hash = hashMessage(ObjectContent, messageOf(content), name.namespace, name.kind, name.name);
    return createHmac("sha256", this.#versionKey).update(hash).digest("hex");
  }

  record(name: ObjectName, content: Content, version: string, nowMs: number): ObjectVersionRecord {
    const plain = ObjectContent.encode(messageOf(content)).finish();
    const createdAt = toTimestamp(nowMs);
    if (name.kind === "config_map")
      return { version, createdAt, content: { $case: "plain", value: Buffer.from(plain) } };
    const sealed = this.#ring.seal(plain, objectVersionKey(name, version));
    return { version, createdAt, content: { $case: "sealed", value: sealed } };
  }

  /** Encrypts a text for a record other than an object's. `place` is the record's key. */
  sealText(text: string, place: string): Sealed {
    return this.#ring.seal(Buffer.from(text), place);
  }

  /** Decrypts a text. @throws CoordinatorError INTERNAL that names the place, but reveals nothing of the content. */
  openText(sealed: Sealed, place: string): string {
    return this.#ring.open(sealed, place).toString("utf8");
  }

  /** Encrypts a message for a record other than an object's. `place` is the record's key. */
  sealBytes(plain: Uint8Array, place: string): Sealed {
    return this.#ring.seal(plain, place);
  }

  /** Decrypts a message. @throws CoordinatorError INTERNAL that names the place, but reveals nothing of the content. */
  openBytes(sealed: Sealed, place: string): Buffer {
    return this.#ring.open(sealed, place);
  }

  /**
   * Decrypts the content of an object. @throws CoordinatorError INTERNAL that names the object, but reveals nothing of the
   * content.
   */
  open(name: ObjectName, { version, content }: ObjectVersionRecord): Record<string, Buffer> {
    const place = objectVersionKey(name, version);
    if (content === undefined) throw new CoordinatorError("INTERNAL", `${place} has no content`);
    const plain = content.$case === "plain" ? content.value : this.#ring.open(content.value, place);
    return ObjectContent.decode(plain).data;
  }
}

function messageOf(content: Content): ObjectContent {
  return {
    data: Object.fromEntries(Object.entries(content).map(([key, value]) => [key, Buffer.from(value)])),
  };
}
