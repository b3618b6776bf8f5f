import { scrubText } from "@forage/common/scrub-text";
import type { FollowerServiceService } from "@forage/proto/forage/coordinator/v1/coordinator";
import { CoordinatorError } from "../errors.ts";
import type { Handlers } from "../rpc/serve.ts";
import { type ProcessSources, processFiles } from "./process-files.ts";
import type { SupportFile } from "./support-file.ts";
import { readPlanned, supportParts } from "./support-parts.ts";

/**
 * Returns the RPC by which the leader collects this follower's files. Texts that resemble secrets
 * are removed here; the leader removes the known secrets. One call is answered at a time.
 */
export function followerSupport(sources: ProcessSources): Handlers<typeof FollowerServiceService> {
  let isBusy = false;
  return {
    getSupportFiles: async function* () {
      if (isBusy)
        throw new CoordinatorError("RESOURCE_EXHAUSTED", "the files are being sent: try again later");
      isBusy = true;
      try {
        yield* supportParts(read(sources), scrubText);
      } finally {
        isBusy = false;
      }
    },
  };
}

async function* read(sources: ProcessSources): AsyncGenerator<SupportFile> {
  for (const planned of processFiles(sources)) yield await readPlanned(planned);
}
