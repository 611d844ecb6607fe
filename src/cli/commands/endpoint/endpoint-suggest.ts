/** `vault endpoint suggest`: which endpoints the names of a certificate speak of. */
import { isIP } from 'node:net';
import { parseJson } from '../../../base/json.ts';
import type { CertificateView } from '../../../domain/certificates/certificate-views.ts';
import { addressText, usualPort } from '../../../domain/endpoints/endpoint-inputs.ts';
import type { EndpointView } from '../../../domain/endpoints/endpoints.ts';
import { requireCertificate } from '../../../domain/versions/certificate-lookup.ts';
import type { StartTls } from '../../../net/starttls.ts';
import { command } from '../../runtime/command.ts';
import { onVault } from '../../runtime/with-vault.ts';
import { jsonText } from '../../terminal/output.ts';
import { jsonOption } from '../../terminal/table.ts';
import { certificatePath, suggestingThere } from '../certificate/certificates-there.ts';
import { addressWord, endpointsHere, endpointsThere } from './endpoint-choice.ts';

/** `vault endpoint suggest`. */
export const suggest = command({
  name: 'endpoint suggest',
  description: 'Suggest endpoints from the names of a certificate',
  examples: [{ does: 'Print the commands that add them', line: 'vault endpoint suggest web' }],
  options: {
    certificate: {
      type: 'string',
      valueHint: 'NAME',
      names: 'certificates',
      required: true,
      positional: 'or-flag',
      description: 'the certificate',
    },
    ...jsonOption,
  },
  run: async (args, terminal) => {
    const { certificate } = args;
    const { domains, known } = await onVault(
      args,
      terminal,
      'refuse',
      async (vault) => {
        const row = await requireCertificate(vault.db.reader, certificate, { suggest: true });
        const names: readonly string[] = parseJson(row.domains);
        return { domains: names, known: await endpointsHere(vault, {}) };
      },
      async (remote) => {
        const view = remote.get<CertificateView>(certificatePath(certificate));
        const { domains: names } = await suggestingThere(remote, certificate, view);
        const all: readonly string[] = names;
        return { domains: all, known: await endpointsThere(remote, {}) };
      },
    );
    const suggested = suggestionsFor(domains, known);
    if (args.json) terminal.stdout.write(jsonText(suggested));
    else if (suggested.length === 0) terminal.stderr.write('No further endpoints to suggest.\n');
    for (const { address, starttls } of args.json ? [] : suggested) {
      const protocol = starttls === null ? '' : ` --starttls ${starttls}`;
      terminal.stdout.write(
        `vault endpoint add ${addressWord(address)} --certificate ${certificate}${protocol}\n`,
      );
    }
  },
});

type Suggestion = { readonly address: string; readonly starttls: StartTls | null };

/** The protocols that the first label of a name speaks of, with or without a number. */
const protocols: Readonly<Record<string, StartTls>> = {
  ...{ mx: 'smtp', smtp: 'smtp', imap: 'imap', pop: 'pop3', ldap: 'ldap', ftp: 'ftp', xmpp: 'xmpp' },
  ...{ postgres: 'postgres', mysql: 'mysql' },
};

/** One for each name that is no wildcard and has no endpoint yet. */
function suggestionsFor(domains: readonly string[], known: readonly EndpointView[]): Suggestion[] {
  const taken = new Set(known.map(({ address }) => address));
  return domains
    .filter((name) => !name.startsWith('*'))
    .map((host) => {
      const [, label = ''] = (isIP(host) === 0 && /^([a-z]+)\d*\./.exec(host)) || [];
      const starttls = Object.hasOwn(protocols, label) ? (protocols[label] ?? null) : null;
      return { address: addressText({ host, port: usualPort(starttls) }), starttls };
    })
    .filter(({ address }) => !taken.has(address));
}
