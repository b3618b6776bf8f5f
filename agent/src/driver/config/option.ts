import type { Spec } from "@forage/proto/plugins/shared/hclspec/hcl_spec";

/** An HCL type, as it is written in a job. */
export type OptionType = "string" | "bool" | "number" | "list(string)";

/** One option of a `config` block. The schema for Nomad and the table in the documentation are generated from it. */
export type Option =
  | {
      readonly kind: "attribute";
      readonly name: string;
      readonly type: OptionType;
      readonly required?: boolean;
      /**
       * The default, as shown in the documentation. The driver applies defaults itself, so that Nomad keeps a job as it
       * was written.
       */
      readonly fallback?: string;
      readonly doc: string;
    }
  | {
      /** `name = { key = "value" }` or `name { key = "value" }`. */
      readonly kind: "map";
      readonly name: string;
      readonly doc: string;
    }
  | {
      readonly kind: "block";
      readonly name: string;
      /** Reports whether the block may be repeated. */
      readonly repeated: boolean;
      readonly options: readonly Option[];
      readonly doc: string;
    }
  | {
      /**
       * An option of other drivers that this driver refuses. It is part of the schema so that the driver can give the
       * reason; Nomad's own error would only name the option.
       */
      readonly kind: "refused";
      readonly name: string;
      readonly reason: string;
    };

/** Returns the schema of a block with these options. */
export function toSpec(options: readonly Option[]): Spec {
  const attributes = Object.fromEntries(options.map((option) => [option.name, specOf(option)]));
  return { block: { $case: "object", value: { attributes } } };
}

function specOf(option: Option): Spec {
  const { name } = option;
  switch (option.kind) {
    case "attribute": {
      const value = { name, type: option.type, required: option.required === true };
      return { block: { $case: "Attr", value } };
    }
    case "refused":
      return { block: { $case: "Attr", value: { name, type: "any", required: false } } };
    case "map":
      return { block: { $case: "blockAttrs", value: { name, type: "string", required: false } } };
    case "block": {
      const nested = toSpec(option.options);
      if (option.repeated)
        return { block: { $case: "blockList", value: { name, minItems: 0n, maxItems: 0n, nested } } };
      return { block: { $case: "blockValue", value: { name, required: false, nested } } };
    }
    default:
      return option satisfies never;
  }
}

export interface OptionRow {
  /** The option's name after the names of its blocks, such as `mounts.target`. */
  readonly path: string;
  readonly type: string;
  readonly fallback: string;
  readonly doc: string;
}

export interface RefusedRow {
  /** The option's name after the names of its blocks, such as `auth.tls_verify`. */
  readonly path: string;
  readonly reason: string;
}

/** Lists the options of other drivers that are refused. */
export function refusedRows(options: readonly Option[], prefix = ""): readonly RefusedRow[] {
  return options.flatMap((option) => {
    const path = `${prefix}${option.name}`;
    if (option.kind === "refused") return [{ path, reason: option.reason }];
    return option.kind === "block" ? refusedRows(option.options, `${path}.`) : [];
  });
}

/** Lists every supported option, each block before its contents. */
export function optionRows(options: readonly Option[], prefix = ""): readonly OptionRow[] {
  return options.flatMap((option): OptionRow[] => {
    const path = `${prefix}${option.name}`;
    switch (option.kind) {
      case "attribute": {
        const { type, required, fallback = "", doc } = option;
        return [{ path, type, fallback: required ? "required" : fallback, doc }];
      }
      case "map":
        return [{ path, type: "map(string)", fallback: "", doc: option.doc }];
      case "block": {
        const type = option.repeated ? "block, repeatable" : "block";
        return [{ path, type, fallback: "", doc: option.doc }, ...optionRows(option.options, `${path}.`)];
      }
      case "refused":
        return [];
      default:
        return option satisfies never;
    }
  });
}
