/**
 * `vault certificate renew`: queues the renewal of one certificate, and waits for it with --wait, or of many, spread
 * over time.
 */
import { formatTimestamp } from '../../../base/timestamp.ts';
import { localCli } from '../../../domain/audit/audit.ts';
import { pagesOfCertificates } from '../../../domain/certificates/certificate-search.ts';
import { requestRenewals } from '../../../domain/renewals/renewal-spread.ts';
import { requestRenewal } from '../../../domain/renewals/renewals.ts';
import type { Vault } from '../../../domain/vault.ts';
import { requireCertificate } from '../../../domain/versions/certificate-lookup.ts';
import { command } from '../../runtime/command.ts';
import { confirmLoss, yesOption } from '../../runtime/confirmation.ts';
import { onVault, withVault } from '../../runtime/with-vault.ts';
import { Misuse } from '../../terminal/misuse.ts';
import type { Terminal } from '../../terminal/terminal.ts';
import { filterFor, filterOptions, givenFilters, type ReadFilter, readFilter } from './certificate-filter.ts';
import { nameOption, waitOptions } from './certificate-options.ts';
import { renewThere } from './certificates-there.ts';
import { watchRenewal } from './watch-renewal.ts';
import { watchThere } from './watch-there.ts';

/** More renewals than this are confirmed on a terminal. */
const maxUnasked = 10;

export const renewCommand = command({
  name: 'certificate renew',
  description: 'Renew a certificate now, or many over time',
  examples: [
    { does: 'Renew now and wait for the result', line: 'vault certificate renew --name web --wait' },
    {
      does: 'Renew what expires within 30 days, one certificate a minute at each ACME CA',
      line: 'vault certificate renew --expiring 30d',
    },
    { does: 'Renew all certificates, without a question', line: 'vault certificate renew --all --yes' },
  ],
  options: {
    name: { ...nameOption.name, required: false },
    all: { type: 'boolean', description: 'renew all certificates, or all that match the filters' },
    ...filterOptions,
    ...waitOptions,
    ...yesOption,
  },
  run: async (args, terminal) => {
    const { name, wait } = args;
    const [several] = [...(args.all ? ['--all'] : []), ...givenFilters(args)];
    if (name === undefined && several === undefined) {
      throw new Misuse('--name is missing', 'Name a certificate, or choose many with --all or a filter.');
    }
    if (name !== undefined && several !== undefined) {
      throw new Misuse(`--name and ${several} exclude each other`, 'Use one of them.');
    }
    if (several !== undefined && terminal.server !== undefined) {
      throw new Misuse(
        `${several} works only on the vault's machine, which spreads the renewals over time`,
        'Run it there, or renew one certificate with --name.',
      );
    }
    if (several !== undefined && wait) {
      throw new Misuse(
        '--wait needs one certificate',
        'Name it with --name, or follow all renewals with "vault renewals list".',
      );
    }
    const filter = readFilter(args);
    if (name === undefined) {
      await withVault(args, terminal, 'refuse', (vault) => renewMany(vault, terminal, filter, args));
      return;
    }
    await onVault(
      args,
      terminal,
      'refuse',
      async (vault) => {
        await requireCertificate(vault.db.reader, name, { suggest: true });
        const { id, status } = await requestRenewal(vault, localCli, name);
        if (wait) await watchRenewal(vault, terminal, { id, name });
        else sayRequested(terminal, name, status);
      },
      async (remote) => {
        const { id, status } = await renewThere(remote, name);
        if (wait) await watchThere(remote, terminal, { id, name });
        else sayRequested(terminal, name, status);
      },
    );
  },
});

function sayRequested(terminal: Terminal, name: string, status: string): void {
  terminal.stderr.write(
    status === 'queued'
      ? `Queued the renewal of ${name}; "vault serve" runs it.\n`
      : `A renewal of ${name} is already running.\n`,
  );
}

/** Those that expire first come first. */
async function renewMany(
  vault: Vault,
  terminal: Terminal,
  filter: ReadFilter,
  confirmed: { readonly yes: boolean },
): Promise<void> {
  const search = { ...(await filterFor(vault, filter)), sort: 'expiry' } as const;
  const found = (await Array.fromAsync(pagesOfCertificates(vault, search))).flat();
  const names = found
    .filter(({ issuer_name, disabled_at }) => issuer_name !== null && disabled_at === null)
    .map(({ name }) => name);
  if (found.length === 0) {
    terminal.stderr.write('No matching certificates.\n');
    return;
  }
  if (names.length > maxUnasked) {
    const question = `Renew ${names.length} certificates?`;
    await confirmLoss(terminal, confirmed, { question, isPermanent: false });
  }
  const { queued, alreadyOpen, lastAt } = await requestRenewals(vault, localCli, names);
  const skipped = found.length - names.length;
  const last = lastAt === undefined ? '' : ` The last one starts by ${formatTimestamp(lastAt)}.`;
  const lines = [
    queued > 0 &&
      `Queued ${count(queued, 'renewal')}; "vault serve" runs ${queued === 1 ? 'it' : 'them'}.${last}`,
    alreadyOpen > 0 && `Already queued or running: ${count(alreadyOpen, 'renewal')}.`,
    skipped > 0 && `Skipped ${count(skipped, 'certificate')}: imported or disabled.`,
  ];
  terminal.stderr.write(lines.map((text) => (text === false ? '' : `${text}\n`)).join(''));
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}
