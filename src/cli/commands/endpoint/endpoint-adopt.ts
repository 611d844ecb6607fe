/** `vault endpoint adopt`: makes an endpoint of a server that a scan found, with or without a certificate. */
import { isIP } from 'node:net';
import { type CertName, newCertNameRule, parseNewCertName } from '../../../base/cert-name.ts';
import { printable } from '../../../base/printable-text.ts';
import { localCli } from '../../../domain/audit/audit.ts';
import { importCertificate } from '../../../domain/certificates/certificate-import.ts';
import { createCertificate } from '../../../domain/certificates/certificates.ts';
import { addEndpoint } from '../../../domain/endpoints/endpoint-changes.ts';
import { addressText, createEndpointInput } from '../../../domain/endpoints/endpoint-inputs.ts';
import { createCertificateInput, parseInput } from '../../../domain/inputs.ts';
import {
  addressFrom,
  type FindingView,
  findingAt,
  nothingFoundAt,
  type WholeFinding,
  wholeFinding,
} from '../../../domain/scans/findings.ts';
import { command } from '../../runtime/command.ts';
import { onVault } from '../../runtime/with-vault.ts';
import { readInput } from '../../terminal/input-file.ts';
import { Misuse } from '../../terminal/misuse.ts';
import { importThere } from '../certificate/certificates-there.ts';
import { addressOption } from './endpoint-choice.ts';

/** `vault endpoint adopt`. */
export const adopt = command({
  name: 'endpoint adopt',
  description: 'Watch a found server, or take over its certificate',
  examples: [
    { does: 'Watch what it serves', line: 'vault endpoint adopt 10.0.0.7:443' },
    {
      does: 'Issue a certificate with its names',
      line: 'vault endpoint adopt 10.0.0.7:443 --issue --name intranet',
    },
    {
      does: 'Import its certificate',
      line: 'vault endpoint adopt 10.0.0.7:443 --private-key server.key --name intranet',
    },
  ],
  options: {
    ...addressOption,
    issue: { type: 'boolean', description: 'issue a certificate with the names of the one that is served' },
    issuer: {
      type: 'string',
      valueHint: 'ISSUER',
      description: 'with --issue: the issuer (default: local-ca)',
    },
    'private-key': {
      type: 'string',
      valueHint: 'FILE',
      description:
        'import the certificate that is served, with this private key as PEM; - for standard input',
    },
    name: {
      type: 'string',
      valueHint: 'NAME',
      description: 'the name of the new certificate (default: the first name of the one that is served)',
    },
  },
  run: async (args, terminal) => {
    const { address, issue, issuer } = args;
    const keyFile = args['private-key'];
    if (issue && keyFile !== undefined) {
      throw new Misuse('--issue and --private-key exclude each other', 'Use one of them.');
    }
    if (issuer !== undefined && !issue) throw new Misuse('--issuer needs --issue', 'Use both of them.');
    if (args.name !== undefined && !issue && keyFile === undefined) {
      throw new Misuse('--name needs --issue or --private-key', 'Without them, the server is only watched.');
    }
    const key = keyFile === undefined ? undefined : await readInput(keyFile, terminal);
    /** What to do with a finding, the same here and at a server. */
    const plan = (found: WholeFinding) => {
      const name = issue || key !== undefined ? nameFor(found, args.name) : undefined;
      if (name !== undefined && found.endpoint) {
        throw new Misuse(
          `there is already an endpoint ${found.address}`,
          `Create or import the certificate, then: vault endpoint update ${found.address} --certificate ${name}`,
        );
      }
      return {
        name,
        wanted: { name, domains: found.names, ...(issuer !== undefined && { issuer }) },
        files: importOf(found, name ?? '', key),
        endpoint: {
          ...{ address: found.address, starttls: found.starttls },
          ...(name === undefined ? { server_name: serverNameOf(found) } : { certificate: name }),
        },
      };
    };
    const name = await onVault(
      args,
      terminal,
      'refuse',
      async (vault) => {
        const { name: its, wanted, files, endpoint } = plan(wholeFinding(await findingAt(vault, address)));
        if (issue) await createCertificate(vault, localCli, parseInput(createCertificateInput, wanted));
        if (files !== undefined) warn((await importCertificate(vault, localCli, files)).warnings);
        await addEndpoint(vault, localCli, parseInput(createEndpointInput, endpoint));
        return its;
      },
      async (remote) => {
        const all = await remote.list<FindingView>('/endpoint-findings', {});
        const known = all.find((one) => one.address === addressText(addressFrom(address)));
        if (known === undefined) throw nothingFoundAt(address);
        const whole = await remote.get<WholeFinding>(`/endpoint-findings/${known.id}`);
        const { name: its, wanted, files, endpoint } = plan(whole);
        if (issue) await remote.send('POST', '/certificates', wanted);
        if (files !== undefined) warn((await importThere(remote, files)).warnings);
        await remote.send('POST', '/endpoints', endpoint);
        return its;
      },
    );
    function warn(warnings: readonly string[]): void {
      for (const warning of warnings) terminal.stderr.write(`Warning: ${printable(warning)}\n`);
    }
    if (name === undefined) terminal.stderr.write(`Added endpoint ${address}, which is only watched.\n`);
    else if (issue) {
      terminal.stderr.write(
        `Created certificate ${name}; endpoint ${address} is expected to serve it.\n  Try: vault api-key create --help\n`,
      );
    } else
      terminal.stderr.write(`Imported certificate ${name}; endpoint ${address} is expected to serve it.\n`);
  },
});

/** Throws Misuse if the certificate has no name that can be one here. */
function nameFor({ names, address }: FindingView, wanted: string | undefined) {
  const text = wanted ?? names[0]?.replace(/^\*\./, 'wildcard.').replaceAll(':', '-') ?? '';
  const name = parseNewCertName(text);
  if (name !== undefined) return name;
  if (wanted === undefined)
    throw new Misuse(`the certificate at ${address} has no usable name`, 'Use --name.');
  throw new Misuse(`--name: "${wanted}" is not a certificate name`, `${newCertNameRule}.`);
}

function importOf(
  { chain_pem, address }: WholeFinding,
  name: string,
  key: Buffer | undefined,
): Parameters<typeof importCertificate>[2] | undefined {
  if (key === undefined) return undefined;
  if (chain_pem === '') {
    throw new Misuse(
      `the certificates at ${address} were too large to keep`,
      'Use "vault certificate import" with files.',
    );
  }
  const chain = { name: `the certificates of ${address}`, bytes: Buffer.from(chain_pem) };
  return { name: name as CertName, sources: [chain, { name: 'the private key', bytes: key }] };
}

/** For the handshake: the first name of a host that the certificate has. */
function serverNameOf({ names }: FindingView): string {
  return names.find((name) => isIP(name) === 0 && !name.startsWith('*')) ?? '';
}
