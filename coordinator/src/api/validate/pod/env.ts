import type { EnvVar } from "@forage/proto/forest/v1/forage";
import type { Field } from "../field.ts";
import { configKeyProblem, dnsSubdomainProblem, envNameProblem } from "../syntax/names.ts";
import { fieldRefProblem, resourceFieldRefProblem } from "./field-ref.ts";

export function validateEnv(env: readonly EnvVar[], field: Field): void {
  const seen = new Set<string>();
  for (const [index, variable] of env.entries()) {
    const at = field.item(index);
    at.at("name").check(envNameProblem(variable.name));
    if (seen.has(variable.name)) at.at("name").invalid("is set twice");
    seen.add(variable.name);
    validateSource(variable.valueSource, at);
  }
}

function validateSource(source: EnvVar["valueSource"], field: Field): void {
  switch (source?.$case) {
    case "secretRef": {
      const at = field.at("secret_ref");
      at.at("secret_name").check(dnsSubdomainProblem(source.value.secretName));
      at.at("key").check(configKeyProblem(source.value.key));
      return;
    }
    case "configRef": {
      const at = field.at("config_ref");
      at.at("config_name").check(dnsSubdomainProblem(source.value.configName));
      at.at("key").check(configKeyProblem(source.value.key));
      return;
    }
    case "fieldRef":
      field.at("field_ref").check(fieldRefProblem(source.value));
      return;
    case "resourceFieldRef":
      field.at("resource_field_ref").check(resourceFieldRefProblem(source.value));
      return;
    case "value":
    case undefined:
      return;
    default:
      source satisfies never;
  }
}
