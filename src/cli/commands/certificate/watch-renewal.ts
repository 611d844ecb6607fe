/** Waiting for a renewal at the terminal: its steps as they happen, and its end as the command's. */
import { second } from '../../../base/duration.ts';
import { OperatorError } from '../../../base/operator-error.ts';
import { formatTimestamp } from '../../../base/timestamp.ts';
import type { DatabaseContext, TimedContext } from '../../../domain/contexts.ts';
import { stepsOf } from '../../../domain/issuance/attempt.ts';
import { pauseOfIssuer } from '../../../domain/issuance/issuers.ts';
import { claimRenewal } from '../../../domain/renewals/renewal-claim.ts';
import type { RenewalContext } from '../../../domain/renewals/renewal-run.ts';
import { type NamedRenewal, renewalWithId } from '../../../domain/renewals/renewals.ts';
import { versionNumbered } from '../../../domain/versions/versions.ts';
import { runClaimed } from '../../../jobs/renewal-worker.ts';
import { stopSignal } from '../../runtime/stop-signal.ts';
import { progress } from '../../terminal/progress.ts';
import type { Terminal } from '../../terminal/terminal.ts';

/** A running server takes a renewal up within a second; after this the command carries it out itself. */
const serverPatience = 3 * second;

/** How often the steps are looked at. */
const lookAgainAfter = second / 5;

/**
 * Shows the steps of a renewal until it ends. Where no server takes it up, it is carried out here. Throws OperatorError
 * with the reason, in the CA's own words, where it failed.
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
      if (row === undefined) throw new OperatorError(`${name} was deleted meanwhile`);
      const done = stepsOf(row);
      for (const { text } of done.slice(shown)) steps.show(text);
      shown = done.length;
      if (row.status === 'succeeded') return await announceVersion(vault, terminal, name, row);
      if (row.status === 'failed') throw new OperatorError(row.error ?? 'the renewal failed');
      if (stop.aborted) throw stillQueued(name);
      if (row.status === 'queued') steps.show(await whyQueued(vault, row));
      if (row.status === 'queued' && own === undefined && vault.world.now() - began > serverPatience) {
        const claimed = await claimRenewal(vault, 'cli', { only: id });
        if (claimed !== undefined) {
          steps.show('no "vault serve" takes it up; carrying it out here');
          own = runClaimed(vault, claimed, stop);
        }
      }
      await vault.world.sleep(lookAgainAfter, AbortSignal.any([stop, ended.signal]));
    }
  } finally {
    steps.end();
    ended.abort();
    await own;
  }
}

/** A CA that limits what is asked of it can keep a renewal waiting for an hour: nobody should have to guess. */
async function whyQueued(
  vault: TimedContext,
  { issuer_id, held_until, hold_reason }: NamedRenewal,
): Promise<string> {
  if (held_until !== null && held_until > vault.world.now()) {
    return `waiting until ${formatTimestamp(held_until)}: ${hold_reason ?? 'the CA limits how much it issues'}`;
  }
  const pause = issuer_id === null ? undefined : await pauseOfIssuer(vault, issuer_id);
  if (pause === undefined) return 'queued';
  return `waiting until ${formatTimestamp(pause.until)}, as the CA asks: ${pause.reason ?? 'it is too busy'}`;
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

function stillQueued(name: string): OperatorError {
  return new OperatorError(`the renewal of ${name} is still open`, {
    hint: 'It goes on as soon as "vault serve" runs; see "vault renewals list".',
  });
}
