import { cronJobOf as real } from "../../coordinator/src/model/cron-job.ts";

export * from "../../coordinator/src/model/cron-job.ts";

/** Lets runs overlap under every concurrency policy. */
export const cronJobOf: typeof real = (record) => {
  const cron = real(record);
  return cron && { ...cron, concurrency: "Allow" };
};
