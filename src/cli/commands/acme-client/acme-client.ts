/** `vault acme-client …`: manages the programs that may order certificates from the vault by ACME. */
import { createAcmeClientInput } from '../../../domain/acme-server/clients/acme-client-inputs.ts';
import {
  type AcmeClientView,
  acmeClientIdFrom,
  allAcmeClients,
  viewAcmeClient,
} from '../../../domain/acme-server/clients/acme-client-views.ts';
import {
  createAcmeClient,
  deleteAcmeClient,
  revokeAcmeClient,
  rotateAcmeClient,
} from '../../../domain/acme-server/clients/acme-clients.ts';
import { localCli } from '../../../domain/audit/audit.ts';
import { futureMoment } from '../../../domain/input-strings.ts';
import { parseInput } from '../../../domain/inputs.ts';
import { command, commandGroup } from '../../runtime/command.ts';
import { confirmLoss, yesOption } from '../../runtime/confirmation.ts';
import { onVault } from '../../runtime/with-vault.ts';
import { facts, jsonPieces, jsonText, printPieces } from '../../terminal/output.ts';
import { jsonOption, printList } from '../../terminal/table.ts';
import { expiryOf } from '../api-key/api-key-there.ts';
import { labelFilterOption, labelsToFind } from '../label-options.ts';
import { clientsThere, onClient } from './acme-client-choice.ts';
import { keyedHere, keyedThere, printKey } from './acme-client-key.ts';
import { clientOption, clientRights, given, rateOf, validationOf } from './acme-client-options.ts';
import { updateClientCommand } from './acme-client-update.ts';

const create = command({
  name: 'acme-client create',
  description: 'Create an ACME client and print its key once',
  examples: [
    {
      does: 'Let Caddy order certificates of the private CA for all names below example.com',
      line: 'vault acme-client create --name caddy --domain "*.example.com"',
    },
    {
      does: 'Let a host order its own name from one network, until 2030',
      line: 'vault acme-client create --name www --domain www.example.com --allow-ip 192.0.2.0/24 --expires-at 2030-01-31',
    },
  ],
  options: {
    name: {
      type: 'string',
      valueHint: 'NAME',
      required: true,
      description: 'a name that says which program it is',
    },
    ...clientRights,
    domain: { ...clientRights.domain, required: true },
    ...jsonOption,
  },
  run: async (args, terminal) => {
    const expires_at = futureMoment(terminal.world.now()).optional();
    const wanted = {
      name: args.name,
      domains: args.domain,
      issuers: given(args.issuer),
      profiles: args.profile,
      allowed_networks: args['allow-ip'],
      validation: validationOf(args.validate),
      rate: rateOf(args.rate),
      labels: args.label,
      ...(args['expires-at'] !== undefined && { expires_at: args['expires-at'] }),
    };
    const input = parseInput(createAcmeClientInput.extend({ expires_at }), wanted);
    const made = await onVault(
      args,
      terminal,
      'create',
      async (vault, settings) => {
        const { id, key } = await createAcmeClient(vault, localCli, input);
        return keyedHere(await viewAcmeClient(vault, id), key, settings);
      },
      async (remote) =>
        keyedThere(await remote.send('POST', '/acme-clients', { ...wanted, ...expiryOf(input) })),
    );
    printKey(terminal, args, made);
  },
});

const list = command({
  name: 'acme-client list',
  description: 'List ACME clients',
  examples: [{ does: 'List all ACME clients', line: 'vault acme-client list' }],
  options: { ...labelFilterOption, ...jsonOption },
  run: async (args, terminal) => {
    const labels = labelsToFind(args.label);
    const print = async (pages: AsyncIterable<readonly AcmeClientView[]>) => {
      if (args.json) return printPieces(jsonPieces(pages), terminal.stdout);
      printList(terminal, args, (await Array.fromAsync(pages)).flat(), {
        none:
          labels === undefined
            ? 'No ACME clients yet.\n  Try: vault acme-client create --help'
            : 'No matching ACME clients.',
        columns: [
          'ID',
          { title: 'NAME', holds: 'name' },
          'STATE',
          { title: 'DOMAINS', holds: 'list' },
          { title: 'ISSUERS', holds: 'list' },
          { title: 'EXPIRES', holds: 'time' },
          { title: 'LAST USED', holds: 'time' },
        ],
        row: ({ id, name, state, domains, issuers, expires_at, last_used_at }) => [
          ...[String(id), name, state],
          ...[domains, issuers],
          ...[expires_at ?? 'never', last_used_at ?? 'never'],
        ],
      });
    };
    await onVault(
      args,
      terminal,
      'refuse',
      (vault) => print(allAcmeClients(vault, labels)),
      (remote) => print(clientsThere(remote, labels)),
    );
  },
});

