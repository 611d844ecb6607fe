/** Shows the progress of a renewal on the terminal until it finishes. */
import { second } from '../../../base/duration.ts';
import { OperatorError } from '../../../base/operator-error.ts';
import { formatTimestamp, parseTimestamp } from '../../../base/timestamp.ts';
import { type RenewalDetailView, renewalDetailView } from '../../../domain/certificates/certificate-views.ts';
import type { DatabaseContext, TimedContext } from '../../../domain/contexts.ts';
import { pauseOfIssuer } from '../../../domain/issuers/issuers.ts';
import { endDeadLeases } from '../../../domain/nodes/lease-owners.ts';
import { stepsOf } from '../../../domain/renewals/attempt.ts';
import { claimRenewal } from '../../../domain/renewals/renewal-claim.ts';
import type { RenewalContext } from '../../../domain/renewals/renewal-run.ts';
import { type NamedRenewal, renewalWithId } from '../../../domain/renewals/renewals.ts';
import { versionNumbered } from '../../../domain/versions/versions.ts';
import { runClaimed } from '../../../jobs/renewal-worker.ts';
import { stopSignal } from '../../runtime/stop-signal.ts';
import { progress } from '../../terminal/progress.ts';
import type { Terminal } from '../../terminal/terminal.ts';

/** A running server claims a renewal within a second; after this long the command runs it itself. */
const serverClaimTimeout = 3 * second;

/** How often the progress is polled. */
const pollInterval = second / 5;

/**
 * Shows the steps of a renewal until it finishes. Runs it in this process if no server claims it. Throws OperatorError
 * with the error of the CA if the renewal failed.
 */
export async function watchRenewal(
  vault: RenewalContext,
  terminal: Terminal,
  { id, name }: { readonly id: number; readonly name: string },
): Promise<void> {
  const stop = stopSignal();
  const ended = new AbortController();
  const steps = progress(terminal.stderr);
  const began = vault.world.now();
  let own: Promise<void> | undefined;
  let shown = 0;
  try {
    for (;;) {
      const row = await renewalWithId(vault, id);
      if (row === undefined) throw new OperatorError(`certificate ${name} was deleted during the renewal`);
      const done = stepsOf(row);
      for (const { text } of done.slice(shown)) steps.show(text);
      shown = done.length;
      if (row.status === 'succeeded') return await announceVersion(vault, terminal, name, row);
      if (row.status === 'failed') throw new OperatorError(row.error ?? 'the renewal failed');
      if (stop.aborted) throw stillQueued(name);
      if (row.status === 'queued') steps.show(await whyQueued(vault, row));
      if (own === undefined && vault.world.now() - began > serverClaimTimeout) {
        // Also a renewal whose worker died, or lost the database.
        await endDeadLeases(vault);
        const claimed = await claimRenewal(vault, 'cli', { only: id });
        if (claimed !== undefined) {
          steps.show('no "vault serve" is running; renewing in this process');
          own = runClaimed(vault, claimed, stop).finally(() => {
            own = undefined;
          });
        }
      }
      await vault.world.sleep(pollInterval, AbortSignal.any([stop, ended.signal]));
    }
  } finally {
    steps.end();
    ended.abort();
    await own;
  }
}

/** Until when and why a queued renewal is held: by a rate limit of its CA, or because many were queued. */
export function holdText(
  { held_until, hold_reason }: Pick<RenewalDetailView, 'held_until' | 'hold_reason'>,
  now: number,
): string | undefined {
  if (held_until === null || (parseTimestamp(held_until) ?? 0) <= now) return undefined;
  return `waiting until ${held_until}: ${hold_reason ?? 'rate limit of the CA'}`;
}

/** Why the renewal waits: a CA with rate limits can hold it up for an hour. */
async function whyQueued(vault: TimedContext, renewal: NamedRenewal): Promise<string> {
  const held = holdText(renewalDetailView(renewal), vault.world.now());
  if (held !== undefined) return held;
  const { issuer_id } = renewal;
  const pause = issuer_id === null ? undefined : await pauseOfIssuer(vault, issuer_id);
  if (pause === undefined) return 'queued';
  return `waiting until ${formatTimestamp(pause.until)}, as requested by the CA: ${pause.reason ?? 'the CA is busy'}`;
}

async function announceVersion(
  vault: DatabaseContext,
  { stdout }: Terminal,
  name: string,
  { certificate_id, version }: NamedRenewal,
): Promise<void> {
  const made = await versionNumbered(vault, certificate_id, version ?? 0);
  const until = made === undefined ? '' : `, valid until ${formatTimestamp(made.not_after)}`;
  stdout.write(`${name}: version ${version}${until}\n`);
}

/** The renewal goes on without this command. */
export function stillQueued(name: string): OperatorError {
  return new OperatorError(`stopped waiting; the renewal of ${name} is not finished`, {
    hint: '"vault serve" continues it. Check the result with "vault renewals list".',
  });
}
