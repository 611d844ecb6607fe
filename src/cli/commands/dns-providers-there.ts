/** DNS providers of a vault at a server: what its endpoints take and return, as the commands use it. */
import { OperatorError } from '../../base/operator-error.ts';
import type { Secret } from '../../base/secret.ts';
import { dnsProviderTypes, readSecretMapping } from '../../dns/providers/provider-types.ts';
import { unknownDnsProvider } from '../../domain/dns-providers/dns-providers.ts';
import type { DnsProviderView } from '../../domain/issuers/issuer-views.ts';
import { inPath, type RemoteVault, slowRequest } from '../remote/remote-vault.ts';

/** All DNS providers by name. */
export function providersThere(remote: RemoteVault): Promise<DnsProviderView[]> {
  return remote.list<DnsProviderView>('/dns-providers');
}

/** The path of a DNS provider, and of `more` below it. */
export function providerPath(name: string, more = ''): string {
  return `/dns-providers/${inPath(name)}${more}`;
}

/** The DNS provider of this name. Throws OperatorError that suggests similar names. */
export async function providerThere(remote: RemoteVault, name: string): Promise<DnsProviderView> {
  const providers = await providersThere(remote);
  const found = providers.find((provider) => provider.name === name);
  if (found !== undefined) return found;
  throw unknownDnsProvider(
    name,
    providers.map((provider) => provider.name),
  );
}

/**
 * Adds a provider; `secret` is the text of its secret file. The server checks the settings, and refuses the types that
 * run programs of its machine. Throws DnsProviderError for a file that is no mapping.
 */
export async function addProviderThere(
  remote: RemoteVault,
  input: { readonly name: string; readonly type: string; readonly zones: readonly string[] },
  secret: Secret,
): Promise<void> {
  const { type } = input;
  const config = await readSecretMapping(
    dnsProviderTypes.get(type) ?? { type },
    secret.expose().toString('utf8'),
  );
  await remote.send('POST', '/dns-providers', { ...input, config });
}

/** Presents a record as the server would for a validation; the steps are known at the end. */
export async function tryProviderThere(
  remote: RemoteVault,
  name: string,
  domain: string,
  onStep: (text: string) => void,
): Promise<void> {
  const { type } = await providerThere(remote, name);
  // A person has to create the record while the test waits, for longer than a request takes.
  if (type === 'manual') {
    throw new OperatorError(`${name} is a manual provider, which is tested only on the vault's machine`, {
      hint: 'Run the command there, without --server and CERTVAULT_SERVER.',
    });
  }
  const path = providerPath(name, '/test');
  const { steps } = await remote.send<{ readonly steps: readonly { readonly text: string }[] }>(
    'POST',
    path,
    { domain },
    slowRequest,
  );
  for (const { text } of steps) onStep(text);
}
