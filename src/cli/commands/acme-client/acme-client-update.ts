/** `vault acme-client update`: changes what an ACME client may do and keeps its key and accounts. */
import { isDeepStrictEqual } from 'node:util';
import { changeAcmeClient } from '../../../domain/acme-server/clients/acme-client-change.ts';
import { updateAcmeClientInput } from '../../../domain/acme-server/clients/acme-client-inputs.ts';
import {
  type AcmeClientView,
  acmeClientIdFrom,
  allAcmeClients,
  viewAcmeClient,
} from '../../../domain/acme-server/clients/acme-client-views.ts';
import { localCli } from '../../../domain/audit/audit.ts';
import { futureMoment } from '../../../domain/input-strings.ts';
import { parseInput } from '../../../domain/inputs.ts';
import { command } from '../../runtime/command.ts';
import { onVault } from '../../runtime/with-vault.ts';
import { Misuse } from '../../terminal/misuse.ts';
import { jsonText } from '../../terminal/output.ts';
import { jsonOption } from '../../terminal/table.ts';
import { expiryOf } from '../api-key/api-key-there.ts';
import { labelsFrom, newLabelsOption } from '../label-options.ts';
import { clientsThere } from './acme-client-choice.ts';
import { clientOption, clientRights, given, rateOf, validationOf } from './acme-client-options.ts';

const replacing = (text: string) => `${text.split(' (default: ', 1)[0]}; replaces the current ones`;

export const updateClientCommand = command({
  name: 'acme-client update',
  description: 'Change an ACME client; options not given stay the same',
  examples: [
    {
      does: 'Let a client order two names, and no others',
      line: 'vault acme-client update caddy --domain www.example.com --domain "*.shop.example.com"',
    },
    { does: 'Remove the expiry of a client', line: 'vault acme-client update caddy --expires-at none' },
  ],
  options: {
    ...clientOption,
    name: { type: 'string', valueHint: 'NAME', description: 'a new name' },
    domain: { ...clientRights.domain, description: replacing(clientRights.domain.description) },
    issuer: { ...clientRights.issuer, description: replacing(clientRights.issuer.description) },
    profile: {
      ...clientRights.profile,
      description: 'a profile of a private CA it may use, or none for any; replaces the current ones',
    },
    'allow-ip': {
      ...clientRights['allow-ip'],
      description: 'an address or network it may connect from, or "*" for any; replaces the current ones',
    },
    'expires-at': {
      ...clientRights['expires-at'],
      description: `${clientRights['expires-at'].description.replace(' (default: never)', '')}; or none`,
    },
    rate: { ...clientRights.rate, description: 'new orders per hour, or none for no limit' },
    validate: { ...clientRights.validate, description: replacing(clientRights.validate.description) },
    ...newLabelsOption,
    ...jsonOption,
  },
  run: async (args, terminal) => {
    const expiry = args['expires-at'];
    const changes = {
      name: args.name,
      domains: given(args.domain),
      issuers: given(args.issuer),
      profiles: args.profile.length === 1 && args.profile[0] === 'none' ? [] : given(args.profile),
      allowed_networks: given(args['allow-ip']),
      validation: validationOf(args.validate),
      rate: rateOf(args.rate),
      labels: labelsFrom(args.label),
      expires_at: expiry === 'none' ? null : expiry,
    };
    const named = Object.entries(changes).filter(([, value]) => value !== undefined);
    if (named.length === 0) throw new Misuse('nothing to change', 'Try: vault acme-client update --help');
    const expires_at = futureMoment(terminal.world.now()).nullable().optional();
    const wanted = Object.fromEntries(named);
    const input = parseInput(updateAcmeClientInput.extend({ expires_at }), wanted);
    const { id, isChanged, view } = await onVault(
      args,
      terminal,
      'refuse',
      async (vault) => {
        const found = await acmeClientIdFrom(allAcmeClients(vault), args.id);
        const changed = await changeAcmeClient(vault, localCli, found, input);
        return { id: found, isChanged: changed, view: await viewAcmeClient(vault, found) };
      },
      async (remote) => {
        const found = await acmeClientIdFrom(clientsThere(remote), args.id);
        const path = `/acme-clients/${found}`;
        const before = await remote.get<AcmeClientView>(path);
        const after = await remote.send<AcmeClientView>('PATCH', path, { ...wanted, ...expiryOf(input) });
        return {
          id: found,
          isChanged: !isDeepStrictEqual(settingsOf(before), settingsOf(after)),
          view: after,
        };
      },
    );
    terminal.stderr.write(isChanged ? `Updated ACME client ${id}.\n` : `ACME client ${id} is unchanged.\n`);
    if (args.json) terminal.stdout.write(jsonText(view));
  },
});

/** Without what changes as the client is used. */
function settingsOf({ last_used_at: _, last_used_ip: __, state: ___, ...settings }: AcmeClientView) {
  return settings;
}