const show = command({
  name: 'acme-client show',
  description: 'Show an ACME client, without its HMAC key',
  examples: [{ does: 'Show what a client may order', line: 'vault acme-client show caddy' }],
  options: { ...clientOption, ...jsonOption },
  run: async (args, terminal) => {
    const view = await onVault(
      args,
      terminal,
      'refuse',
      async (vault) => viewAcmeClient(vault, await acmeClientIdFrom(allAcmeClients(vault), args.id)),
      async (remote) =>
        remote.get<AcmeClientView>(`/acme-clients/${await acmeClientIdFrom(clientsThere(remote), args.id)}`),
    );
    if (args.json) {
      terminal.stdout.write(jsonText(view));
      return;
    }
    const listed = (values: readonly string[], none: string) =>
      values.length === 0 ? none : values.join(' ');
    terminal.stdout.write(
      facts([
        ['id', String(view.id)],
        ['name', view.name],
        ['state', view.state],
        ['kid', view.kid],
        ['domains', view.domains.join(' ')],
        ['issuers', view.issuers.join(' ')],
        ['profiles', listed(view.profiles, 'any')],
        ['networks', listed(view.allowed_networks, 'any')],
        ['validation', listed(view.validation, 'none')],
        ...(view.labels.length === 0 ? [] : [['labels', view.labels.join(' ')] as const]),
        ['rate', view.rate === null ? 'no limit' : `${view.rate} orders per hour`],
        ['created', view.created_at],
        ['expires', view.expires_at ?? 'never'],
        ...(view.revoked_at === null ? [] : [['revoked', view.revoked_at] as const]),
        ['last used', view.last_used_at ?? 'never'],
        ...(view.last_used_ip === null ? [] : [['from', view.last_used_ip] as const]),
      ]),
    );
  },
});

const rotate = command({
  name: 'acme-client rotate',
  description: 'Replace the key of an ACME client and print it once',
  examples: [
    { does: 'Replace a key; registered accounts keep working', line: 'vault acme-client rotate caddy' },
  ],
  options: { ...clientOption, ...jsonOption },
  run: async (args, terminal) => {
    const made = await onVault(
      args,
      terminal,
      'refuse',
      async (vault, settings) => {
        const id = await acmeClientIdFrom(allAcmeClients(vault), args.id);
        const { key } = await rotateAcmeClient(vault, localCli, id);
        return keyedHere(await viewAcmeClient(vault, id), key, settings);
      },
      async (remote) => {
        const id = await acmeClientIdFrom(clientsThere(remote), args.id);
        return keyedThere(await remote.send('POST', `/acme-clients/${id}/rotate`));
      },
    );
    printKey(terminal, args, made);
    const { name } = made.client;
    terminal.stderr.write(`The old key of ${name} is no longer valid; registered accounts keep working.\n`);
  },
});

const revoke = command({
  name: 'acme-client revoke',
  description: 'Revoke an ACME client and its accounts immediately',
  examples: [
    { does: 'Revoke a client; its next request is refused', line: 'vault acme-client revoke caddy' },
  ],
  options: clientOption,
  run: async (args, terminal) => {
    const id = await onClient(
      args,
      terminal,
      (vault, found) => revokeAcmeClient(vault, localCli, found),
      (remote, found) => remote.send('POST', `/acme-clients/${found}/revoke`),
    );
    terminal.stderr.write(`Revoked ACME client ${id}.\n`);
  },
});

const remove = command({
  name: 'acme-client delete',
  description: 'Delete a revoked ACME client',
  examples: [{ does: 'Delete a revoked client', line: 'vault acme-client delete caddy' }],
  options: { ...clientOption, ...yesOption },
  run: async (args, terminal) => {
    const id = await onClient(
      args,
      terminal,
      (vault, found) => deleteAcmeClient(vault, localCli, found),
      (remote, found) => remote.send('DELETE', `/acme-clients/${found}`),
      async (found) => {
        const question = `Delete ACME client ${found} with its accounts? The audit log keeps its events.`;
        // A revoked client orders nothing, so scripts need no --yes.
        await confirmLoss(terminal, { yes: args.yes === true }, { question, isPermanent: false });
      },
    );
    terminal.stderr.write(`Deleted ACME client ${id}.\n`);
  },
});

export const acmeClientCommands = commandGroup('acme-client', 'Manage programs that order by ACME', {
  create,
  list,
  show,
  update: updateClientCommand,
  rotate,
  revoke,
  delete: remove,
});
