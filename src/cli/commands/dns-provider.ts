/** `vault dns-provider …`: manages the providers that present dns-01 challenge records. */

import { isAddress, parseIdentifier } from '../../base/identifier.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { printable } from '../../base/printable-text.ts';
import { Secret } from '../../base/secret.ts';
import { DnsProviderError } from '../../dns/dns-provider.ts';
import { dnsProviderTypes, readSecretMapping } from '../../dns/providers/provider-types.ts';
import { localCli } from '../../domain/audit/audit.ts';
import {
  addDnsProvider,
  removeDnsProvider,
  secretFileHint,
  tryDnsProvider,
} from '../../domain/dns-providers/dns-providers.ts';
import { createDnsProviderInput, parseInput } from '../../domain/inputs.ts';
import { viewDnsProviders } from '../../domain/issuers/issuer-views.ts';
import { command, commandGroup, commandWithoutVault } from '../runtime/command.ts';
import { stopSignal } from '../runtime/stop-signal.ts';
import { onVault } from '../runtime/with-vault.ts';
import { serveOptions } from '../settings/settings.ts';
import { readInput } from '../terminal/input-file.ts';
import { Misuse } from '../terminal/misuse.ts';
import { jsonOption, printList } from '../terminal/table.ts';
import {
  addProviderThere,
  providerPath,
  providersThere,
  providerThere,
  tryProviderThere,
} from './dns-providers-there.ts';

const nameOption = {
  name: {
    type: 'string',
    valueHint: 'NAME',
    required: true,
    positional: 'or-flag',
    names: 'dns-providers',
    description: 'the name of the provider',
  },
} as const;

const add = command({
  name: 'dns-provider add',
  description: 'Add a DNS provider and its zones',
  examples: [
    {
      does: 'Add Cloudflare with an API token in a file',
      line: 'vault dns-provider add --name cloudflare --type cloudflare --zone example.com --secret-file cloudflare.yaml',
    },
    {
      does: 'Use lexicon for Gandi, with LEXICON_GANDI_AUTH_TOKEN in the file',
      line: 'vault dns-provider add --name gandi --type lexicon --provider gandi --zone example.net --secret-file gandi.yaml',
    },
    {
      does: 'Create the records by hand',
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
      description: `the provider: ${[...dnsProviderTypes.keys()].join(', ')}`,
    },
    zone: {
      type: 'string',
      valueHint: 'ZONE',
      required: true,
      multiple: true,
      description: 'a zone of this provider; the longest match wins',
    },
    provider: {
      type: 'string',
      valueHint: 'NAME',
      description: "for lexicon: its name of the provider, such as gandi; see lexicon's own help",
    },
    script: {
      type: 'string',
      valueHint: 'FILE',
      description: 'for acme-sh: a script of its dnsapi, such as dns_gandi_livedns.sh',
    },
    program: {
      type: 'string',
      valueHint: 'FILE',
      description: 'the path of lexicon (default: /usr/bin/lexicon) or of acme.sh',
    },
    'secret-file': {
      type: 'string',
      valueHint: 'FILE',
      description: 'a YAML or JSON file with settings and credentials; - for standard input',
    },
  },
  run: async (args, terminal) => {
    const { name, type, zone: zones, 'secret-file': file } = args;
    const input = parseInput(createDnsProviderInput, { name, type, zones });
    const { provider, script, program } = args;
    const given = new Secret(file === undefined ? Buffer.from('{}') : await readInput(file, terminal));
    const secret = await withSecretHint(() => withOptions(type, given, { provider, script, program }));
    await onVault(
      args,
      terminal,
      'create',
      (vault) => withSecretHint(() => addDnsProvider(vault, localCli, input, secret)),
      (remote) => withSecretHint(() => addProviderThere(remote, { name, type, zones }, secret)),
    );
    terminal.stderr.write(
      `Added DNS provider ${name}.\n  Try: vault dns-provider test --name ${name} --domain ${input.zones[0]}\n`,
    );
  },
});

/** The settings of the options, and what reads them. */
const settingOptions: Readonly<Record<string, readonly string[]>> = {
  lexicon: ['provider', 'program'],
  'acme-sh': ['script', 'program'],
};

