/** The result of `vault audit verify` as text and as JSON. */
import { printable } from '../../../base/printable-text.ts';
import { formatTimestamp } from '../../../base/timestamp.ts';
import type { Checkpoint } from '../../../domain/audit/audit-checkpoint.ts';
import type { ChainReport } from '../../../domain/audit/audit-verification.ts';

/** The result as JSON. */
export function reportView(
  { events, first, last, faults, faultCount }: ChainReport,
  checkpoints: readonly Checkpoint[],
) {
  return {
    whole: faultCount === 0,
    events,
    first_id: first ?? null,
    last_id: last?.id ?? null,
    last_hash: last?.link.toString('hex') ?? null,
    checkpoints: checkpoints.map(({ id, at }) => ({ id, at: formatTimestamp(at) })),
    fault_count: faultCount,
    faults,
  };
}

/** The result as text; `name` is what was verified. */
export function reportText(
  { events, first, last, faults, faultCount }: ChainReport,
  checkpoints: readonly Checkpoint[],
  name: string,
): string {
  const range = last === undefined ? '' : `, from ${first} to ${last.id}`;
  const lines = faults.map(({ message }) => `FAULT: ${message}`);
  if (faultCount > faults.length) lines.push(`… and ${faultCount - faults.length} more`);
  if (faultCount === 0) {
    lines.push(`${name} is intact: ${events} events${range}.`);
    for (const { id, at } of checkpoints)
      lines.push(`Matches the checkpoint of event ${id}, ${formatTimestamp(at)}.`);
    if (last !== undefined) lines.push(`Last hash: ${last.link.toString('hex')}`);
  } else {
    lines.push(`Verified ${events} events${range}.`);
  }
  return lines.map((line) => `${printable(line)}\n`).join('');
}
