/** Inspects files in a separate process with limits, as imports are read: a file determines how long OpenSSL works on it. */
import { Problem } from '../base/problem.ts';
import type { Inspection, InspectionInput } from '../crypto/bundles/inspection.ts';
import { inspectionIn, inspectionRequest } from '../crypto/bundles/inspection-transfer.ts';
import { askApart, inspector, processorSeconds } from './bundle-process.ts';

/** Like `inspect`, in a separate process. Also throws `invalid_request` if that exceeds its time or memory. */
export async function inspectApart(input: InspectionInput): Promise<Inspection> {
  const answer = await askApart(inspector, inspectionRequest(input));
  if (answer !== undefined) return inspectionIn(answer);
  throw new Problem('invalid_request', {
    detail: `${input.source.name} takes more than ${processorSeconds} seconds or too much memory to read.`,
    hint: 'No program should use this file. Request a new one from its source.',
  });
}
