/** `vault dns-provider …`: who can put challenge records into which zones. */

import { isAddress, parseIdentifier } from '../../base/identifier.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { Secret } from '../../base/secret.ts';
import { DnsProviderError } from '../../dns/dns-provider.ts';
import { dnsProviderTypes } from '../../dns/providers/provider-types.ts';
import { localCli } from '../../domain/audit/audit.ts';
import { createDnsProviderInput, parseInput } from '../../domain/inputs.ts';
import { addDnsProvider, removeDnsProvider, tryDnsProvider } from '../../domain/issuance/dns-providers.ts';
import { viewDnsProviders } from '../../domain/issuance/issuer-views.ts';
import { command, commandGroup } from '../runtime/command.ts';
import { stopSignal } from '../runtime/stop-signal.ts';
import { withVault } from '../runtime/with-vault.ts';
import { serveOptions } from '../settings/settings.ts';
import { readInput } from '../terminal/input-file.ts';
import { jsonText, table } from '../terminal/output.ts';

const nameOption = {
  name: {
    type: 'string',
    valueHint: 'NAME',
    required: true,
    names: 'dns-providers',
    description: 'how the vault calls the provider',
  },
} as const;

const add = command({
  name: 'dns-provider add',
  description: 'add a DNS provider for the zones it manages',
  examples: [
    {
      does: 'Add Cloudflare, with an API token in a file',
      line: 'vault dns-provider add --name cloudflare --type cloudflare --zone example.com --secret-file cloudflare.yaml',
    },
    {
      does: 'Make the records by hand',
      line: 'vault dns-provider add --name by-hand --type manual --zone example.org',
    },
  ],
  options: {
    ...nameOption,
    type: {
      type: 'string',
      valueHint: 'TYPE',
      required: true,
      values: [...dnsProviderTypes.keys()],
      description: [...dnsProviderTypes.keys()].join(', '),
    },
    zone: {
      type: 'string',
      valueHint: 'ZONE',
      required: true,
      multiple: true,
      description: 'a zone it manages; the longest that matches a name wins',
    },
    'secret-file': {
      type: 'string',
      valueHint: 'FILE',
      description: 'a YAML or JSON file with its settings and credentials; - is standard input',
    },
  },
  run: async (args, terminal) => {
    const { name, type, zone: zones, 'secret-file': file } = args;
    const input = parseInput(createDnsProviderInput, { name, type, zones });
    const secret = new Secret(file === undefined ? Buffer.from('{}') : await readInput(file, terminal));
    await withVault(args, terminal, 'create', async (vault) => {
      await withSecretHint(() => addDnsProvider(vault, localCli, input, secret));
      terminal.stderr.write(
        `DNS provider ${name} is added. Try it:\n  vault dns-provider test --name ${name} --domain ${input.zones[0]}\n`,
      );
    });
  },
});

const list = command({
  name: 'dns-provider list',
  description: 'list the DNS providers and their zones',
  examples: [{ does: 'See who manages which zones', line: 'vault dns-provider list' }],
  options: { json: { type: 'boolean', description: 'print JSON, for programs' } },
  run: (args, terminal) =>
    withVault(args, terminal, 'refuse', async (vault) => {
      const providers = await viewDnsProviders(vault);
      if (args.json) {
        terminal.stdout.write(jsonText(providers));
        return;
      }
      if (providers.length === 0) {
        terminal.stderr.write('There are no DNS providers yet. Add one with "vault dns-provider add".\n');
        return;
      }
      const cells = providers.map(({ name, type, zones }) => [name, type, zones.join(' ')]);
      terminal.stdout.write(table(['NAME', 'TYPE', 'ZONES'], cells));
    }),
});

const remove = command({
  name: 'dns-provider remove',
  description: 'remove a DNS provider with its credentials',
  examples: [
    { does: 'Remove one with its credentials', line: 'vault dns-provider remove --name cloudflare' },
  ],
  options: nameOption,
  run: (args, terminal) =>
    withVault(args, terminal, 'refuse', async (vault) => {
      await removeDnsProvider(vault, localCli, args.name);
      terminal.stderr.write(`DNS provider ${args.name} is removed.\n`);
    }),
});

const test = command({
  name: 'dns-provider test',
  description: 'write a challenge record, see it, and remove it again',
  examples: [
    {
      does: 'Write a record, see it, and remove it',
      line: 'vault dns-provider test --name cloudflare --domain www.example.com',
    },
  ],
  options: {
    ...nameOption,
    domain: { type: 'string', valueHint: 'DOMAIN', required: true, description: 'the domain to try it for' },
    resolver: serveOptions.resolver,
  },
  run: async (args, terminal) => {
    const domain = parseIdentifier(args.domain);
    if (domain === undefined) {
      throw new OperatorError(`"${args.domain}" is not a domain`, {
        hint: 'Write a name such as www.example.com.',
      });
    }
    if (isAddress(domain)) {
      throw new OperatorError(`${domain} is an address, and dns-01 proves control of names only`, {
        hint: 'Addresses are proved by http-01 or tls-alpn-01.',
      });
    }
    await withVault(args, terminal, 'refuse', async (vault) => {
      const say = (text: string) => terminal.stderr.write(`${text}\n`);
      await tryDnsProvider(vault, { name: args.name, domain }, say, stopSignal());
      terminal.stdout.write(`${args.name} can prove control of ${domain}\n`);
    });
  },
});

export const dnsProviderCommands = commandGroup(
  'dns-provider',
  'add, list, try and remove DNS providers for dns-01',
  { add, list, test, remove },
);

/** What is wrong with the settings is said by who reads them; where they come from is the command's affair. */
async function withSecretHint(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof DnsProviderError)) throw error;
    const hint = 'Settings and credentials come from the file that --secret-file names, in YAML or JSON.';
    throw new OperatorError(error.message, { hint, cause: error });
  }
}
