/** `vault certificate renew`: asks for a new version now, and waits for it where wanted. */
import { localCli } from '../../../domain/audit/audit.ts';
import { requestRenewal } from '../../../domain/renewals/renewals.ts';
import { requireCertificate } from '../../../domain/versions/certificate-lookup.ts';
import { command } from '../../runtime/command.ts';
import { withVault } from '../../runtime/with-vault.ts';
import { nameOption, waitOptions } from './certificate-options.ts';
import { watchRenewal } from './watch-renewal.ts';

export const renewCommand = command({
  name: 'certificate renew',
  description: 'renew a certificate now; a renewal that is open already is joined',
  examples: [{ does: 'Renew now, and watch', line: 'vault certificate renew --name web --wait' }],
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
          ? `The renewal of ${args.name} is queued; a running "vault serve" takes it up.\n`
          : `${args.name} is being renewed already.\n`,
      );
    }),
});
