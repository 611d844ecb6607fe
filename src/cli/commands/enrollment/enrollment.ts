/** `vault enrollment …`: manages tokens that machines exchange for API keys of their own. */
import { localCli } from '../../../domain/audit/audit.ts';
import {
  allEnrollments,
  type EnrollmentView,
  viewEnrollment,
} from '../../../domain/enrollments/enrollment-views.ts';
import { deleteEnrollment, revokeEnrollment } from '../../../domain/enrollments/enrollments.ts';
import { command, commandGroup } from '../../runtime/command.ts';
import { confirmLoss, yesOption } from '../../runtime/confirmation.ts';
import { onVault } from '../../runtime/with-vault.ts';
import { facts, jsonPieces, jsonText, printPieces } from '../../terminal/output.ts';
import { jsonOption, printList } from '../../terminal/table.ts';
import { labelFilterOption, labelsToFind } from '../label-options.ts';
import {
  addKeys,
  type EnrollmentWithKeys,
  enrollmentOption,
  enrollmentsThere,
  keysHere,
  keysThere,
  onEnrollment,
  withKeys,
} from './enrollment-choice.ts';
import { createCommand } from './enrollment-create.ts';

const list = command({
  name: 'enrollment list',
  description: 'List enrollments with the API keys they created',
  examples: [
    { does: 'List all enrollments', line: 'vault enrollment list' },
    { does: 'List them with the state and the last use of each key', line: 'vault enrollment list --json' },
  ],
  options: { ...labelFilterOption, ...jsonOption },
  run: async (args, terminal) => {
    const labels = labelsToFind(args.label);
    const print = async (pages: AsyncIterable<readonly EnrollmentWithKeys[]>) => {
      if (args.json) return printPieces(jsonPieces(pages), terminal.stdout);
      printList(terminal, args, (await Array.fromAsync(pages)).flat(), {
        none:
          labels === undefined
            ? 'No enrollments yet.\n  Try: vault enrollment create --help'
            : 'No matching enrollments.',
        columns: [
          'ID',
          { title: 'NAME', holds: 'name' },
          'STATE',
          'USES',
          { title: 'CERTIFICATES', holds: 'list' },
          { title: 'NETWORKS', holds: 'list' },
          { title: 'EXPIRES', holds: 'time' },
          { title: 'API KEYS', holds: 'list' },
        ],
        row: (enrollment) => [
          ...[String(enrollment.id), enrollment.name, stateText(enrollment)],
          `${enrollment.uses} of ${enrollment.max_uses}`,
          certificatesOf(enrollment),
          enrollment.allowed_networks.length === 0 ? 'any' : enrollment.allowed_networks,
          enrollment.expires_at,
          enrollment.api_keys.length === 0 ? '-' : enrollment.api_keys.map(keyText),
        ],
      });
    };
    await onVault(
      args,
      terminal,
      'refuse',
      (vault) => print(withKeys(allEnrollments(vault, labels), keysHere(vault))),
      (remote) => print(withKeys(enrollmentsThere(remote, labels), keysThere(remote))),
    );
  },
});

const show = command({
  name: 'enrollment show',
  description: 'Show an enrollment with the API keys it created',
  examples: [{ does: 'Show which machines used a token', line: 'vault enrollment show rack-4' }],
  options: { ...enrollmentOption, ...jsonOption },
  run: async (args, terminal) => {
    const { result } = await onEnrollment(
      args,
      terminal,
      'active',
      async (vault, id) => addKeys(await viewEnrollment(vault, id), keysHere(vault)),
      async (remote, id) =>
        addKeys(await remote.get<EnrollmentView>(`/enrollments/${id}`), keysThere(remote)),
    );
    if (args.json) {
      terminal.stdout.write(jsonText(result));
      return;
    }
    const networks = result.allowed_networks.length === 0 ? ['any'] : result.allowed_networks;
    terminal.stdout.write(
      facts([
        ['id', String(result.id)],
        ['name', result.name],
        ['token', `${result.prefix}…`],
        ['state', stateText(result)],
        ['uses', `${result.uses} of ${result.max_uses}`],
        ['scopes', result.scopes.join(' ')],
        ['certificates', certificatesOf(result).join(' ')],
        ['networks', networks.join(' ')],
        ['keys bound to', result.bind_address ? 'the address they were created from' : 'the networks'],
        ...(result.labels.length === 0 ? [] : [['labels', result.labels.join(' ')] as const]),
        ['created', `${result.created_at} by ${result.created_by}`],
        ['expires', result.expires_at],
        ['keys expire', result.key_expires_at ?? 'never'],
        ...(result.revoked_at === null ? [] : [['revoked', result.revoked_at] as const]),
        ...result.api_keys.map(
          (key) =>
            [`API key ${key.id}`, `${keyText(key)}, last used ${key.last_used_at ?? 'never'}`] as const,
        ),
      ]),
    );
  },
});

function stateText({ state }: Pick<EnrollmentView, 'state'>): string {
  return state.replace('_', ' ');
}

function certificatesOf({ certificates, certificate_labels }: EnrollmentView): string[] {
  return [...certificates, ...certificate_labels];
}

/** The name of a key, with its state unless it works. */
function keyText({ name, state }: { readonly name: string; readonly state: string }): string {
  return state === 'active' ? name : `${name} (${state})`;
}

const revoke = command({
  name: 'enrollment revoke',
  description: 'Revoke an enrollment, alone or with its API keys',
  examples: [
    { does: 'Revoke a token; machines that have a key keep it', line: 'vault enrollment revoke rack-4' },
    {
      does: 'Revoke a token and all keys that it created',
      line: 'vault enrollment revoke rack-4 --with-keys',
    },
  ],
  options: {
    ...enrollmentOption,
    'with-keys': { type: 'boolean', description: 'also revoke all API keys that it created' },
  },
  run: async (args, terminal) => {
    const input = { api_keys: args['with-keys'] === true };
    const { id, result } = await onEnrollment(
      args,
      terminal,
      'active',
      (vault, found) => revokeEnrollment(vault, localCli, found, input),
      async (remote, found) =>
        (await remote.send<{ revoked_api_keys: number }>('POST', `/enrollments/${found}/revoke`, input))
          .revoked_api_keys,
    );
    terminal.stderr.write(`Revoked enrollment ${id}.\n`);
    if (input.api_keys) terminal.stderr.write(`API keys revoked: ${result}\n`);
  },
});

const remove = command({
  name: 'enrollment delete',
  description: 'Delete an enrollment that no longer works; its keys stay',
  examples: [
    { does: 'Delete a token that is revoked, used up or expired', line: 'vault enrollment delete rack-4' },
  ],
  options: { ...enrollmentOption, ...yesOption },
  run: async (args, terminal) => {
    const { id } = await onEnrollment(
      args,
      terminal,
      'ended',
      async (vault, found) => {
        await confirmed(found);
        await deleteEnrollment(vault, localCli, found);
      },
      async (remote, found) => {
        await confirmed(found);
        await remote.send('DELETE', `/enrollments/${found}`);
      },
    );
    terminal.stderr.write(`Deleted enrollment ${id}.\n`);

    function confirmed(found: number): Promise<void> {
      const question = `Delete enrollment ${found}? Its API keys and the events of the audit log stay.`;
      // Its token creates nothing any more, so scripts need no --yes.
      return confirmLoss(terminal, { yes: args.yes === true }, { question, isPermanent: false });
    }
  },
});

export const enrollmentCommands = commandGroup(
  'enrollment',
  'Let machines get API keys of their own with a token',
  { create: createCommand, list, show, revoke, delete: remove },
);
