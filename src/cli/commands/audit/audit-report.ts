/** What `vault audit verify` has found, for people and for programs. */
import { formatTimestamp } from '../../../base/timestamp.ts';
import type { Checkpoint } from '../../../domain/audit/audit-checkpoint.ts';
import type { ChainReport } from '../../../domain/audit/audit-verification.ts';

/** For programs. */
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

/** For people, who call what was looked at `name`. */
export function reportText(
  { events, first, last, faults, faultCount }: ChainReport,
  checkpoints: readonly Checkpoint[],
  name: string,
): string {
  const range = last === undefined ? '' : `, from ${first} to ${last.id}`;
  const lines = faults.map(({ message }) => `WRONG: ${message}`);
  if (faultCount > faults.length) lines.push(`… and ${faultCount - faults.length} more`);
  if (faultCount === 0) {
    lines.push(`${name} is whole: ${events} events${range}.`);
    for (const { id, at } of checkpoints)
      lines.push(`It agrees with the checkpoint of event ${id}, ${formatTimestamp(at)}.`);
    if (last !== undefined) lines.push(`It ends with ${last.link.toString('hex')}.`);
  } else {
    lines.push(`${events} events${range} were looked at.`);
  }
  return `${lines.join('\n')}\n`;
}
