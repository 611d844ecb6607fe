/** `vault certificate revoke`: revokes a version at its CA. */
import { localCli } from '../../../domain/audit/audit.ts';
import {
  type RevocationReason,
  revocationReasons,
  revokeVersion,
} from '../../../domain/certificates/revocation.ts';
import { command } from '../../runtime/command.ts';
import { stopSignal } from '../../runtime/stop-signal.ts';
import { onVault } from '../../runtime/with-vault.ts';
import { Misuse } from '../../terminal/misuse.ts';
import { nameOption } from './certificate-options.ts';
import { certificatePath } from './certificates-there.ts';

const reasons = Object.keys(revocationReasons);

export const revokeCommand = command({
  name: 'certificate revoke',
  description: 'Revoke a version and replace it if it is current',
  examples: [
    {
      does: 'Revoke the current version after a key leak, and order a new one',
      line: 'vault certificate revoke --name shop --reason keyCompromise',
    },
  ],
  options: {
    ...nameOption,
    version: {
      type: 'string',
      valueHint: 'N',
      description: 'the version to revoke (default: the current one)',
    },
    reason: {
      type: 'string',
      valueHint: 'REASON',
      values: reasons,
      description: `${reasons.join(', ')} (default: unspecified)`,
    },
  },
  run: async (args, terminal) => {
    const reason = args.reason ?? 'unspecified';
    if (!reasons.includes(reason)) {
      throw new Misuse(`--reason: unknown reason "${reason}"`, `Use one of ${reasons.join(', ')}.`);
    }
    if (args.version !== undefined && !/^[1-9]\d{0,8}$/.test(args.version)) {
      throw new Misuse(
        `--version: "${args.version}" is not a version number`,
        'Use a number from "vault certificate show".',
      );
    }
    const what = {
      version: args.version === undefined ? undefined : Number(args.version),
      reason: reason as RevocationReason,
    };
    const { version, renewal } = await onVault(
      args,
      terminal,
      'refuse',
      (vault) => revokeVersion(vault, localCli, args.name, what, stopSignal()),
      async (remote) => {
        const path = certificatePath(args.name, '/revoke');
        const done = await remote.send<{ version: number; renewal: number | null }>('POST', path, what);
        return { ...done, renewal: done.renewal ?? undefined };
      },
    );
    const next = renewal === undefined ? '' : ' Queued a renewal; "vault serve" runs it.';
    terminal.stderr.write(`Revoked version ${version} of ${args.name}.${next}\n`);
  },
});