/** The secret file together with the settings that were given as options. */
async function withOptions(
  type: string,
  file: Secret,
  options: Readonly<Record<string, string | undefined>>,
): Promise<Secret> {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  if (given.length === 0) return file;
  for (const [name] of given) {
    if (settingOptions[type]?.includes(name)) continue;
    throw new Misuse(`--${name} is not for the type ${type}`, 'Try: vault dns-provider add --help');
  }
  const settings = await readSecretMapping({ type }, file.expose().toString('utf8'));
  return new Secret(Buffer.from(JSON.stringify({ ...settings, ...Object.fromEntries(given) })));
}

const types = commandWithoutVault({
  name: 'dns-provider types',
  description: 'List the types of DNS providers and what each reaches',
  examples: [{ does: 'List the types', line: 'vault dns-provider types' }],
  options: jsonOption,
  run: async (args, terminal) => {
    const all = [...dnsProviderTypes.values()].map(({ type, title }) => ({ type, reaches: title }));
    printList(terminal, args, all, {
      none: 'No types.',
      columns: ['TYPE', 'REACHES'],
      row: ({ type, reaches }) => [type, reaches],
    });
  },
});

const list = command({
  name: 'dns-provider list',
  description: 'List DNS providers and their zones',
  examples: [{ does: 'List all DNS providers', line: 'vault dns-provider list' }],
  options: jsonOption,
  run: async (args, terminal) => {
    const providers = await onVault(args, terminal, 'refuse', viewDnsProviders, providersThere);
    printList(terminal, args, providers, {
      none: 'No DNS providers yet.\n  Try: vault dns-provider add --help',
      columns: [{ title: 'NAME', holds: 'name' }, 'TYPE', { title: 'ZONES', holds: 'list' }],
      row: ({ name, type, zones }) => [name, type, zones],
    });
  },
});

const remove = command({
  name: 'dns-provider remove',
  description: 'Remove a DNS provider and its credentials',
  examples: [
    { does: 'Remove a provider and its credentials', line: 'vault dns-provider remove --name cloudflare' },
  ],
  options: nameOption,
  run: async (args, terminal) => {
    await onVault(
      args,
      terminal,
      'refuse',
      (vault) => removeDnsProvider(vault, localCli, args.name),
      async (remote) => {
        await providerThere(remote, args.name);
        await remote.send('DELETE', providerPath(args.name));
      },
    );
    terminal.stderr.write(`Removed DNS provider ${args.name}.\n`);
  },
});

const test = command({
  name: 'dns-provider test',
  description: 'Present, check and clean up a challenge record',
  examples: [
    {
      does: 'Present a record for a domain, check it, and clean it up',
      line: 'vault dns-provider test --name cloudflare --domain www.example.com',
    },
  ],
  options: {
    ...nameOption,
    domain: { type: 'string', valueHint: 'DOMAIN', required: true, description: 'the domain to test' },
    resolver: serveOptions.resolver,
  },
  run: async (args, terminal) => {
    const domain = parseIdentifier(args.domain);
    if (domain === undefined) {
      throw new OperatorError(`--domain: "${args.domain}" is not a domain`, {
        hint: 'Use a name such as www.example.com.',
      });
    }
    if (isAddress(domain)) {
      throw new OperatorError(`--domain: ${domain} is an IP address; dns-01 validates only names`, {
        hint: 'Use http-01 or tls-alpn-01 for IP addresses.',
      });
    }
    const say = (text: string) => terminal.stderr.write(`${printable(text)}\n`);
    await onVault(
      args,
      terminal,
      'refuse',
      (vault) => tryDnsProvider(vault, { name: args.name, domain }, say, stopSignal()),
      (remote) => {
        if (args.resolver === undefined) return tryProviderThere(remote, args.name, domain, say);
        throw new Misuse('--resolver and --server exclude each other', 'The server asks its own resolvers.');
      },
    );
    terminal.stdout.write(`${args.name} can present dns-01 challenges for ${domain}\n`);
  },
});

export const dnsProviderCommands = commandGroup(
  'dns-provider',
  'Add, list, test and remove DNS providers for dns-01',
  { add, list, types, test, remove },
);

/** Adds a hint to errors in the settings: where the command reads them from. */
async function withSecretHint<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const hint = error instanceof DnsProviderError ? secretFileHint(error) : undefined;
    if (!(error instanceof DnsProviderError) || hint === undefined) throw error;
    throw new OperatorError(error.message, { hint, cause: error });
  }
}
