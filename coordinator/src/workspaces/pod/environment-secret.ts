import type { InstanceRecord } from "@forage/proto/forage/workspaces/v1/records";
import { type PutOptions, putObject } from "../../api/objects/put.ts";
import type { ObjectName } from "../../model/object-name.ts";
import type { Variable } from "./environment.ts";
import { environmentKey, INSTANCE_LABEL, podNameOf } from "./pod-template.ts";

/** Returns the name of the secret that holds the values of an instance's environment. */
export function secretNameOf({ id, namespace }: Pick<InstanceRecord, "id" | "namespace">): ObjectName {
  return { namespace, kind: "secret", name: podNameOf(id) };
}

/** Stores the values of the environment as an encrypted secret, unless it exists. */
export async function putEnvironment(
  record: InstanceRecord,
  environment: readonly Variable[],
  options: PutOptions,
): Promise<void> {
  const values = environment.flatMap(({ source }, index) =>
    source.type === "value" ? [[environmentKey(index), Buffer.from(source.value)] as const] : [],
  );
  const draft = {
    name: secretNameOf(record),
    labels: { [INSTANCE_LABEL]: record.id },
    content: Object.fromEntries(values),
  };
  await putObject(draft, false, options);
}
