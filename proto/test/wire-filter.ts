import {
  type DescEnum,
  type DescField,
  type DescMessage,
  type FileRegistry,
  fromBinary,
  toBinary,
} from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";

// All versions have the types of the library.
const WELL_KNOWN = "google.protobuf";

/** Reduces messages to what an earlier version supports, as if a peer of that version had sent or received them. */
export class WireFilter {
  /** The fields and enum values that were dropped so far, as `TYPE NUMBER`. */
  readonly dropped = new Set<string>();
  readonly #registry: FileRegistry;
  /** The fields and enum values of the version as `TYPE NUMBER`, and its methods as `/SERVICE/METHOD`. */
  readonly #fields = new Set<string>();
  readonly #values = new Set<string>();
  readonly #methods = new Set<string>();

  /** `lines` describes the earlier version in the form of describeWire. Types that it lacks are those of libraries. */
  constructor(registry: FileRegistry, lines: readonly string[]) {
    this.#registry = registry;
    for (const line of lines) {
      const [what, name = "", number = ""] = line.split(" ", 3);
      if (what === "field") this.#fields.add(`${name} ${number}`);
      else if (what === "value") this.#values.add(`${name} ${number}`);
      else if (what === "rpc") this.#methods.add(`/${name.replace(/\.(?=[^.]*$)/, "/")}`);
    }
  }

  /** Reports whether the version has a method. `path` is in gRPC's form, `/SERVICE/METHOD`. */
  hasMethod(path: string): boolean {
    return this.#methods.has(path);
  }

  /** Returns the message without fields and enum values that the earlier version lacks. */
  filter(typeName: string, bytes: Uint8Array): Uint8Array {
    const desc = this.#registry.getMessage(typeName);
    if (desc === undefined) throw new Error(`there is no message ${typeName}`);
    const message = fromBinary(desc, bytes, { readUnknownFields: false });
    this.#reduce(reflect(desc, message));
    return toBinary(desc, message);
  }

  #reduce(message: ReflectMessage): void {
    const { desc, sortedFields } = message;
    if (desc.file.proto.package === WELL_KNOWN) return;
    for (const field of sortedFields) {
      if (!message.isSet(field)) continue;
      if (this.#knows(this.#fields, desc, field.number)) this.#reduceField(message, field);
      else message.clear(field);
    }
  }

  #reduceField(message: ReflectMessage, field: DescField): void {
    if (field.fieldKind === "message") this.#reduce(message.get(field));
    else if (field.fieldKind === "enum") {
      if (!this.#knows(this.#values, field.enum, message.get(field))) message.set(field, 0);
    } else if (field.fieldKind === "list") {
      const list = message.get(field);
      if (field.listKind === "message") for (const item of list) this.#reduce(item as ReflectMessage);
      else if (field.listKind === "enum")
        for (const [index, value] of [...list].entries())
          if (!this.#knows(this.#values, field.enum, Number(value))) list.set(index, 0);
    } else if (field.fieldKind === "map" && field.mapKind === "message")
      for (const item of message.get(field).values()) this.#reduce(item as ReflectMessage);
  }

  #knows(known: ReadonlySet<string>, { typeName, file }: DescMessage | DescEnum, number: number): boolean {
    const name = `${typeName} ${number}`;
    if (file.proto.package === WELL_KNOWN || known.has(name)) return true;
    this.dropped.add(name);
    return false;
  }
}
