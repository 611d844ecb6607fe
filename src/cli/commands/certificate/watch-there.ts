/** Shows the progress of a renewal at a server until it finishes. */
import { second } from '../../../base/duration.ts';
import { OperatorError } from '../../../base/operator-error.ts';
import { Problem } from '../../../base/problem.ts';
import type { VersionView } from '../../../domain/certificates/certificate-views.ts';
import type { RemoteVault } from '../../remote/remote-vault.ts';
import { stopSignal } from '../../runtime/stop-signal.ts';
import { progress } from '../../terminal/progress.ts';
import type { Terminal } from '../../terminal/terminal.ts';
import { certificatePath, renewalThere } from './certificates-there.ts';
import { holdText, stillQueued } from './watch-renewal.ts';

/** Each poll is a request. */
const pollInterval = second;

/** Like `watchRenewal`; the server runs the renewal. Throws OperatorError with the error of the CA if it failed. */
export async function watchThere(
  remote: RemoteVault,
  terminal: Terminal,
  { id, name }: { readonly id: number; readonly name: string },
): Promise<void> {
  const stop = stopSignal();
  const steps = progress(terminal.stderr);
  let shown = 0;
  try {
    for (;;) {
      const renewal = await renewalThere(remote, id).catch((error: unknown) => {
        if (!(error instanceof Problem) || error.code !== 'not_found') throw error;
        throw new OperatorError(`certificate ${name} was deleted during the renewal`);
      });
      for (const { text } of renewal.steps.slice(shown)) steps.show(text);
      shown = renewal.steps.length;
      if (renewal.status === 'failed') throw new OperatorError(renewal.error ?? 'the renewal failed');
      if (renewal.status === 'succeeded') {
        const versions = await remote.get<VersionView[]>(certificatePath(name, '/versions'), { limit: 20 });
        const made = versions.find(({ version }) => version === renewal.version);
        const until = made === undefined ? '' : `, valid until ${made.not_after}`;
        terminal.stdout.write(`${name}: version ${renewal.version}${until}\n`);
        return;
      }
      if (stop.aborted) throw stillQueued(name);
      if (renewal.status === 'queued') steps.show(holdText(renewal, terminal.world.now()) ?? 'queued');
      await terminal.world.sleep(pollInterval, stop);
    }
  } finally {
    steps.end();
  }
}
