/** `vault endpoint add`, `update` and `remove`. */
import { localCli } from '../../../domain/audit/audit.ts';
import { addEndpoint, changeEndpoint, removeEndpoint } from '../../../domain/endpoints/endpoint-changes.ts';
import {
  createEndpointInput,
  trustChoices,
  updateEndpointInput,
} from '../../../domain/endpoints/endpoint-inputs.ts';
import type { EndpointView } from '../../../domain/endpoints/endpoints.ts';
import { parseInput } from '../../../domain/inputs.ts';
import { requireCertificate } from '../../../domain/versions/certificate-lookup.ts';
import { startTlsProtocols } from '../../../net/starttls.ts';
import { command } from '../../runtime/command.ts';
import { onVault } from '../../runtime/with-vault.ts';
import { Misuse } from '../../terminal/misuse.ts';
import { suggestingThere } from '../certificate/certificates-there.ts';
import {
  addressOption,
  addressWord,
  bundleFrom,
  endpointsHere,
  endpointsThere,
  hereAllFit,
  serverNameFrom,
  theOne,
} from './endpoint-choice.ts';

const settingOptions = {
  starttls: {
    type: 'string',
    valueHint: 'PROTOCOL',
    values: [...startTlsProtocols, 'none'],
    description: `switch to TLS as in ${startTlsProtocols.join(', ')} (default: none)`,
  },
  trust: {
    type: 'string',
    valueHint: 'TRUST',
    values: trustChoices,
    description: `what clients trust: ${trustChoices.join(', ')} (default: auto)`,
  },
  ca: {
    type: 'string',
    valueHint: 'FILE',
    multiple: true,
    description: 'trust only the certificates in this PEM file',
  },
  interval: {
    type: 'string',
    valueHint: 'INTERVAL',
    description: 'the time between two checks, from 5m to 30d (default: 1h)',
  },
} as const;

function saidOf(done: 'Added' | 'Changed', { address }: EndpointView): string {
  return `${done} endpoint ${address}.\n  Try: vault endpoint check ${addressWord(address)}\n`;
}

/** `vault endpoint add`. */
export const add = command({
  name: 'endpoint add',
  description: 'Add a TLS server to check',
  examples: [
    {
      does: 'Check that a web server serves the current version',
      line: 'vault endpoint add www.example.com:443 --certificate web',
    },
    {
      does: 'Check a mail server',
      line: 'vault endpoint add mx.example.com --certificate mail --starttls smtp',
    },
    {
      does: 'Watch a certificate that the vault did not issue',
      line: 'vault endpoint add shop.example.net:443',
    },
  ],
  options: {
    ...addressOption,
    certificate: {
      type: 'string',
      valueHint: 'NAME',
      names: 'certificates',
      description: 'the certificate that is expected there (default: none; only watch what is served)',
    },
    'server-name': {
      type: 'string',
      valueHint: 'NAME',
      description:
        'the name for the handshake (SNI), or none (default: the host, or a name of the certificate)',
    },
    ...settingOptions,
  },
  run: async (args, terminal) => {
    const { address, certificate, 'server-name': serverName, starttls, trust, interval } = args;
    const body = {
      address,
      ...(certificate !== undefined && { certificate }),
      ...(serverName !== undefined && { server_name: serverNameFrom(serverName) }),
      ...(starttls !== undefined && { starttls: starttls === 'none' ? null : starttls }),
      ...(trust !== undefined && { trust }),
      ...(args.ca.length > 0 && { ca_pem: await bundleFrom(args.ca, terminal) }),
      ...(interval !== undefined && { interval }),
    };
    const input = parseInput(createEndpointInput, body);
    const added = await onVault(
      args,
      terminal,
      'refuse',
      async (vault) => {
        if (certificate !== undefined)
          await requireCertificate(vault.db.reader, certificate, { suggest: true });
        const id = await addEndpoint(vault, localCli, input);
        return (await endpointsHere(vault, {})).find((one) => one.id === id);
      },
      (remote) => suggestingThere(remote, certificate, remote.send<EndpointView>('POST', '/endpoints', body)),
    );
    if (added !== undefined) terminal.stderr.write(saidOf('Added', added));
  },
});

/** `vault endpoint update`. */
export const update = command({
  name: 'endpoint update',
  description: 'Change what is expected at an endpoint',
  examples: [
    {
      does: 'Expect another certificate',
      line: 'vault endpoint update www.example.com:443 --certificate mail',
    },
    { does: 'Check more often', line: 'vault endpoint update www.example.com:443 --interval 15m' },
  ],
  options: {
    ...addressOption,
    'server-name': {
      type: 'string',
      valueHint: 'NAME',
      description: 'of several endpoints at the address, the one with this name for the handshake, or none',
    },
    certificate: {
      type: 'string',
      valueHint: 'NAME',
      names: 'certificates',
      description: 'the certificate that is expected there, or none to only watch what is served',
    },
    ...settingOptions,
  },
  run: async (args, terminal) => {
    const { certificate, starttls, trust, interval } = args;
    const body = {
      ...(certificate !== undefined && { certificate: certificate === 'none' ? null : certificate }),
      ...(starttls !== undefined && { starttls: starttls === 'none' ? null : starttls }),
      ...(trust !== undefined && { trust }),
      ...(args.ca.length > 0 && { ca_pem: await bundleFrom(args.ca, terminal) }),
      ...(interval !== undefined && { interval }),
    };
    if (Object.keys(body).length === 0) {
      throw new Misuse('nothing to change', 'Use --certificate, --starttls, --trust, --ca or --interval.');
    }
    const input = parseInput(updateEndpointInput, body);
    const changed = await onVault(
      args,
      terminal,
      'refuse',
      async (vault) => {
        const one = theOne(await endpointsHere(vault, {}), args);
        if (typeof input.certificate === 'string')
          await requireCertificate(vault.db.reader, input.certificate, { suggest: true });
        await changeEndpoint(vault, localCli, one.id, input, hereAllFit);
        return one;
      },
      async (remote) => {
        const one = theOne(await endpointsThere(remote, {}), args);
        const name = input.certificate ?? undefined;
        await suggestingThere(remote, name, remote.send('PATCH', `/endpoints/${one.id}`, body));
        return one;
      },
    );
    terminal.stderr.write(saidOf('Changed', changed));
  },
});

/** `vault endpoint remove`. */
export const remove = command({
  name: 'endpoint remove',
  description: 'Remove an endpoint',
  examples: [{ does: 'Stop checking a server', line: 'vault endpoint remove www.example.com:443' }],
  options: {
    ...addressOption,
    'server-name': {
      type: 'string',
      valueHint: 'NAME',
      description: 'of several endpoints at the address, the one with this name for the handshake, or none',
    },
  },
  run: async (args, terminal) => {
    const removed = await onVault(
      args,
      terminal,
      'refuse',
      async (vault) => {
        const one = theOne(await endpointsHere(vault, {}), args);
        await removeEndpoint(vault, localCli, one.id, hereAllFit);
        return one;
      },
      async (remote) => {
        const one = theOne(await endpointsThere(remote, {}), args);
        await remote.send('DELETE', `/endpoints/${one.id}`);
        return one;
      },
    );
    terminal.stderr.write(`Removed endpoint ${removed.address}.\n`);
  },
});
