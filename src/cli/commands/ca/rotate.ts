/** `vault ca show` and `vault ca rotate`: the roots and intermediates of private CAs. */
import { formatTimestamp } from '../../../base/timestamp.ts';
import { localCli } from '../../../domain/audit/audit.ts';
import type { DatabaseContext } from '../../../domain/contexts.ts';
import { type CaCertificateView, viewCaCertificates } from '../../../domain/private-ca/ca-views.ts';
import { localCaName, privateCaNamed } from '../../../domain/private-ca/local-ca.ts';
import type { PrivateCa } from '../../../domain/private-ca/rotation.ts';
import { rotateCa } from '../../../domain/renewals/ca-rotation.ts';
import { command } from '../../runtime/command.ts';
import { onVault } from '../../runtime/with-vault.ts';
import { jsonOption, printList } from '../../terminal/table.ts';
import { caPath, noPrivateCa, rotateThere } from './cas-there.ts';
import { issuerOption } from './root-key.ts';

export const showCaCommand = command({
  name: 'ca show',
  description: 'List the roots and intermediates of a private CA',
  examples: [{ does: 'Show until when a former root is needed', line: 'vault ca show' }],
  options: { ...issuerOption, ...jsonOption },
  run: async (args, terminal) => {
    const issuer = args.issuer ?? localCaName;
    const certificates = await onVault(
      args,
      terminal,
      'refuse',
      async (vault) => viewCaCertificates(vault, (await requireCa(vault, issuer)).id),
      async (remote) => remote.get<CaCertificateView[]>(await caPath(remote, issuer)),
    );
    printList(terminal, args, certificates, {
      none: 'No CA certificates.',
      columns: [
        'ROLE',
        'STATE',
        { title: 'SUBJECT', holds: 'text' },
        'KEY',
        { title: 'EXPIRES', holds: 'time' },
        { title: 'NEEDED UNTIL', holds: 'time' },
      ],
      row: (one) => [one.role, one.state, one.subject, one.key, one.not_after, one.needed_until ?? '-'],
    });
  },
});

export const rotateCaCommand = command({
  name: 'ca rotate',
  description:
    'Replace the root of a private CA; both roots are trusted until the last certificate under the former one expires',
  examples: [
    { does: 'Replace the root of the built-in CA', line: 'vault ca rotate' },
    { does: 'Replace the root of another private CA', line: 'vault ca rotate --issuer staging-ca' },
  ],
  options: issuerOption,
  run: async (args, terminal) => {
    const issuer = args.issuer ?? localCaName;
    const { formerUntil, queued, isTight } = await onVault(
      args,
      terminal,
      'refuse',
      async (vault) => rotateCa(vault, localCli, await requireCa(vault, issuer)),
      (remote) => rotateThere(remote, issuer),
    );
    const lines = [
      `Replaced the root of ${issuer}. Certificates are issued under the new root from now on.`,
      queuedRenewals(queued),
      formerUntil > terminal.world.now() &&
        `Install the roots again on clients that trust the private CA, until ${formatTimestamp(formerUntil)}. Until then, /client/ca.crt has both.`,
      isTight &&
        'Go programs that trust only the former root do not accept certificates under the new one: it permits a single CA below it, and they count the link too. Install the roots there first.',
    ];
    terminal.stderr.write(lines.map((text) => (text === false ? '' : `${text}\n`)).join(''));
  },
});

/** The sentence about renewals that were queued; false for none. */
export function queuedRenewals(count: number): string | false {
  if (count === 0) return false;
  if (count === 1) return 'Queued 1 renewal, over a day; "vault serve" runs it.';
  return `Queued ${count} renewals, over a day; "vault serve" runs them.`;
}

/** The private CA of this name. Throws OperatorError if there is none. */
export async function requireCa(vault: DatabaseContext, name: string): Promise<PrivateCa> {
  const ca = await privateCaNamed(vault, name);
  if (ca !== undefined) return ca;
  throw noPrivateCa(name);
}
