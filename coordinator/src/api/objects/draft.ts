import type { ObjectRecord } from "@forage/proto/forage/store/v1/store";
import type { ObjectName } from "../../model/object-name.ts";
import type { Content } from "../../objects/vault.ts";

/** A validated object before it is stored. */
export interface ObjectDraft {
  readonly name: ObjectName;
  readonly labels: Readonly<Record<string, string>>;
  /** The content. Undefined for objects other than secrets, config maps and registry credentials. */
  readonly content?: Content;
  readonly spec?: NonNullable<ObjectRecord["spec"]>;
}
