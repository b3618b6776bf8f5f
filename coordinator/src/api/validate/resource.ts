import type { ForageResource } from "@forage/proto/forest/v1/forage";
import type { Field } from "./field.ts";
import { validateRoute } from "./route/route.ts";
import { validateService } from "./service/service.ts";
import { dnsLabelProblem } from "./syntax/names.ts";
import { validateContainerService } from "./workload/container-service.ts";
import { validateCronJob } from "./workload/cron-job.ts";
import { validateJob } from "./workload/job.ts";

/** The limit of a resource's name. Names of pods are the resource's name with a suffix, and must be DNS labels. */
const MAX_NAME_LENGTH = 48;

export function validateResource({ name, spec }: ForageResource, field: Field): void {
  field.at("name").check(dnsLabelProblem(name, MAX_NAME_LENGTH));
  switch (spec?.$case) {
    case "containerService":
      validateContainerService(spec.value, field.at("container_service"));
      return;
    case "service":
      validateService(spec.value, field.at("service"));
      return;
    case "route":
      validateRoute(spec.value, field.at("route"));
      return;
    case "cronJob":
      validateCronJob(spec.value, field.at("cron_job"));
      return;
    case "job":
      validateJob(spec.value, field.at("job"));
      return;
    case undefined:
      field.invalid("must have one of container_service, service, route, cron_job, job");
      return;
    default:
      spec satisfies never;
      return;
  }
}
