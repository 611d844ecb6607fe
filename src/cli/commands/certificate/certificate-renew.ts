/** `vault certificate renew`: queues a renewal and, with --wait, waits for it. */
import { localCli } from '../../../domain/audit/audit.ts';
import { requestRenewal } from '../../../domain/renewals/renewals.ts';
import { requireCertificate } from '../../../domain/versions/certificate-lookup.ts';
import { command } from '../../runtime/command.ts';
import { withVault } from '../../runtime/with-vault.ts';
import { nameOption, waitOptions } from './certificate-options.ts';
import { watchRenewal } from './watch-renewal.ts';

export const renewCommand = command({
  name: 'certificate renew',
  description: 'Renew a certificate now',
  examples: [
    { does: 'Renew now and wait for the result', line: 'vault certificate renew --name web --wait' },
  ],
  options: { ...nameOption, ...waitOptions },
  run: (args, terminal) =>
    withVault(args, terminal, 'refuse', async (vault) => {
      await requireCertificate(vault.db.reader, args.name, { suggest: true });
      const { id, status } = await requestRenewal(vault, localCli, args.name);
      if (args.wait) {
        await watchRenewal(vault, terminal, { id, name: args.name });
        return;
      }
      terminal.stderr.write(
        status === 'queued'
          ? `Queued the renewal of ${args.name}; "vault serve" runs it.\n`
          : `A renewal of ${args.name} is already running.\n`,
      );
    }),
});
