/** `vault enrollment create`: a token that is printed once. */
import { Secret } from '../../../base/secret.ts';
import { formatTimestamp } from '../../../base/timestamp.ts';
import { localCli } from '../../../domain/audit/audit.ts';
import { createEnrollmentInput } from '../../../domain/enrollments/enrollment-inputs.ts';
import { type EnrollmentView, viewEnrollment } from '../../../domain/enrollments/enrollment-views.ts';
import { createEnrollment } from '../../../domain/enrollments/enrollments.ts';
import { futureMoment } from '../../../domain/input-strings.ts';
import { parseInput } from '../../../domain/inputs.ts';
import { command } from '../../runtime/command.ts';
import { onVault } from '../../runtime/with-vault.ts';
import { Misuse } from '../../terminal/misuse.ts';
import { jsonText } from '../../terminal/output.ts';
import { jsonOption } from '../../terminal/table.ts';
import { rightsOptions } from '../api-key/api-key-options.ts';
import { labelOption } from '../label-options.ts';

export const createCommand = command({
  name: 'enrollment create',
  description: 'Create an enrollment and print its token once',
  examples: [
    {
      does: 'Let 20 machines get a key for one certificate, during the next day',
      line: 'vault enrollment create --certificate web --uses 20 --expires-at 1d',
    },
    {
      does: 'Let the machines of one network get keys that work only from their own addresses',
      line: 'vault enrollment create --name rack-4 --certificate-label team=web --uses 40 --expires-at 7d --allow-ip 192.0.2.0/24 --bind-address',
    },
  ],
  options: {
    name: {
      type: 'string',
      valueHint: 'NAME',
      description: 'a name that says which machines it is for (default: the public prefix of its token)',
    },
    certificate: {
      ...rightsOptions.certificate,
      description: 'a certificate that the keys may read, or "*" for all, including future ones',
    },
    'certificate-label': {
      ...rightsOptions['certificate-label'],
      description:
        'a label, such as team=web; the keys may access all certificates with it, including future ones',
    },
    uses: {
      type: 'string',
      valueHint: 'N',
      description: 'how many machines get a key with the token, up to 10000 (default: 1)',
    },
    'expires-at': {
      type: 'string',
      valueHint: 'TIME',
      required: true,
      description:
        'until when the token works: 1d for one day, 2030-01-31 for the start of that day in UTC, or 2030-01-31T00:00:00Z',
    },
    'allow-ip': {
      ...rightsOptions['allow-ip'],
      description:
        'an address or network the token and the keys may be used from, such as 192.0.2.0/24 (default: any)',
    },
    'bind-address': {
      type: 'boolean',
      description: 'let each key work only from the address that its machine enrolls from',
    },
    'key-expires-at': {
      type: 'string',
      valueHint: 'TIME',
      description: 'when the keys expire, written like --expires-at (default: never)',
    },
    scope: {
      ...rightsOptions.scope,
      description: `${rightsOptions.scope.description} (default: certificates:read and private_keys:read)`,
    },
    label: {
      ...labelOption.label,
      description: 'a label of the enrollment and of the keys, such as team=web',
    },
    ...jsonOption,
  },
  run: async (args, terminal) => {
    if (args.certificate.length === 0 && args['certificate-label'].length === 0) {
      throw new Misuse('--certificate is missing', 'Try: vault enrollment create --help');
    }
    const moment = futureMoment(terminal.world.now());
    const wanted = {
      ...(args.name !== undefined && { name: args.name }),
      ...(args.scope.length > 0 && { scopes: args.scope }),
      certificates: args.certificate,
      certificate_labels: args['certificate-label'],
      allowed_networks: args['allow-ip'],
      bind_address: args['bind-address'] === true,
      labels: args.label,
      ...(args.uses !== undefined && { uses: usesOf(args.uses) }),
      expires_at: args['expires-at'],
      ...(args['key-expires-at'] !== undefined && { key_expires_at: args['key-expires-at'] }),
    };
    const schema = createEnrollmentInput.safeExtend({
      expires_at: moment,
      key_expires_at: moment.optional(),
    });
    const input = parseInput(schema, wanted);
    const { expires_at, key_expires_at } = input;
    const { view, token } = await onVault(
      args,
      terminal,
      'create',
      async (vault) => {
        const { id, token: made } = await createEnrollment(vault, localCli, input);
        return { view: await viewEnrollment(vault, id), token: made };
      },
      async (remote) => {
        const { token: made, ...rest } = await remote.send<EnrollmentView & { token: string }>(
          'POST',
          '/enrollments',
          {
            ...wanted,
            expires_at: formatTimestamp(expires_at),
            ...(key_expires_at !== undefined && { key_expires_at: formatTimestamp(key_expires_at) }),
          },
        );
        return { view: rest, token: new Secret(made) };
      },
    );
    const raw = token.expose();
    terminal.stdout.write(args.json ? jsonText({ ...view, token: raw }) : `${raw}\n`);
    terminal.stderr.write(
      `The token is not shown again. Store it in a file that only root can read, and enroll each machine with it:\n` +
        `  install.sh --enroll FILE …\n`,
    );
  },
});

/** The number of `--uses`. */
function usesOf(text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new Misuse(`--uses: "${text}" is not a number of machines`, 'Write a number such as 20.');
}
