/** `vault certificate delete`, `undelete` and `purge`: deletion can be undone for a while, purging cannot. */
import { day } from '../../../base/duration.ts';
import { parseTimestamp } from '../../../base/timestamp.ts';
import { localCli } from '../../../domain/audit/audit.ts';
import { purgeCertificate, refuseUnknownDeleted } from '../../../domain/certificates/certificate-purging.ts';
import { deleteCertificate } from '../../../domain/certificates/certificates.ts';
import { undeleteCertificate } from '../../../domain/certificates/deleted-certificates.ts';
import { neededForHttps } from '../../../domain/instance/served-settings.ts';
import { command } from '../../runtime/command.ts';
import { confirmLoss, yesOption } from '../../runtime/confirmation.ts';
import { onVault } from '../../runtime/with-vault.ts';
import { labelArguments } from '../label-options.ts';
import { nameOption } from './certificate-options.ts';
import { certificatePath, deletedThere, undeleteThere } from './certificates-there.ts';

export const deleteCommand = command({
  name: 'certificate delete',
  description: 'Delete a certificate; it can be restored for 30 days',
  examples: [
    { does: 'Delete a certificate that no API key lists', line: 'vault certificate delete --name web' },
    {
      does: 'Delete a certificate and remove it from the allowlists of API keys',
      line: 'vault certificate delete --name mail --force',
    },
  ],
  options: {
    ...nameOption,
    force: {
      type: 'boolean',
      description: 'delete the certificate even if the vault serves HTTPS with it or API keys list it',
    },
  },
  run: async (args, terminal) => {
    const kept = await onVault(
      args,
      terminal,
      'refuse',
      async (vault, { tls, keepDeleted }) => {
        if (tls?.kind === 'certificate' && tls.name === args.name && !args.force) {
          throw neededForHttps(args.name);
        }
        await deleteCertificate(vault, localCli, args.name, { force: args.force });
        return keepDeleted;
      },
      async (remote) => {
        await remote.send('DELETE', certificatePath(args.name, args.force ? '?force=true' : ''));
        const { deleted_at, purge_at } = await deletedThere(remote, args.name);
        return (parseTimestamp(purge_at) ?? 0) - (parseTimestamp(deleted_at) ?? 0);
      },
    );
    terminal.stderr.write(
      `Deleted certificate ${args.name}. The vault keeps it for ${Math.floor(kept / day)} days.\n` +
        `  To restore it: vault certificate undelete --name ${args.name}\n`,
    );
  },
});

/** Without completion: the names of deleted certificates are not those of certificates. */
const deletedName = {
  name: {
    type: 'string',
    valueHint: 'NAME',
    required: true,
    positional: 'or-flag',
    description: 'the name of the deleted certificate',
  },
} as const;

export const undeleteCommand = command({
  name: 'certificate undelete',
  description: 'Restore a deleted certificate',
  examples: [
    {
      does: 'Restore a certificate with its versions and keys',
      line: 'vault certificate undelete --name web',
    },
  ],
  options: {
    ...deletedName,
    as: { type: 'string', valueHint: 'NAME', description: 'the name to restore it under (default: its own)' },
  },
  run: async (args, terminal) => {
    const { name, lostIssuer, apiKeys, labels } = await onVault(
      args,
      terminal,
      'refuse',
      (vault) => undeleteCertificate(vault, localCli, { name: args.name }, args.as),
      (remote) => undeleteThere(remote, args.name, args.as),
    );
    const say = (line: string) => terminal.stderr.write(`${line}\n`);
    say(`Restored certificate ${name}.`);
    if (lostIssuer !== undefined) {
      say(`  Its issuer ${lostIssuer} was removed. To renew it again, set another:`);
      say(`  Fix: vault certificate update --name ${name} --issuer ISSUER`);
    }
    if (apiKeys.length > 0) {
      const keys = apiKeys.map((key) => `${key.id} (${key.name})`).join(', ');
      say(`  These API keys listed it and no longer do: ${keys}. Create new keys for their clients.`);
    }
    if (labels.length > 0) {
      say('  It has no labels now. To give access by them again:');
      say(`  Fix: vault certificate update --name ${name} ${labelArguments(labels)}`);
    }
  },
});

export const purgeCommand = command({
  name: 'certificate purge',
  description: 'Destroy a deleted certificate with its keys now',
  examples: [
    {
      does: 'Destroy the private keys of a deleted certificate',
      line: 'vault certificate purge --name mail --yes',
    },
  ],
  options: { ...deletedName, ...yesOption },
  run: async (args, terminal) => {
    const confirm = () =>
      confirmLoss(terminal, args, {
        question: `Destroy the deleted certificate ${args.name} and its private keys?`,
        isPermanent: true,
      });
    await onVault(
      args,
      terminal,
      'refuse',
      async (vault) => {
        await refuseUnknownDeleted(vault, args.name);
        await confirm();
        await purgeCertificate(vault, localCli, { name: args.name });
      },
      async (remote) => {
        const { id } = await deletedThere(remote, args.name);
        await confirm();
        await remote.send('DELETE', `/deleted-certificates/${id}`);
      },
    );
    terminal.stderr.write(`Purged certificate ${args.name}.\n`);
  },
});
