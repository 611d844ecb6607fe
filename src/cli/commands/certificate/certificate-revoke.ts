/** `vault certificate revoke`: tells the CA that a version must not be trusted any more. */
import { localCli } from '../../../domain/audit/audit.ts';
import {
  type RevocationReason,
  revocationReasons,
  revokeVersion,
} from '../../../domain/certificates/revocation.ts';
import { command } from '../../runtime/command.ts';
import { stopSignal } from '../../runtime/stop-signal.ts';
import { withVault } from '../../runtime/with-vault.ts';
import { Misuse } from '../../terminal/misuse.ts';
import { nameOption } from './certificate-options.ts';

const reasons = Object.keys(revocationReasons);

export const revokeCommand = command({
  name: 'certificate revoke',
  description: 'have the CA revoke a version; the current one is replaced at once',
  examples: [
    {
      does: 'Its key was seen by somebody: revoke the current version, and order another',
      line: 'vault certificate revoke --name shop --reason key-compromise',
    },
  ],
  options: {
    ...nameOption,
    version: { type: 'string', valueHint: 'N', description: 'which version (default: the current one)' },
    reason: {
      type: 'string',
      valueHint: 'REASON',
      required: true,
      values: reasons,
      description: reasons.join(', '),
    },
  },
  run: async (args, terminal) => {
    if (!reasons.includes(args.reason)) {
      throw new Misuse(`--reason ${args.reason} is not a reason`, `Use one of ${reasons.join(', ')}.`);
    }
    if (args.version !== undefined && !/^[1-9]\d{0,8}$/.test(args.version)) {
      throw new Misuse(`--version ${args.version} is not a version`, 'Write a number such as --version 3.');
    }
    await withVault(args, terminal, 'refuse', async (vault) => {
      const { version, renewal } = await revokeVersion(
        vault,
        localCli,
        args.name,
        {
          version: args.version === undefined ? undefined : Number(args.version),
          reason: args.reason as RevocationReason,
        },
        stopSignal(),
      );
      const next = renewal === undefined ? '' : ' A new version is ordered as soon as "vault serve" runs.';
      terminal.stderr.write(`Version ${version} of ${args.name} is revoked.${next}\n`);
    });
  },
});
